"""What the evidence of an incident lacks: who told nothing, what was lost, what may be off."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.events import Clock, Dropped, GpuPresent, Health
from headway.ledger import Ledger
from headway.ledger.attempts import Attempt
from headway.postmortem import sources
from headway.postmortem.numbering import absent_ranks_in_words, in_stretches, ranks_in_words
from headway.postmortem.timeline import span_of
from headway.wording import count, counted, flag

_IMPORTED = "All of it was read from imported logs: no agent, launcher or machine was watched."
MOST = 40
"""Gaps that are told one by one."""
Answer = Mapping[str, Any]
Hole = tuple[str, int, int]
"""A producer, and the first and last record of its that never came."""


def gaps(
    one: Answer,
    report: Answer,
    ledger: Ledger,
    holes: Sequence[Hole],
    heard: Iterable[str],
    *,
    imported: bool,
    alerting: bool,
) -> list[str]:
    """Return what is missing, one sentence each; `heard` are the sources of the timeline.

    `imported` says that all was read from logs, `alerting` that a book of alerts was read.
    """
    attempts = [each for each in ledger.book.attempts if each.identity in one["attempt_ids"]]
    found = [
        *_of_attempts(attempts, one, report),
        *_of_records(report, ledger, holes),
        *_of_clocks(attempts, ledger),
    ]
    if imported:
        found.append(_IMPORTED)
    else:
        found += _of_sources(attempts, one, ledger, set(heard))
    hidden = one["num_observations"] - len(one["observations"])
    if hidden:
        found.append(f"{counted(hidden, 'more observation')} say the same of other ranks.")
    if one["state"] == "open":
        found.append("The incident is still open: what follows is not in this document.")
    if not alerting and not imported:
        found.append("No book of alerts could be read: whom anybody told is not known here.")
    more = len(found) - MOST
    return found if more <= 0 else [*found[:MOST], f"And {count(more)} more of this kind."]


def _of_attempts(attempts: Sequence[Attempt], one: Answer, report: Answer) -> Iterator[str]:
    short: dict[str, list[int]] = {}
    for attempt in attempts:
        world = attempt.world_size
        if world is not None and len(attempt.ranks) < world:
            missing = absent_ranks_in_words(attempt.ranks, world)
            seen = f"records of {count(len(attempt.ranks))} of {counted(world, 'rank')}"
            short.setdefault(f"{seen}; nothing came from {missing}", []).append(attempt.number)
    for words, numbers in short.items():
        yield f"{in_stretches(numbers, 'Attempt')}: {words}."
    for attempt in attempts:
        if attempt.identity == one["attempt_ids"][0] and len(attempts) > 1:
            ended = {rank for _, rank, _ in attempt.exits}
            unseen = ranks_in_words(sorted(attempt.ranks.keys() - ended))
            if unseen:
                yield f"Attempt {attempt.number}: nobody saw how {unseen} ended."
    told = all(attempt.world_size is not None for attempt in attempts)
    for name in report["flags"]:
        if name != "single_rank" or not told:  # which ranks told nothing is said above
            yield f"The ledger remarks: {flag(name)}."


def _of_records(report: Answer, ledger: Ledger, holes: Sequence[Hole]) -> Iterator[str]:
    if report["dropped_events"]:
        lost = counted(report["dropped_events"], "record")
        whys = {
            fact.envelope.event.reason
            for fact in ledger.book.facts
            if isinstance(fact.envelope.event, Dropped) and fact.time <= ledger.as_of
        }
        why = f" ({'; '.join(sorted(whys)[:3])})" if whys else ""
        yield f"{lost} of the run were lost before they could be stored{why}."
    for producer, first, last in holes:
        which = f"Record {first}" if first == last else f"Records {first} to {last}"
        verb = "has" if first == last else "have"
        yield f"{which} of producer {producer[:8]} {verb} not arrived."
    for one in report["problems"]:
        times = f" ({count(one['count'])} times)" if one["count"] > 1 else ""
        yield f"{one['detail'][:1].upper()}{one['detail'][1:]}{times}."


def _of_clocks(attempts: Sequence[Attempt], ledger: Ledger) -> Iterator[str]:
    """Say of which nodes nobody told how far their clocks are off."""
    nodes = _nodes(attempts)
    measured = {
        fact.envelope.node for fact in ledger.book.facts if isinstance(fact.envelope.event, Clock)
    }
    unknown = sorted(nodes - measured)
    if len(nodes) > 1 and unknown:
        yield (
            f"No offset of the clock is on record for {_named(unknown)}: either the clock agrees "
            "with the collector's within 10 ms, or no agent could measure it. The order of events "
            "of different nodes rests on it."
        )


def _of_sources(
    attempts: Sequence[Attempt], one: Answer, ledger: Ledger, heard: set[str]
) -> Iterator[str]:
    nodes = _nodes(attempts)
    checks = _checks(nodes, ledger, span_of(one)[1])
    for check, what in (("kernel_log", "kernel log"), ("gpu", "GPU driver")):
        silent = sorted(node for node in nodes if (node, check) not in checks)
        if silent:
            yield f"Nobody is known to have read the {what} of {_named(silent)}."
        for detail, unread in sorted(_disabled(checks, check).items()):
            why = f": {detail}" if detail else ""
            yield f"The {what} of {_named(unread)} could not be read{why}."
    seen = any(checks.get((node, "gpu"), ("disabled", None))[0] != "disabled" for node in nodes)
    held = ledger.book.held.at(one["opened"])
    if held and not seen:
        yield (
            f"GPU time counts the {counted(held, 'GPU')} that the run says it holds; no driver "
            "confirms it."
        )
    agents = {
        fact.envelope.node
        for fact in (*ledger.book.facts, *ledger.book.of_nodes)
        if fact.envelope.rank is None and fact.envelope.node is not None
    }
    silent = sorted(nodes - agents)
    if silent:
        yield f"No agent was heard from {_named(silent)}: machines and exits were not watched."
    launched = any(attempt.layer == "launcher" for attempt in attempts)
    if launched and not heard & {sources.LAUNCHER, sources.LAUNCHER_LOG, sources.PARENT}:
        yield "The launcher told nothing: it did not run under headway run."


def _disabled(
    checks: Mapping[tuple[str, str], tuple[str, str | None]], check: str
) -> dict[str, list[str]]:
    """Return the nodes on which a check found nothing to look at, by its words."""
    found: dict[str, list[str]] = {}
    for (node, name), (state, detail) in sorted(checks.items()):
        if name == check and state == "disabled":
            found.setdefault(detail or "", []).append(node)
    return found


def _checks(
    nodes: set[str], ledger: Ledger, until: int
) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Return the newest result of each check of each node, by then."""
    found: dict[tuple[str, str], tuple[str, str | None]] = {}
    for fact in ledger.book.of_nodes:
        node, event = fact.envelope.node, fact.envelope.event
        if node is None or node not in nodes or fact.time > until:
            continue
        if isinstance(event, Health):
            found[node, event.check] = event.state, event.detail
        elif isinstance(event, GpuPresent):
            found.setdefault((node, "gpu"), ("healthy", None))
    return found


def _nodes(attempts: Sequence[Attempt]) -> set[str]:
    return {log.node for each in attempts for log in each.ranks.values() if log.node is not None}


def _named(nodes: Sequence[str]) -> str:
    """Return nodes in words: at most three by name."""
    more = len(nodes) - 3
    return ", ".join(nodes[:3]) + (f" and {counted(more, 'more node')}" if more > 0 else "")
