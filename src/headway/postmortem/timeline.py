"""One timeline out of all sources, in order of time, with the first fault marked.

Taken are the records of the run and of its nodes from five minutes before the fault until the
incident closed, what people and alerts said, and the turns that the ledger found. What several
ranks tell alike within seconds is one line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from headway.ledger import Ledger
from headway.ledger.attempt_time import PARTS
from headway.ledger.intake import Stamped
from headway.postmortem import sources
from headway.postmortem.happenings import shortened, words_of
from headway.postmortem.model import Line, Told
from headway.postmortem.sources import Tellers
from headway.wording import count, counted, duration, plain, remark

BEFORE = 300 * 10**9
"""Time in ns before the fault from which records are told."""
AFTER = 60 * 10**9
"""Time in ns after the closing within which a machine may still tell of the fault."""
ALIKE = 5 * 10**9
"""Records that say the same and follow each other within this, in ns, are one line."""
MOST = 200
"""Lines that are kept: of more the first and the last ones, and those that are marked."""
_LAST = 60
_STARTING = (*PARTS, "checkpoint_load")
"""Phases of a start that say what its time went to."""
_LONG = 10**9
"""Time in ns from which on such a phase is told."""
_STATES = (RestartBudget, Allocation, Health)
"""Records that tell how something stands, which is news only where it changed."""
_FEW = 4
"""Faults and ends that say the same and are told apart nevertheless."""
_TELLING = (Fault, RankExited, AttemptEnded, StopAnnounced)
_RANKS_NAMED = 4
_OPENS = "the incident opens: by its own word the first fault, seen {} later, began here"
_NODES_NAMED = 3
Answer = Mapping[str, Any]


class _Key(NamedTuple):
    """What lines have in common that are one."""

    source: str
    words: str
    attempt: str | None


class _Marks(NamedTuple):
    """Which records, by producer and sequence, the verdict looked at, and which stand out."""

    evidence: frozenset[tuple[str, int]]
    echoes: frozenset[tuple[str, int]]
    first_fault: tuple[str, int] | None
    decides: tuple[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One record on its way to a line; of a few `telling` ones each has a line of its own."""

    time: int
    key: _Key
    rank: int | None = None
    node: str | None = None
    record: str | None = None
    until: int | None = None
    telling: bool = False
    evidence: bool = False
    echo: bool = False
    first_fault: bool = False
    decides: bool = False


def timeline(
    one: Answer, ledger: Ledger, tellers: Tellers, alerts: Sequence[Told] = ()
) -> list[Line]:
    """Return the timeline of an incident, every line of it."""
    seen = [*_records(one, ledger, tellers), *_turns(one, ledger), *_concluded(one)]
    lines = [*_united(seen), *_said(one), *_told(alerts)]
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


def _records(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[_Seen]:
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
        words = words_of(envelope.event) if start <= fact.time <= limit else None
        if words is None or fact.time > ledger.as_of:
            continue
        if isinstance(envelope.event, AttemptStarted | Resumed) and fact.attempt in numbers:
            words = f"attempt {numbers[fact.attempt]}: {words}"
        record = envelope.producer, envelope.first_sequence
        yield _Seen(
            time=fact.time,
            key=_Key(tellers.source(fact), words, fact.attempt),
            rank=envelope.rank,
            node=envelope.node,
            record=f"{record[0][:8]}/{record[1]}",
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
        [(event["producer"], event["sequence"]) for event in item["events"]]
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


def _signs_of_life(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[_Seen]:
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
            key = _Key(source, words, attempt.identity)
            yield _Seen(time=time, key=key, rank=rank, node=log.node)


def _starting(one: Answer, ledger: Ledger, tellers: Tellers) -> Iterator[_Seen]:
    """Tell what the starts of the attempts to recover spent a second or more on."""
    source = tellers.usual(sources.RANK)
    for attempt in ledger.book.attempts:
        if attempt.identity not in one["attempt_ids"][1:]:
            continue
        for rank, log in attempt.ranks.items():
            for phase in log.phases:
                known = ledger.closed_at if phase.end is None else phase.end
                if phase.name not in _STARTING or known - phase.start < _LONG:
                    continue
                words = f"attempt {attempt.number}: {plain(phase.name)}"
                if phase.end is None:
                    words += ", which has not ended"
                yield _Seen(
                    time=phase.start,
                    until=known,
                    key=_Key(source, words, attempt.identity),
                    rank=rank,
                    node=log.node,
                )


def _turns(one: Answer, ledger: Ledger) -> Iterator[_Seen]:
    """Tell the turns of the incident that the ledger found."""

    def turn(time: int, words: str) -> _Seen:
        return _Seen(time=time, key=_Key(sources.LEDGER, words, None))

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
        yield turn(one["opened"], _OPENS.format(later))
    resumed = one["tries"][-1]["resumed"] if one["tries"] else None
    if one["recovered"] is not None:
        which = "the first step" if resumed is None else f"step {count(resumed + 1)}"
        yield turn(one["recovered"], f"{which} is done: training goes on")
    if one["caught_up"] is not None and one["rollback_steps"]:
        again = counted(one["rollback_steps"], "step")
        yield turn(one["caught_up"], f"caught up: the {again} rolled back are done again")
    if one["closed"] is not None:
        yield turn(one["closed"], "the incident closes: the attempt holds")


def _concluded(one: Answer) -> Iterator[_Seen]:
    """Tell the observations that no record makes by itself, such as a rank that fell silent."""
    for place, item in enumerate(one["observations"]):
        if not item["events"]:
            yield _Seen(
                time=item["time"],
                key=_Key(sources.LEDGER, shortened(item["words"]), item["attempt"]),
                rank=item["rank"],
                node=item["node"],
                evidence=True,
                first_fault=place == one["first_fault"],
                decides=place == one["decided_by"],
            )


def _united(seen: Sequence[_Seen]) -> Iterator[Line]:
    """Make one line of what is alike; what is marked stays apart."""
    open_: dict[_Key, list[_Seen]] = {}
    for item in sorted(seen, key=lambda item: item.time):
        alike = open_.get(item.key)
        if item.first_fault or item.decides:
            yield _line([item])
        elif alike is not None and item.time - alike[-1].time <= ALIKE:
            alike.append(item)
        else:
            if alike is not None:
                yield from _lines(alike)
            open_[item.key] = [item]
    for alike in open_.values():
        yield from _lines(alike)


def _lines(alike: Sequence[_Seen]) -> Iterator[Line]:
    if alike[0].telling and len(alike) <= _FEW:
        yield from (_line([item]) for item in alike)
    else:
        yield _line(alike)


def _line(alike: Sequence[_Seen]) -> Line:
    first = alike[0]
    ends = [item.time if item.until is None else item.until for item in alike]
    return Line(
        time=first.time,
        until=max(ends) if max(ends) > first.time else None,
        source=first.key.source,
        words=first.key.words,
        about=_about(alike),
        record=first.record,
        count=len(alike),
        spans=first.until is not None,
        evidence=any(item.evidence for item in alike),
        echo=any(item.echo for item in alike),
        first_fault=first.first_fault,
        decides=first.decides,
    )


def _about(alike: Sequence[_Seen]) -> str | None:
    ranks = sorted({item.rank for item in alike if item.rank is not None})
    nodes = sorted({item.node for item in alike if item.node is not None})
    more = len(nodes) - _NODES_NAMED
    on = ", ".join(nodes[:_NODES_NAMED]) + (f" and {count(more)} more" if more > 0 else "")
    who = ranks_in_words(ranks)
    return " on ".join(part for part in (who, on) if part) or None


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return sorted ranks as people write them: `rank 3`, `ranks 0-2, 7 and 40 more`."""
    if not ranks:
        return ""
    stretches: list[list[int]] = []
    for rank in ranks:
        if stretches and rank == stretches[-1][1] + 1:
            stretches[-1][1] = rank
        else:
            stretches.append([rank, rank])
    shown = stretches[:_RANKS_NAMED]
    words = ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in shown)
    more = len(ranks) - sum(high - low + 1 for low, high in shown)
    noun = "rank" if len(ranks) == 1 else "ranks"
    return f"{noun} {words}" + (f" and {count(more)} more" if more else "")


def _said(one: Answer) -> Iterator[Line]:
    for said in one["history"]:
        yield Line(
            time=said["time"],
            source=sources.PERSON,
            about=said["author"],
            words=shortened(remark(said)),
        )


def _told(alerts: Sequence[Told]) -> Iterator[Line]:
    for told in alerts:
        yield Line(
            time=told.time,
            source=sources.ALERTS,
            about=f"to {told.receiver}",
            words=f"{plain(told.status)}: {shortened(told.headline)}",
        )
