"""Parts of a run over HTTP: a window, sliding windows, planned maintenance left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint
from headway.collector.run_api import OneRun
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.window_report import sliding_report, window_report

_MOST_WINDOWS = 10_000
_LONGEST_PAIR = 39


Excluded = Annotated[
    tuple[str, ...],
    Asked(
        sentence="A stretch to leave out, as START-END in UTC ns.",
        example="1700000000000000000-1700000060000000000",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(OneRun):
    """A question about parts of a run."""

    exclude: Excluded = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWindow(_Part):
    """A question about the time between two moments."""

    start: Annotated[int | None, Asked(sentence="Begin in UTC ns; default: the run's.")] = None
    end: Annotated[int | None, Asked(sentence="End in UTC ns; default: the run's.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyWindows(_Part):
    """A question about windows that slide over the run."""

    length: Annotated[
        int | None, Asked(sentence="Length of a window in ns; default: the run's.", lowest=1)
    ] = None
    step: Annotated[
        int | None, Asked(sentence="From one window to the next in ns; default: length.", lowest=1)
    ] = None


def run_window(service: Service, asked: OneWindow) -> Answer:
    """The ledger of one run between two times."""
    snapshot = service.ledgers.snapshot(asked.run)
    ledger = snapshot.ledger
    start = ledger.start if asked.start is None else asked.start
    end = ledger.closed_at if asked.end is None else asked.end
    excluded = excluded_of(asked.exclude)
    try:
        found = window_report(ledger, start, end, excluded)
    except ValueError as error:
        raise BadQuestion(str(error), "Times are UTC nanoseconds.") from error
    return Answer(content=lambda: found, version=snapshot.version)


def run_windows(service: Service, asked: ManyWindows) -> Answer:
    """The ledger of one run in windows, the newest of which ends at the run's end."""
    snapshot = service.ledgers.snapshot(asked.run)
    ledger = snapshot.ledger
    length = asked.length or max(ledger.elapsed, 1)
    step = asked.step or length
    if ledger.elapsed // step > _MOST_WINDOWS:
        raise BadQuestion(
            f"step {step} cuts the run into more than {_MOST_WINDOWS} windows",
            f"At least {ledger.elapsed // _MOST_WINDOWS + 1} is needed.",
        )
    excluded = excluded_of(asked.exclude)
    try:
        found = sliding_report(ledger, length, step, excluded)
    except ValueError as error:
        raise BadQuestion(str(error), "Lengths are nanoseconds.") from error
    return Answer(content=lambda: found, version=snapshot.version)


def excluded_of(exclude: Sequence[str]) -> list[tuple[int, int]]:
    """Return begin and end in UTC ns of stretches to leave out.

    Raises:
        BadQuestion: what is no stretch.
    """
    found = []
    for given in exclude:
        start, _, end = given.partition("-")
        if not (given.isascii() and start.isdecimal() and end.isdecimal()) or (
            len(given) > _LONGEST_PAIR
        ):
            raise BadQuestion(
                f"exclude must be START-END in nanoseconds, got {given!r:.80}",
                "Times are UTC nanoseconds.",
            )
        found.append((int(start), int(end)))
    return found


_OF_WINDOWS = {"run": schemas.TEXT, "as_of": schemas.INTEGER}
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/runs/{run}/window",
        run_window,
        schemas.both(schemas.WINDOW, object_of(**_OF_WINDOWS)),
    ),
    Endpoint.get(
        "/api/v1/runs/{run}/windows",
        run_windows,
        object_of(**_OF_WINDOWS, windows=list_of(schemas.WINDOW)),
    ),
)
