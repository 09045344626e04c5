"""All runs together over HTTP: totals by a label, and how the collector itself is."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPMethod
from typing import Annotated, Any, Literal

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.ledgers import Snapshot
from headway.collector.run_api import RunFilter, chosen
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.ledger.ratios import goodput


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuestion(RunFilter):
    """A question about many runs together."""

    by: Annotated[
        str | None,
        Asked(sentence="Label by which to group, such as team; default: none.", example="team"),
    ] = None


def fleet(service: Service, asked: FleetQuestion) -> Answer:
    """Time and GPU-time of whole runs by category, summed over runs with the same label."""
    groups: dict[str | None, list[Snapshot]] = defaultdict(list)
    for snapshot in chosen(service, asked):
        value = None if asked.by is None else snapshot.summary["labels"].get(asked.by)
        groups[None if value is None else str(value)].append(snapshot)
    totals = [
        {"label": label, **_total(snapshots)}
        for label, snapshots in sorted(groups.items(), key=lambda item: (item[0] is None, item[0]))
    ]
    return Answer(content=lambda: {"by": asked.by, "groups": totals})


def _total(snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    summaries = [snapshot.summary for snapshot in snapshots]
    good = [snapshot.ledger.training_good for snapshot in snapshots]
    gpu_times = [summary["gpu_time"] for summary in summaries]
    return {
        "runs": len(summaries),
        "running": sum(summary["state"] == "running" for summary in summaries),
        **{
            name: sum(summary[name] for summary in summaries)
            for name in ("open_incidents", "attempts", "failed_starts")
        },
        "wall_time": _sums(
            [summary["categories"] for summary in summaries],
            sum(summary["elapsed_ns"] for summary in summaries),
            good,
        ),
        "gpu_time": _sums(
            [gpu_time["categories"] for gpu_time in gpu_times],
            sum(gpu_time["elapsed_gpu_ns"] for gpu_time in gpu_times),
            good,
        ),
    }


def _sums(
    parts: Sequence[Mapping[str, int]], whole: int, good: Sequence[Collection[str]]
) -> dict[str, Any]:
    """Return totals with their ratios; what a custom category counts as, each run says itself."""
    totals: Counter[str] = Counter()
    numerators: dict[Literal["training", "infrastructure"], tuple[int, int]] = {
        "training": (0, 0),
        "infrastructure": (0, 0),
    }
    for categories, own in zip(parts, good, strict=True):
        totals.update(categories)
        for kind, (low, high) in numerators.items():
            least, most = goodput(categories, whole, kind, own).numerator
            numerators[kind] = (low + least, high + most)
    return {
        "elapsed_ns": whole,
        "categories": dict(totals),
        **{
            f"{kind}_goodput": {
                "low": low / whole if whole else None,
                "high": high / whole if whole else None,
            }
            for kind, (low, high) in numerators.items()
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthQuestion:
    """A question about the collector."""


def health(service: Service, asked: HealthQuestion) -> Answer:
    """How the collector is: what arrived, what became of it, and what is missing."""
    committer = service.committer
    found = {
        "time": service.clock(),
        "version": service.store.version,
        "records": committer.counts(),
        "open_gaps": service.store.num_gaps,
        "runs": len(service.ledgers.runs()),
        "nodes": len(service.ledgers.nodes()),
    }
    return Answer(content=lambda: found)


_RATIOS = schemas.named(
    "Totals",
    object_of(
        elapsed_ns=schemas.INTEGER,
        categories=map_of(schemas.INTEGER),
        training_goodput=schemas.RANGE,
        infrastructure_goodput=schemas.RANGE,
    ),
)
_GROUP = object_of(
    label=optional(schemas.TEXT),
    runs=schemas.INTEGER,
    running=schemas.INTEGER,
    open_incidents=schemas.INTEGER,
    attempts=schemas.INTEGER,
    failed_starts=schemas.INTEGER,
    wall_time=_RATIOS,
    gpu_time=_RATIOS,
)
ENDPOINTS = (
    Endpoint(
        method=HTTPMethod.GET,
        path="/api/v1/fleet",
        handler=fleet,
        result=object_of(by=optional(schemas.TEXT), groups=list_of(_GROUP)),
    ),
    Endpoint(
        method=HTTPMethod.GET,
        path="/api/v1/health",
        handler=health,
        result=object_of(
            time=schemas.INTEGER,
            version=schemas.TEXT,
            records=map_of(schemas.INTEGER),
            open_gaps=schemas.INTEGER,
            runs=schemas.INTEGER,
            nodes=schemas.INTEGER,
        ),
    ),
)
