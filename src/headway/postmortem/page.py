"""A post-mortem laid out for a reader: sections in the order in which people ask."""

from collections.abc import Sequence
from datetime import UTC, tzinfo

from headway.incidents.vocabulary import OUTCOME_WORDS
from headway.postmortem.blocks import Block, Bullets, Document, Pairs, Row, Section, Table, Text
from headway.postmortem.model import Line, Postmortem
from headway.postmortem.moments import clock, date, moment, offset, zone_name
from headway.postmortem.page_of_causes import suspect
from headway.postmortem.page_of_others import alerts, run_name, similar
from headway.postmortem.page_of_recovery import configuration, cost, phases, recovery
from headway.postmortem.sources import MEANINGS
from headway.wording import count, counted, duration, plain, titled, when

_NOTICEABLE = 10**9
"""Time in ns from which on it is told how long alike records followed each other."""


def page(found: Postmortem, zone: tzinfo) -> Document:
    """Return a post-mortem for readers in a time zone."""
    what, _, _ = found.headline.rstrip(".").partition(";")
    return Document(
        title=f"Post-mortem: {what}",
        lead=found.headline,
        sections=(
            Section(title="In short", blocks=_short(found, zone)),
            Section(title="What happened", blocks=_timeline(found, zone)),
            Section(title="What it cost", blocks=cost(found)),
            Section(title="What the time went to", blocks=phases(found)),
            Section(title="Whose it was", blocks=suspect(found, zone)),
            Section(title="What recovered it", blocks=recovery(found, zone)),
            Section(title="Similar incidents", blocks=similar(found, zone)),
            Section(title="What had changed", blocks=configuration(found)),
            Section(title="Whom alerts told", blocks=alerts(found, zone)),
            Section(title="Gaps in the evidence", blocks=_listed(found.gaps, "None is known.")),
            Section(title="Open questions", blocks=_listed(found.questions, "None.")),
        ),
        foot=f"Written by Headway from what was known at {when(found.as_of, UTC)}.",
    )


def _short(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    outcome = found.recovery.outcome
    rows = [
        ("Incident", f"{found.incident}, number {count(found.number)} of its run"),
        ("Run", run_name(found.run, found.run_name)),
    ]
    if found.team is not None:
        rows.append(("Team", found.team))
    if found.labels:
        rows.append(("Labels", ", ".join(found.labels)))
    rows += [
        ("State", f"{titled(found.state)}. {OUTCOME_WORDS.get(outcome, plain(outcome))}"),
        ("Cause", _cause(found)),
        ("Opened", moment(found.opened, zone)),
        ("Recovered", _later(found, found.recovered, zone)),
        ("Caught up", _later(found, found.caught_up, zone)),
        ("Closed", _later(found, found.closed, zone)),
    ]
    by, at = found.acknowledged_by, found.acknowledged_at
    taken = "nobody" if by is None else f"{by}, {_later(found, at, zone)}"
    return (Pairs(rows=[*rows, ("Taken charge of by", taken)]),)


def _cause(found: Postmortem) -> str:
    verdict = found.verdict
    by_rule = f"{plain(verdict.original_cause)} (rule: {verdict.rule})"
    if verdict.corrected_by is None:
        return by_rule
    reason = "" if verdict.reason is None else f": {verdict.reason}"
    return f"{plain(verdict.cause)}, corrected by {verdict.corrected_by}{reason}; it was {by_rule}"


def _later(found: Postmortem, time: int | None, zone: tzinfo) -> str:
    if time is None:
        return "not yet" if found.state == "open" else "never"
    after = max(time - found.opened, 0)
    return f"{moment(time, zone)}, {duration(after)} after the opening"


def _timeline(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    note = (
        f"Times are in {zone_name(found.opened, zone)}, of {date(found.opened, zone)} unless "
        "another date stands with them; the second column counts from the opening of the "
        "incident. Records that say the same within seconds are one line. A record is named by "
        "its producer and its number. The verdict looked at what is marked, and rests on the one "
        "that decides; an echo is what a dead peer looks like from outside."
    )
    columns = ("Time", "#After", "Source", "About", "Record", "What")
    rows = [_row(line, found.opened, zone) for line in found.timeline]
    hidden = found.num_lines - len(found.timeline)
    left_out = f"{counted(hidden, 'line')} in the middle had no room and are left out."
    used = {line.source for line in found.timeline}
    return (
        Text(words=note),
        Table(columns=columns, rows=rows),
        *([Text(words=left_out)] if hidden else []),
        Text(words="Where the lines come from:"),
        Bullets(items=[f"{name}: {said}." for name, said in MEANINGS.items() if name in used]),
    )


def _row(line: Line, opened: int, zone: tzinfo) -> Row:
    marks = (
        ("first fault", line.first_fault),
        ("decides", line.decides),
        ("echo", line.echo),
        ("evidence", line.evidence and not (line.first_fault or line.decides or line.echo)),
    )
    return Row(
        cells=(
            clock(line.time, opened, zone),
            offset(line.time, opened),
            line.source,
            line.about or "",
            line.record or "",
            _words(line, opened, zone),
        ),
        marks=[name for name, holds in marks if holds],
        stands_out=line.first_fault,
    )


def _words(line: Line, opened: int, zone: tzinfo) -> str:
    lasted = 0 if line.until is None else line.until - line.time
    added = []
    if line.spans and lasted:
        added.append(f"took {duration(lasted)}")
    elif line.until is not None and lasted >= _NOTICEABLE:
        added.append(f"the last at {clock(line.until, opened, zone)}")
    if line.count > 1 and not (line.about or "").startswith("ranks "):
        added.append(counted(line.count, "record"))
    return f"{line.words} ({', '.join(added)})" if added else line.words


def _listed(items: Sequence[str], none: str) -> Sequence[Block]:
    return (Bullets(items=items) if items else Text(words=none),)
