"""The machines of all runs over HTTP: failures by node and day, GPU faults and GPU state."""

from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint
from headway.collector.fleet_window import WINDOW
from headway.collector.schemas import list_of, object_of, optional
from headway.collector.service import Service
from headway.fleet import spans
from headway.fleet.hardware import faults, gpu_states, heatmap, signs
from headway.fleet.histories import NodeHistory
from headway.fleet.spans import DAY, Span

_LONGEST = 400
"""Days that a heatmap may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareQuestion:
    """A question about every machine."""

    last: Annotated[
        int | None,
        Asked(sentence="Only the last so many ns before the newest sign of any node.", lowest=1),
    ] = None
    rows: Annotated[
        int, Asked(sentence="Most nodes of the heatmap, the worst first.", lowest=1, highest=1_000)
    ] = 64


def hardware(service: Service, asked: HardwareQuestion) -> Answer:
    """Failures by node and UTC day, GPU faults with what they ask for, and the state of GPUs.

    Seen are the nodes of runs and of agents; what nobody told is null or `unknown`.
    """
    histories = service.node_histories

    runs = service.ledgers.fleet()
    live = any(one.summary["end"] is None for one in runs.snapshots)
    as_of = runs.as_of if live else None

    def content() -> dict[str, Any]:
        known = histories.known()
        span = _span(service, asked, known)
        return {
            "as_of": as_of,
            "start": span.start,
            "end": span.end - 1,
            "nodes": len(known),
            "heatmap": heatmap(known, span, asked.rows),
            "faults": faults(known, span),
            "gpu_states": gpu_states(known),
        }

    return Answer(content=content, version=histories.version, as_of=as_of)


def _span(service: Service, asked: HardwareQuestion, known: list[NodeHistory]) -> Span:
    times = [time for one in known for time in signs(one)]
    newest = max(times, default=service.clock())
    if asked.last is None:
        span = Span(min(times, default=newest), newest + 1)
    else:
        span, _ = spans.last(asked.last, newest)
    days = (span.end - span.start) // DAY
    if days > _LONGEST:
        if asked.last is not None:
            raise BadQuestion(
                f"last is {days} days",
                f"At most {_LONGEST} days can be shown: {_LONGEST * DAY} ns.",
            )
        span = Span(span.end - _LONGEST * DAY, span.end)
    return span


ENDPOINTS = (
    Endpoint.get(
        "/api/v1/hardware",
        hardware,
        object_of(
            **WINDOW,
            nodes=schemas.INTEGER,
            heatmap=object_of(
                days=list_of(schemas.INTEGER),
                nodes=list_of(
                    object_of(node=schemas.TEXT, failures=list_of(optional(schemas.INTEGER)))
                ),
                left_out=schemas.INTEGER,
            ),
            faults=list_of(
                object_of(
                    fault=schemas.TEXT,
                    code=optional(schemas.INTEGER),
                    meaning=optional(schemas.TEXT),
                    note=optional(schemas.TEXT),
                    disputed=schemas.FLAG,
                    classification=schemas.TEXT,
                    action=schemas.TEXT,
                    policy=schemas.TEXT,
                    faults=schemas.INTEGER,
                    records=schemas.INTEGER,
                    gpus=schemas.INTEGER,
                    nodes=list_of(schemas.TEXT),
                    last=schemas.INTEGER,
                )
            ),
            gpu_states=list_of(
                object_of(
                    node=schemas.TEXT,
                    state=schemas.TEXT,
                    detail=optional(schemas.TEXT),
                    told=optional(schemas.INTEGER),
                    kernel_log=schemas.TEXT,
                    kernel_log_detail=optional(schemas.TEXT),
                    failing_checks=list_of(schemas.TEXT),
                    gpus=optional(schemas.INTEGER),
                    products=list_of(schemas.TEXT),
                    last_failure=optional(schemas.INTEGER),
                )
            ),
        ),
    ),
)
