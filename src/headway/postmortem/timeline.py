"""One timeline out of all sources, in order of time, with the first fault marked.

Taken are the records of the run and of its nodes from five minutes before the fault until the
incident closed, what people and alerts said, and the turns that the ledger found. What several
ranks tell alike within seconds is one line.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from headway.events import (
    Allocation,
    AttemptEnded,
    AttemptStarted,
    CheckpointFinalized,
    Fault,
    Health,
    RankExited,
    RestartBudget,
    RestartPhase,
    Resumed,
    StopAnnounced,
)
from headway.incidents.model import Source
from headway.ledger import Ledger
from headway.ledger.attempt_time import PARTS
from headway.ledger.breakage import fault_start
from headway.ledger.intake import Stamped
from headway.postmortem import sources
from headway.postmortem.happenings import shortened, words_of
from headway.postmortem.model import Line, Told
from headway.postmortem.sources import Tellers
from headway.postmortem.uniting import Key, Seen, united
from headway.wording import count, counted, duration, plain, remark

BEFORE = 300 * 10**9
"""Time in ns before the fault from which records are told."""
AFTER = 60 * 10**9
"""Time in ns after the closing within which a machine may still tell of the fault."""
MOST = 200
"""Lines that are kept: of more the first and the last ones, and those that are marked."""
_LAST = 60
_STARTING = (*PARTS, "checkpoint_load")
"""Phases of a start that say what its time went to."""
_LONG = 10**9
"""Time in ns from which on such a phase is told."""
_STATES = (RestartBudget, Allocation, Health)
"""Records that tell how something stands, which is news only where it changed."""
_TELLING = (Fault, RankExited, AttemptEnded, StopAnnounced)
_OWN_WORD = "the incident opens: by its own word the first fault, seen {} later, began here"
_NO_STEP = "the incident opens: the first fault was seen {} later, and no step was done since"
Answer = Mapping[str, Any]


class _Marks(NamedTuple):
    """Which records, by producer and sequence, the verdict looked at, and which stand out."""

    evidence: frozenset[Source]
    echoes: frozenset[Source]
    first_fault: Source | None
    decides: Source | None


def _named(record: Source) -> str:
    """Return how a line names a record."""
    return f"{record.producer[:8]}/{record.sequence}"


def timeline(
    one: Answer,
    ledger: Ledger,
    tellers: Tellers,
    alerts: Sequence[Told] = (),
    remarks: Sequence[Answer] = (),
) -> list[Line]:
    """Return the timeline of an incident, every line of it.

    `remarks` are what people said of its run, its node and its attempts meanwhile.
    """
    told = [*_records(one, ledger, tellers)]
    seen = [*told, *_turns(one, ledger), *_concluded(one, {item.record for item in told})]
    lines = [*united(seen), *_said([*one["history"], *remarks]), *_told(alerts)]
    places = {name: place for place, name in enumerate(sources.MEANINGS)}

    def order(line: Line) -> tuple[int, int, int, str]:
        """The ledger concludes last, but for the opening; of one moment the fault comes first."""
        before = line.source == sources.LEDGER and line.time <= one["opened"]
        marked = line.first_fault or line.decides
        stage = 0 if before else 1 if marked else 2 if line.evidence else 3
        return line.time, stage, places.get(line.source, 0), line.words

    return sorted(lines, key=order)


def kept(lines: Sequence[Line]) -> list[Line]:
    """Return the lines for which there is room."""
    if len(lines) <= MOST:
        return [*lines]
    first, last = MOST - _LAST, len(lines) - _LAST
    return [
        line
        for place, line in enumerate(lines)
        if not first <= place < last or line.first_fault or line.decides
    ]


def span_of(one: Answer) -> tuple[int, int]:
    """Return from when to when the records of an incident count, in UTC ns."""
    last = one["as_of"] if one["closed"] is None else max(one["closed"], one["caught_up"] or 0)
    return one["opened"] - BEFORE, max(last, one["opened"])


def _records(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[Seen]:
    start, end = span_of(one)
    numbers = {attempt.identity: attempt.number for attempt in ledger.book.attempts}
    marks = _marks(one)
    nodes = {
        log.node
        for attempt in ledger.book.attempts
        if attempt.identity in one["attempt_ids"]
        for log in attempt.ranks.values()
    }
    of_nodes = (fact for fact in ledger.book.of_nodes if fact.envelope.node in nodes)
    ends = _ends(ledger.book.facts)
    told = _worth_telling(chain(ledger.book.facts, of_nodes), one["opened"])
    for fact in told:
        envelope = fact.envelope
        limit = end if envelope.run is not None else end + AFTER
        # the last save may be old; it is what the incident goes back to
        meant = start <= fact.time or isinstance(envelope.event, CheckpointFinalized)
        words = words_of(envelope.event) if meant and fact.time <= limit else None
        if words is None or fact.time > ledger.as_of:
            continue
        if isinstance(envelope.event, AttemptStarted | Resumed) and fact.attempt in numbers:
            words = f"attempt {numbers[fact.attempt]}: {words}"
        record = Source(envelope.producer, envelope.first_sequence)
        yield Seen(
            time=fact.time,
            key=Key(tellers.source(fact), words, fact.attempt),
            rank=envelope.rank,
            node=envelope.node,
            record=_named(record),
            until=ends.get(id(fact)),
            telling=isinstance(envelope.event, _TELLING),
            evidence=record in marks.evidence,
            echo=record in marks.echoes,
            first_fault=record == marks.first_fault,
            decides=record == marks.decides,
        )
    yield from _signs_of_life(one, ledger, tellers)
    yield from _starting(one, ledger, tellers)


def _marks(one: Answer) -> _Marks:
    records = [
        [Source(event["producer"], event["sequence"]) for event in item["events"]]
        for item in one["observations"]
    ]
    first, decides = (
        None if place is None or not records[place] else records[place][0]
        for place in (one["first_fault"], one["decided_by"])
    )
    echoes = (told for item, told in zip(one["observations"], records, strict=True) if item["echo"])
    return _Marks(
        frozenset(chain.from_iterable(records)),
        frozenset(chain.from_iterable(echoes)),
        first,
        decides,
    )


def _ends(facts: Iterable[Stamped]) -> dict[int, int]:
    """Return when each phase of a restart ended, by the identity of the fact that it began."""
    begun: dict[tuple[str, str, str], int] = {}
    found = {}
    for fact in facts:
        event = fact.envelope.event
        if isinstance(event, RestartPhase):
            key = fact.envelope.producer, event.layer, event.phase
            if event.state == "began":
                begun[key] = id(fact)
            elif key in begun:
                found[begun.pop(key)] = fact.time
    return found


def _worth_telling(facts: Iterable[Stamped], opened: int) -> Iterator[Stamped]:
    """Leave out what repeats what was known, and all saves before the fault but the last."""
    known: dict[object, object] = {}
    saved: Stamped | None = None
    for fact in facts:
        event = fact.envelope.event
        if isinstance(event, CheckpointFinalized) and fact.time < opened:
            saved = fact if saved is None or fact.time > saved.time else saved
        elif not isinstance(event, _STATES) or _is_news(event, fact.envelope.node, known):
            yield fact
    if saved is not None:
        yield saved


def _is_news(
    event: RestartBudget | Allocation | Health, node: str | None, known: dict[object, object]
) -> bool:
    """Whether restarts were used up, GPUs came or went, a check failed or succeeds again."""
    match event:
        case RestartBudget():
            before = known.get(event.layer)
            known[event.layer] = event.remaining
            return isinstance(before, int) and event.remaining < before
        case Allocation():
            before, known["held"] = known.get("held"), (event.gpus_held, event.nodes_held)
            return before is not None and before != known["held"]
    before, known[node, event.check] = known.get((node, event.check)), event.state
    return event.state != before and "unhealthy" in (event.state, before)


def _signs_of_life(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[Seen]:
    """Tell what agents saw last of each rank of the broken attempt after the fault."""
    source = tellers.usual(sources.AGENT)
    for attempt in ledger.book.attempts:
        if attempt.identity != one["attempt_ids"][0]:
            continue
        for rank, log in attempt.ranks.items():
            if log.heartbeat is None or log.heartbeat[0] < one["opened"]:
                continue
            time, event = log.heartbeat
            words = words_of(event)
            assert words is not None  # noqa: S101  # a heartbeat always says something
            key = Key(source, words, attempt.identity)
            yield Seen(time=time, key=key, rank=rank, node=log.node)


def _starting(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[Seen]:
    """Tell what the starts of the attempts to recover spent a second or more on."""
    source = tellers.usual(sources.RANK)
    for place, attempt in enumerate(ledger.book.attempts):
        if attempt.identity not in one["attempt_ids"][1:]:
            continue
        alive = ledger.is_alive(place)
        gone = {rank: time for time, rank, _ in reversed(attempt.exits)}
        for rank, log in attempt.ranks.items():
            end = ledger.closed_at if alive else gone.get(rank, attempt.end)
            for phase in log.phases:
                known = end if phase.end is None else phase.end
                if phase.name not in _STARTING or known - phase.start < _LONG:
                    continue
                words = f"attempt {attempt.number}: {plain(phase.name)}"
                if phase.end is None:
                    words += ", which goes on" if alive else ", cut short"
                yield Seen(
                    time=phase.start,
                    until=known,
                    key=Key(source, words, attempt.identity),
                    rank=rank,
                    node=log.node,
                )


def _turns(one: Answer, ledger: Ledger) -> Iterator[Seen]:
    """Tell the turns of the incident that the ledger found."""

    def turn(time: int, words: str) -> Seen:
        return Seen(time=time, key=Key(sources.LEDGER, words, None))

    broken = next(
        (each for each in ledger.book.accounts if each.attempt.identity == one["attempt_ids"][0]),
        None,
    )
    if broken is not None and broken.steps is not None:
        last = int(broken.steps.number[-1])
        yield turn(broken.steps.last_end, f"step {count(last)} is done, the last before the fault")
    first = one["first_fault"]
    fault = None if first is None else one["observations"][first]
    if fault is not None and fault["began"] == one["opened"] < fault["time"]:
        later = duration(fault["time"] - one["opened"])
        record = sources.first_fault(one, ledger)
        own = record is not None and fault_start(fault["time"], record, one["opened"]) is not None
        yield turn(one["opened"], (_OWN_WORD if own else _NO_STEP).format(later))
    resumed = one["tries"][-1]["resumed"] if one["tries"] else None
    if one["recovered"] is not None:
        which = "the first step" if resumed is None else f"step {count(resumed + 1)}"
        yield turn(one["recovered"], f"{which} is done: training goes on")
    if one["caught_up"] is not None and one["rollback_steps"]:
        again = counted(one["rollback_steps"], "step")
        yield turn(one["caught_up"], f"caught up: the {again} rolled back are done again")
    if one["closed"] is not None:
        yield turn(one["closed"], "the incident closes: the attempt holds")


def _concluded(one: Answer, told: Collection[str | None]) -> Iterator[Seen]:
    """Tell the observations that no record told makes, such as a rank that fell silent."""
    for place, item in enumerate(one["observations"]):
        records = (Source(event["producer"], event["sequence"]) for event in item["events"])
        if not any(_named(record) in told for record in records):
            yield Seen(
                time=item["time"],
                key=Key(sources.LEDGER, shortened(item["words"]), item["attempt"]),
                rank=item["rank"],
                node=item["node"],
                evidence=True,
                first_fault=place == one["first_fault"],
                decides=place == one["decided_by"],
            )


def _said(remarks: Iterable[Answer]) -> Iterator[Line]:
    for said in remarks:
        about = said["about"]
        where = "" if about == "incident" else f"of the {about} {said['subject']}: "
        yield Line(
            time=said["time"],
            source=sources.PERSON,
            about=said["author"],
            words=shortened(f"{where}{remark(said)}"),
        )


def _told(alerts: Sequence[Told]) -> Iterator[Line]:
    for told in alerts:
        yield Line(
            time=told.time,
            source=sources.ALERTS,
            about=f"to {told.receiver}",
            words=f"{plain(told.status)}: {shortened(told.headline)}",
        )
