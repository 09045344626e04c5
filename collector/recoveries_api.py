"""How well the fleet recovers, over HTTP."""

from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.fleet_api import DISTRIBUTION, INCIDENT_LINE
from headway.collector.fleet_window import WINDOW, FleetWindow, Meant, meant
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.events import CAUSES, LAYERS
from headway.fleet.past import PastIncident
from headway.fleet.recoveries import recoveries


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryQuestion(FleetWindow):
    """A question about the incidents that opened in a window."""

    cause: Annotated[
        str | None, Asked(sentence="Only incidents of this cause.", choices=tuple(CAUSES))
    ] = None
    layer: Annotated[
        str | None, Asked(sentence="Only incidents that this layer recovered.", choices=LAYERS)
    ] = None
    run: Annotated[str | None, Asked(sentence="Only those of this run, by its id or name.")] = None


def fleet_recovery(service: Service, asked: RecoveryQuestion) -> Answer:
    """Recovery rates, times, phases and attempts of incidents, by cause and by layer; the slowest.

    Rates have the 95 % interval of Wilson. A curve is the share of recoveries up to each time.
    """
    found = meant(service, asked)
    return Answer(
        content=lambda: _recovery(service, found, asked), version=found.version, as_of=found.as_of
    )


def _recovery(service: Service, found: Meant, asked: RecoveryQuestion) -> dict[str, Any]:
    known = [
        one
        for snapshot in found.inside
        for one in service.fleet_shares.share(snapshot, found.span).incidents
        if _wanted(one, asked)
    ]
    return {**found.said(), **recoveries(known)}


def _wanted(one: PastIncident, asked: RecoveryQuestion) -> bool:
    return (
        (asked.cause is None or one.cause == asked.cause)
        and (asked.layer is None or one.layer == asked.layer)
        and (asked.run is None or asked.run in (one.run, one.run_name))
    )


_CURVE = object_of(ns=list_of(schemas.INTEGER), share=list_of(schemas.NUMBER))
_GROUP: dict[str, Any] = {
    "incidents": schemas.INTEGER,
    "outcomes": map_of(schemas.INTEGER),
    "held": schemas.INTEGER,
    "settled": schemas.INTEGER,
    "rate": optional(schemas.NUMBER),
    "rate_low": optional(schemas.NUMBER),
    "rate_high": optional(schemas.NUMBER),
    "attempts": DISTRIBUTION,
    "recovered_ns": DISTRIBUTION,
    "caught_up_ns": DISTRIBUTION,
    "curve": _CURVE,
    "phase_ns": map_of(schemas.INTEGER),
    "attempts_needed": map_of(schemas.INTEGER),
    "attempts_spent": schemas.INTEGER,
    "attempts_per_success": optional(schemas.NUMBER),
    "lost_gpu_ns": schemas.INTEGER,
}
_RECOVERED = schemas.named("Recovered", object_of(**_GROUP))
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/recovery",
        fleet_recovery,
        object_of(
            **WINDOW,
            incidents=schemas.INTEGER,
            all=_RECOVERED,
            by_cause=map_of(_RECOVERED),
            by_layer=map_of(_RECOVERED),
            phases=map_of(map_of(DISTRIBUTION)),
            validity=map_of(schemas.INTEGER),
            tail=list_of(
                schemas.both(
                    INCIDENT_LINE,
                    object_of(
                        layer=optional(schemas.TEXT),
                        outcome=schemas.TEXT,
                        attempts=schemas.INTEGER,
                        valid=schemas.TEXT,
                        phases=map_of(schemas.INTEGER),
                    ),
                )
            ),
            slow=object_of(
                slow=schemas.INTEGER,
                others=schemas.INTEGER,
                threshold_ns=optional(schemas.INTEGER),
                differences=list_of(
                    object_of(
                        what=schemas.TEXT,
                        value=schemas.TEXT,
                        slow=schemas.INTEGER,
                        others=schemas.INTEGER,
                        chance=schemas.NUMBER,
                        stands_out=schemas.FLAG,
                    )
                ),
            ),
        ),
    ),
)
