"""Which runs and which part of their time a question means, and what their time costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Asked, BadQuestion
from headway.collector.run_api import RunFilter, chosen
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import optional
from headway.collector.service import Service
from headway.fleet import spans
from headway.fleet.spans import Span
from headway.fleet.totals import Price

BETWEEN = {"start": schemas.INTEGER, "end": schemas.INTEGER}
"""Begin and end of a span of time in UTC ns."""
WINDOW = {"as_of": optional(schemas.INTEGER), **BETWEEN}
"""The window that an answer is about, and up to when live runs are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWindow(RunFilter):
    """Which runs are meant, and which part of their time."""

    last: Annotated[
        int | None,
        Asked(
            sentence="Only the last so many ns up to the newest sign of any of these runs, and as "
            "long before it as `before`.",
            lowest=1,
        ),
    ] = None
    start: Annotated[int | None, Asked(sentence="Only time from then on, UTC ns.")] = None
    end: Annotated[int | None, Asked(sentence="Only time up to then, UTC ns.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The runs that a question means, and the part of their time; `before` is as long.

    Equal versions mean the same; `as_of` (UTC ns) is None where no run is live.
    """

    snapshots: Sequence[Snapshot]
    span: Span
    before: Span | None
    version: str
    as_of: int | None

    @property
    def inside(self) -> list[Snapshot]:
        """Return the runs that lived in the window."""
        return [one for one in self.snapshots if self.span.meets(*lived(one))]

    def said(self) -> dict[str, int | None]:
        """Return the window as an answer says it: its end is the newest moment in it."""
        return {"as_of": self.as_of, "start": self.span.start, "end": self.span.end - 1}


def meant(service: Service, asked: FleetWindow) -> Meant:
    """Return the runs and the window that a question means.

    Raises:
        BadQuestion: a window that is given twice or ends before it starts.
    """
    known = service.ledgers.fleet()  # before the runs, which may be newer than their version
    found = chosen(service, asked)
    live = any(one.summary["end"] is None for one in found)
    told: dict[str, Any] = {
        "snapshots": found,
        "version": known.version,
        "as_of": known.as_of if live else None,
    }
    newest = max((lived(one)[1] for one in found), default=service.clock())
    if asked.last is not None:
        if asked.start is not None or asked.end is not None:
            raise BadQuestion("last is given with start or end", "Give one or the other.")
        span, before = spans.last(asked.last, newest)
        return Meant(span=span, before=before, **told)
    oldest = min((lived(one)[0] for one in found), default=newest)
    start = oldest if asked.start is None else asked.start
    end = newest if asked.end is None else asked.end
    if end < start:
        raise BadQuestion(f"the window ends at {end} before it starts at {start}", "Swap them.")
    return Meant(span=Span(start, end + 1), before=None, **told)


def price(service: Service) -> Price | None:
    """Return what a GPU-hour costs, if somebody said so."""
    settings = service.settings
    if settings.gpu_hour_price is None:
        return None
    return Price(per_gpu_hour=settings.gpu_hour_price, currency=settings.currency)


def price_object(one: Price | None) -> dict[str, Any] | None:
    """Return a price as JSON values."""
    return None if one is None else {"per_gpu_hour": one.per_gpu_hour, "currency": one.currency}


def lived(one: Snapshot) -> tuple[int, int]:
    """Return when a run began and when it ended or was seen last, in UTC ns."""
    return one.summary["start"], one.summary["end"] or one.summary["as_of"]
