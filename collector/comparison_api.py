"""Two sides beside each other over HTTP: runs, windows of a run or of all runs, configurations."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint, NotKnown
from headway.collector.fleet_shares import FleetShares
from headway.collector.run_api import RunFilter, meant
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import FLAG, INTEGER, TEXT, list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.collector.window_api import Excluded, excluded_of
from headway.comparison.estimates import FINDINGS, Estimate
from headway.comparison.fairness import doubts
from headway.comparison.figures import compared
from headway.comparison.intervals import CONFIDENCE
from headway.comparison.parts import Stretch
from headway.comparison.results import Numbers, compared_results
from headway.comparison.sides import Side, side_of
from headway.course.configuration import UNITS, Value, changed
from headway.course.periods import Key, reads_as, setting_name, values_of
from headway.ledger.pieces import merge
from headway.wording import when

_RUN = "Id or name of a run; without one, all runs."
_ATTEMPT = "Only while the configuration of this attempt of the run held, by its number."
_SETTING = "Only while this setting held in a run, as NAME=VALUE."
_START, _END = "Only time from then on, UTC ns.", "Only time up to then, UTC ns."
_EXAMPLE = "checkpoint_interval=200"
_MOST_VALUES = 10
"""Values of a setting that a refusal lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSides:
    """A question about two sides."""

    one_run: Annotated[str | None, Asked(sentence=_RUN)] = None
    one_attempt: Annotated[int | None, Asked(sentence=_ATTEMPT, lowest=1)] = None
    one_setting: Annotated[str | None, Asked(sentence=_SETTING, example=_EXAMPLE)] = None
    one_start: Annotated[int | None, Asked(sentence=_START)] = None
    one_end: Annotated[int | None, Asked(sentence=_END)] = None
    other_run: Annotated[str | None, Asked(sentence=_RUN)] = None
    other_attempt: Annotated[int | None, Asked(sentence=_ATTEMPT, lowest=1)] = None
    other_setting: Annotated[str | None, Asked(sentence=_SETTING, example=_EXAMPLE)] = None
    other_start: Annotated[int | None, Asked(sentence=_START)] = None
    other_end: Annotated[int | None, Asked(sentence=_END)] = None
    label: Annotated[
        tuple[str, ...],
        Asked(
            sentence="Of all runs only those with this label, as NAME=VALUE.",
            example="team=research",
        ),
    ] = ()
    exclude: Excluded = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What one side is to be."""

    run: str | None
    attempt: int | None
    setting: str | None
    start: int | None
    end: int | None

    @property
    def name(self) -> str:
        """Return what the side is called."""
        parts = [] if self.run is None else [self.run]
        if self.attempt is not None:
            parts[-1:] = [f"{self.run}#{self.attempt}"]
        if self.setting is not None:
            parts.append(self.setting)
        if self.start is not None or self.end is not None:
            first = "the beginning" if self.start is None else when(self.start)
            last = "now" if self.end is None else when(self.end)
            parts.append(f"{first} to {last}")
        return ", ".join(parts) or "all runs"


def comparison(service: Service, asked: TwoSides) -> Answer:
    """Figures of two sides with their difference, and what of it chance explains.

    A side is a run, a window of it or of all runs, or the time for which a configuration held.
    """
    wanted = [
        _Wanted(**{name: getattr(asked, f"{side}_{name}") for name in _Wanted.__slots__})
        for side in ("one", "other")
    ]
    if any(side.attempt is not None and side.run is None for side in wanted):
        raise BadQuestion("an attempt without its run", "Name the run, too.")
    excluded = merge(excluded_of(asked.exclude))
    found = [_stretches(service, side, asked.label) for side in wanted]
    versions = [snapshot.version for side in found for snapshot, *_ in side]
    version = hashlib.sha256(f"{versions} {len(service.results.all())}".encode()).hexdigest()

    def content() -> dict[str, Any]:
        one, other = (
            side_of(
                [Stretch(of=each, start=start, end=end) for each, start, end in side],
                excluded,
                service.fleet_shares.part,
            )
            for side in found
        )
        return {
            "as_of": min((each.as_of for side in found for each, *_ in side), default=0),
            "confidence": CONFIDENCE,
            "one": _side(wanted[0].name, one),
            "other": _side(wanted[1].name, other),
            "figures": [
                asdict(figure)
                for figure in (
                    *compared(one, other),
                    *compared_results(*(_results(service, side) for side in found)),
                )
            ],
            "doubts": doubts(one, other),
            "units": dict(UNITS),
            "settings": [
                asdict(change)
                for change in changed(*(_settings(service, side) for side in (found[1], found[0])))
            ],
        }

    return Answer(content=content, version=version)


_Stretches = Sequence[tuple[Snapshot, int, int]]


def _stretches(service: Service, side: _Wanted, labels: tuple[str, ...]) -> _Stretches:
    """Return the runs of a side, each with its begin and end in UTC ns.

    Raises:
        NotKnown: there is no such run, attempt or setting.
        BadQuestion: what is no setting, or a window that ends before it starts.
    """
    if side.start is not None and side.end is not None and side.end < side.start:
        raise BadQuestion(f"{side.name} ends before it starts", "Swap the two times.")
    if side.run is not None:
        snapshots = [service.ledgers.snapshot(side.run)]
    else:
        snapshots = meant(service.ledgers.fleet().snapshots, RunFilter(label=labels))
    found = [
        (snapshot, start, end)
        for snapshot in snapshots
        for start, end in _held(service.fleet_shares, snapshot, side)
    ]
    if not found and side.setting is not None:
        raise _no_such_setting(service.fleet_shares, snapshots, side.setting)
    return [
        (snapshot, max(start, side.start or start), end if side.end is None else min(end, side.end))
        for snapshot, start, end in found
        if (side.start is None or end > side.start) and (side.end is None or start < side.end)
    ]


def _held(shares: FleetShares, snapshot: Snapshot, side: _Wanted) -> list[tuple[int, int]]:
    """Return the parts of a run in which the configuration that is meant held.

    Raises:
        NotKnown: the run has no such attempt.
        BadQuestion: what is no setting.
    """
    report = snapshot.report
    if side.attempt is None and side.setting is None:
        return [(report["start"], report["as_of"] if report["end"] is None else report["end"])]
    meant = list(shares.periods(snapshot))
    if side.attempt is not None:
        if side.attempt > report["attempts"]:
            raise NotKnown(
                f"{snapshot.run} has {report['attempts']} attempts and no {side.attempt}",
                f"`headway report {snapshot.run}` lists them.",
            )
        meant = [one for one in meant if side.attempt in one.attempts]
    if side.setting is not None:
        name, value = _setting(side.setting)
        meant = [
            one
            for one in meant
            if any(reads_as(key, known, value) for key, known in values_of(one, name))
        ]
    return [(one.start, one.end) for one in meant]


def _setting(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise BadQuestion(f"setting must be NAME=VALUE, got {given!r:.80}", f"Write {_EXAMPLE}.")
    return name, value


def _no_such_setting(shares: FleetShares, snapshots: Sequence[Snapshot], given: str) -> NotKnown:
    """Return that nothing had a setting, with the values that its name had."""
    name, _ = _setting(given)
    known = sorted(
        {
            f"{setting_name(key)}={value}"
            for snapshot in snapshots
            for period in shares.periods(snapshot)
            for key, value in values_of(period, name)
        }
    )
    if not known:
        step = "`headway ask what-changed` and the Settings of a run list the names."
        return NotKnown(f"no run tells of a setting {name!r:.80}", step)
    return NotKnown(f"no run had {given:.80}", f"There were: {', '.join(known[:_MOST_VALUES])}.")


def _settings(service: Service, side: _Stretches) -> Mapping[Key, Value]:
    """Return the settings with which a side ended; none of several runs."""
    if len({snapshot.run for snapshot, *_ in side}) != 1:
        return {}
    snapshot, _, end = side[-1]
    held = [one for one in service.fleet_shares.periods(snapshot) if one.start < end]
    return held[-1].settings if held else {}


def _results(service: Service, side: _Stretches) -> list[tuple[str, Numbers]]:
    """Return the attached results of the configurations that a side had, by title."""
    attempts = {
        attempt["attempt"]
        for snapshot, start, end in side
        for attempt in snapshot.report["attempt_list"]
        if attempt["start"] < end and (attempt["end"] is None or attempt["end"] > start)
    }
    return [
        (one.title, one.numbers) for one in service.results.all() if one.configuration in attempts
    ]


def _side(name: str, side: Side) -> dict[str, Any]:
    return {
        "name": name,
        "runs": list(side.runs),
        "elapsed_ns": side.elapsed,
        "left_out_ns": side.left_out,
        "live": side.is_live,
    }


_SIDE = schemas.named(
    "Side",
    object_of(name=TEXT, runs=list_of(TEXT), elapsed_ns=INTEGER, left_out_ns=INTEGER, live=FLAG),
)
_ESTIMATE = schemas.named("Estimate", schemas.of(Estimate))
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/comparison",
        comparison,
        object_of(
            as_of=INTEGER,
            confidence=schemas.NUMBER,
            one=_SIDE,
            other=_SIDE,
            figures=list_of(
                object_of(
                    name=TEXT,
                    title=TEXT,
                    unit=TEXT,
                    higher_is_better=optional(FLAG),
                    one=_ESTIMATE,
                    other=_ESTIMATE,
                    difference=_ESTIMATE,
                    finding={**TEXT, "enum": list(FINDINGS)},
                )
            ),
            doubts=list_of(TEXT),
            units=map_of(TEXT),
            settings=list_of(schemas.CHANGE),
        ),
    ),
)
