"""All runs together over HTTP: totals, their course, the runs that lose most; and the collector."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.fleet_shares import SLOTS
from headway.collector.fleet_window import (
    BETWEEN,
    WINDOW,
    FleetWindow,
    Meant,
    lived,
    meant,
    price,
    price_object,
)
from headway.collector.paging import Cursor, Limit, page
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.fleet import spans
from headway.fleet.course import brief, course
from headway.fleet.shares import Share
from headway.fleet.spans import Span
from headway.fleet.totals import cost_of, lost_by_run, ratios, sides, totals

MONTH = "month"
"""Word that groups by calendar month instead of by a label."""
_SORTS = ("lost", "newest")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuestion(FleetWindow):
    """A question about many runs together."""

    by: Annotated[
        str | None,
        Asked(
            sentence="Label by which to group, such as team, or `month`; default: none.",
            example="team",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseQuestion(FleetWindow):
    """A question about the course of many runs."""

    cells: Annotated[int, Asked(sentence="Most cells of time.", lowest=2, highest=1_000)] = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsQuestion(FleetWindow):
    """A question about what each run lost."""

    sort: Annotated[
        str,
        Asked(sentence="Order of the runs: by GPU time lost, or the newest first.", choices=_SORTS),
    ] = "lost"
    slots: Annotated[
        int, Asked(sentence="Parts of a run's strip of states.", lowest=1, highest=240)
    ] = SLOTS
    limit: Limit = 100
    cursor: Cursor = None


def fleet(service: Service, asked: FleetQuestion) -> Answer:
    """Goodput, losses, incidents and recovery over many runs in a window, or by a label or month.

    Without a window all of their time counts.
    """
    found = meant(service, asked)
    return Answer(
        content=lambda: _totals(service, found, asked.by), version=found.version, as_of=found.as_of
    )


def _totals(service: Service, found: Meant, by: str | None) -> dict[str, Any]:
    cost = price(service)
    groups: dict[str | None, list[Share]] = defaultdict(list)
    for label, share in _labelled(service, found, by):
        groups[label].append(share)
    if not groups and by is None:
        groups[None] = []
    before = None
    if found.before is not None and by is None:
        before = totals(_shares(service, found.snapshots, found.before), cost)
    return {
        "by": by,
        **found.said(),
        "price": price_object(cost),
        "groups": [
            {"label": label, **totals(shares, cost)}
            for label, shares in sorted(groups.items(), key=lambda item: (item[0] is None, item[0]))
        ],
        "before": before,
    }


def fleet_course(service: Service, asked: CourseQuestion) -> Answer:
    """The course of many runs: GPU time by category and incidents in cells of one width."""
    found = meant(service, asked)
    return Answer(
        content=lambda: _course(service, found, asked.cells),
        version=found.version,
        as_of=found.as_of,
    )


def _course(service: Service, found: Meant, most: int) -> dict[str, Any]:
    shares, inside = service.fleet_shares, found.inside
    width = spans.width_for(found.span, most)
    cells = course(
        spans.cells(found.span, width),
        width,
        (shares.cells(one, found.span, width) for one in inside),
        (past for one in inside for past in shares.share(one, found.span).incidents),
    )
    return {**found.said(), "width_ns": width, "cells": cells}


def fleet_runs(service: Service, asked: RunsQuestion) -> Answer:
    """What each run lost in a window and to what, with a strip of its states and how it stands."""
    found = meant(service, asked)
    return Answer(
        content=lambda: _runs(service, found, asked), version=found.version, as_of=found.as_of
    )


def _runs(service: Service, found: Meant, asked: RunsQuestion) -> dict[str, Any]:
    cost, shares = price(service), service.fleet_shares
    rows = [
        (share := shares.share(one, found.span), lost_by_run(share), one) for one in found.inside
    ]
    if asked.sort == "lost":
        shown, after = page(rows, lambda row: (-row[1]["low"], row[0].run), asked)
    else:
        shown, after = page(rows, lambda row: (-lived(row[2])[0], row[0].run), asked)
    return {
        **found.said(),
        "price": price_object(cost),
        "runs": [
            _run_row(share, lost, one, shares.strip(one, found.span, asked.slots))
            | {"lost_cost": cost_of(lost, cost)}
            for share, lost, one in shown
        ],
        "of": len(rows),
        "next": after,
    }


def _shares(service: Service, snapshots: Iterable[Snapshot], span: Span) -> list[Share]:
    return [service.fleet_shares.share(one, span) for one in snapshots if span.meets(*lived(one))]


def _labelled(service: Service, found: Meant, by: str | None) -> Iterable[tuple[str | None, Share]]:
    """Yield what each run adds, with the label of its group; None is without it."""
    if by == MONTH:
        for month, span in spans.months(found.span):
            for share in _shares(service, found.snapshots, span):
                yield month, share
        return
    for share in _shares(service, found.snapshots, found.span):
        yield (None if by is None else share.labels.get(by)), share


def _run_row(
    share: Share, lost: Mapping[str, int], snapshot: Snapshot, strip: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    summary = snapshot.summary
    losses = {name: amount for name, amount in share.gpu.items() if name != "productive"}
    largest = max(losses, key=lambda name: losses[name], default=None)
    worst = max(share.incidents, key=lambda one: (one.lost_gpu, one.incident), default=None)
    return {
        **{
            name: summary[name]
            for name in (
                "run",
                "run_name",
                "state",
                "labels",
                "start",
                "end",
                "as_of",
                "provisional",
                "attempts",
                "failed_starts",
                "open_incidents",
                "steps",
                "checkpoint",
                "steps_at_risk",
                "arrival",
            )
        },
        "wall_time": ratios(share.wall, share.training_good),
        "gpu_time": ratios(share.gpu, share.training_good),
        "lost_gpu_ns": lost,
        "largest_loss": None
        if largest is None or not losses[largest]
        else {"category": largest, "gpu_ns": losses[largest]},
        "incidents": len(share.incidents),
        "sides": sides(share.incidents),
        "worst_incident": None if worst is None else brief(worst),
        "strip": [
            {"start": start, "end": end, "category": category} for start, end, category in strip
        ],
    }


_RATIOS = schemas.named(
    "Totals",
    object_of(
        elapsed_ns=schemas.INTEGER,
        categories=map_of(schemas.INTEGER),
        training_goodput=schemas.RANGE,
        infrastructure_goodput=schemas.RANGE,
    ),
)
_AMOUNT = object_of(low=schemas.INTEGER, high=schemas.INTEGER)
_COST = optional(object_of(low=schemas.NUMBER, high=schemas.NUMBER))
_PRICE = optional(object_of(per_gpu_hour=schemas.NUMBER, currency=schemas.TEXT))
_SIDE = object_of(side=schemas.TEXT, incidents=schemas.INTEGER, lost_gpu_ns=schemas.INTEGER)
DISTRIBUTION = schemas.named(
    "Distribution",
    object_of(
        count=schemas.INTEGER,
        p50=optional(schemas.INTEGER),
        p95=optional(schemas.INTEGER),
        max=optional(schemas.INTEGER),
    ),
)
INCIDENT_LINE = schemas.named(
    "IncidentLine",
    object_of(
        incident=schemas.TEXT,
        run=schemas.TEXT,
        run_name=schemas.TEXT,
        number=schemas.INTEGER,
        opened=schemas.INTEGER,
        cause=schemas.TEXT,
        node=optional(schemas.TEXT),
        headline=schemas.TEXT,
        recovered_ns=optional(schemas.INTEGER),
        lost_gpu_ns=schemas.INTEGER,
    ),
)
FLEET = schemas.named(
    "Fleet",
    object_of(
        runs=schemas.INTEGER,
        running=schemas.INTEGER,
        open_incidents=schemas.INTEGER,
        attempts=schemas.INTEGER,
        failed_starts=schemas.INTEGER,
        wall_time=_RATIOS,
        gpu_time=_RATIOS,
        lost_gpu_ns=_AMOUNT,
        lost_cost=_COST,
        incidents=schemas.INTEGER,
        mtbf=object_of(
            failures=schemas.INTEGER,
            up_ns=schemas.INTEGER,
            ns=optional(schemas.INTEGER),
            low_ns=optional(schemas.INTEGER),
            high_ns=optional(schemas.INTEGER),
        ),
        recovered_ns=DISTRIBUTION,
        sides=list_of(_SIDE),
        causes=list_of(schemas.both(_SIDE, object_of(cause=schemas.TEXT))),
    ),
)
_CELL = object_of(
    **BETWEEN,
    categories=map_of(schemas.INTEGER),
    incidents=schemas.INTEGER,
    causes=map_of(schemas.INTEGER),
    costliest=optional(INCIDENT_LINE),
)
_RUN_ROW = object_of(
    run=schemas.TEXT,
    run_name=schemas.TEXT,
    state=schemas.TEXT,
    labels=map_of(schemas.ANYTHING),
    start=schemas.INTEGER,
    end=optional(schemas.INTEGER),
    as_of=schemas.INTEGER,
    attempts=schemas.INTEGER,
    failed_starts=schemas.INTEGER,
    open_incidents=schemas.INTEGER,
    wall_time=_RATIOS,
    gpu_time=_RATIOS,
    lost_gpu_ns=_AMOUNT,
    lost_cost=_COST,
    largest_loss=optional(object_of(category=schemas.TEXT, gpu_ns=schemas.INTEGER)),
    incidents=schemas.INTEGER,
    sides=list_of(_SIDE),
    worst_incident=optional(INCIDENT_LINE),
    strip=list_of(object_of(**BETWEEN, category=schemas.TEXT)),
)
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/fleet",
        fleet,
        object_of(
            by=optional(schemas.TEXT),
            **WINDOW,
            price=_PRICE,
            groups=list_of(schemas.both(FLEET, object_of(label=optional(schemas.TEXT)))),
            before=optional(FLEET),
        ),
    ),
    Endpoint.get(
        "/api/v1/fleet/course",
        fleet_course,
        object_of(**WINDOW, width_ns=schemas.INTEGER, cells=list_of(_CELL)),
    ),
    Endpoint.get(
        "/api/v1/fleet/runs",
        fleet_runs,
        object_of(
            **WINDOW,
            price=_PRICE,
            runs=list_of(_RUN_ROW),
            of=schemas.INTEGER,
            next=schemas.NEXT,
        ),
    ),
)
