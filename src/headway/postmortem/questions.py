"""What a post-mortem leaves open, derived from what is known and asked no further than that."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.events import Artifact, CheckpointLoadFailed
from headway.fleet.sides import is_failure, side_of
from headway.ledger import Ledger
from headway.postmortem.model import Configurations, Told
from headway.postmortem.sources import first_fault
from headway.wording import counted, duration, percent, plain

Answer = Mapping[str, Any]
_FIRM = ("the record names it", "the record names the rank")
"""How the suspect was found where a record itself accuses it."""
_LARGE, _LONG = 0.3, 10**9
"""Share of an incident's time, and time in ns, from which on a phase is worth a question."""


def questions(
    one: Answer,
    ledger: Ledger,
    configuration: Configurations,
    alerts: Sequence[Told] | None,
) -> list[str]:
    """Return the open questions about an incident, the most important first."""
    return [
        *_of_cause(one, ledger),
        *_of_suspect(one),
        *_of_change(one, configuration),
        *_of_recovery(one, ledger),
        *_of_time(one, ledger),
        *_of_people(one, alerts),
    ]


def _of_cause(one: Answer, ledger: Ledger) -> Iterator[str]:
    cause = one["cause"]
    if cause == "unknown":
        yield "What broke? The evidence names no cause."
    elif one["corrected_by"] is not None and cause != one["original_cause"]:
        yield (
            f"Why did the rule say {plain(one['original_cause'])}, when {one['corrected_by']} "
            f"found {plain(cause)}? What evidence would have shown it?"
        )
    elif side_of(cause) == "undecided":
        traces = any(
            isinstance(fact.envelope.event, Artifact) and fact.attempt == one["attempt_ids"][0]
            for fact in ledger.book.facts
        )
        kept = "the files named above may tell" if traces else "no stack or trace of it was kept"
        yield (
            f"Why did it happen? The cause on record, {plain(cause)}, may be the machine's doing "
            f"or the software's; {kept}."
        )
    if one["suspected_false_alarm"]:
        yield (
            "Was anything broken at all? The timeout hit a phase that may take long, and nothing "
            "else was wrong."
        )


def _of_suspect(one: Answer) -> Iterator[str]:
    rank, node, gpu, rule = (
        one[name] for name in ("suspect_rank", "suspect_node", "suspect_gpu", "suspect_rule")
    )
    if rank is None and node is None and gpu is None:
        if not is_failure(one["cause"]):
            return
        yield "Whose was it? The evidence accuses no rank, no node and no GPU."
    elif gpu is None and rule not in (None, *_FIRM) and not one["persistent"]:
        who = f"rank {rank}" if rank is not None else node
        yield f"Was it {who}? No fault on record names it; this alone speaks against it: {rule}."
    for what, times in sorted(one["persistent"].items()):
        yield f"Why the same {what} {counted(times, 'time')} in a row?"


def _of_change(one: Answer, configuration: Configurations) -> Iterator[str]:
    before = [
        each.setting for each in configuration.differences if each.attempt == configuration.broken
    ]
    if before:
        more = len(before) - 3
        named = ", ".join(before[:3]) + (f" and {more} more" if more > 0 else "")
        yield f"Did a change of the settings matter? The attempt that broke had changed: {named}."


def _of_recovery(one: Answer, ledger: Ledger) -> Iterator[str]:
    if one["outcome"] == "open":
        yield "What will bring it back? No attempt has held yet."
    elif one["outcome"] == "not_recovered":
        yield "What would have brought it back? No attempt held before the run ended."
    valid = one["recovery_valid"]
    if one["recovered"] is not None and valid["valid"] != "yes":
        says = "is not" if valid["valid"] == "no" else "may not be"
        yield f"The training after it {says} the one before it: {valid['reason']}. Does it matter?"
    unread = {
        fact.envelope.event.checkpoint
        for fact in ledger.book.facts
        if isinstance(fact.envelope.event, CheckpointLoadFailed)
        and fact.attempt in one["attempt_ids"]
        and fact.time <= ledger.as_of
    }
    for warning in one["warnings"]:
        named = next((each for each in sorted(unread) if repr(each) in warning), None)
        if named is None:
            yield f"Why this, and does it matter: {warning}?"
        else:
            yield f"Why could checkpoint {named} not be read back? So training {warning}."


def _of_time(one: Answer, ledger: Ledger) -> Iterator[str]:
    spent = one["phases"]
    whole = sum(spent.values())
    for phase, asks, until in (
        ("detect", "Could it be noticed sooner?", "until anybody acted"),
        ("wait", "Must it wait so long?", "until anybody started anything"),
        ("start", "Could a start be shorter?", "for rendezvous, processes and model"),
        ("load", "Could loading be faster?", "to read the checkpoint back"),
        ("recompute", "Should checkpoints be closer together?", "to do steps again"),
    ):
        took = spent.get(phase, 0)
        if took >= _LONG and took / whole >= _LARGE:
            share = percent(took / whole)
            seen = first_fault(one, ledger) if phase == "detect" else None
            limit = None if seen is None else seen.timeout
            known = "" if limit is None else f"; the watchdog's timeout is {duration(limit)}"
            yield f"{asks} It took {duration(took)}, {share} of the incident, {until}{known}."


def _of_people(one: Answer, alerts: Sequence[Told] | None) -> Iterator[str]:
    if not is_failure(one["cause"]):
        return
    if alerts is not None and not alerts:
        yield "Should somebody have been told? No alert about it went out."
    if one["acknowledged_by"] is None:
        yield "Who follows this up? Nobody has taken charge of the incident."
