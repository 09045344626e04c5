"""The sections on what else there is: other incidents, and the people whom alerts told."""

from collections.abc import Sequence
from datetime import tzinfo

from headway.postmortem.blocks import Block, Row, Table, Text
from headway.postmortem.model import Other, Postmortem, Told
from headway.postmortem.moments import clock
from headway.wording import count, counted, when


def similar(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    """Return the incidents that are like this one."""
    if not found.similar:
        return (Text(words="No other incident shares its signature, its GPU or its node."),)
    more = found.num_similar - len(found.similar)
    shown = f"; these are the {count(len(found.similar))} most alike" if more else ""
    words = f"{counted(found.num_similar, 'other incident')} of any run{shown}:"
    return Text(words=words), others(found.similar, zone, shares=True)


def others(listed: Sequence[Other], zone: tzinfo, *, shares: bool) -> Table:
    """Return a table of incidents, with what they have in common with this one or without."""
    columns = ("Incident", "Opened", "Run", *(("In common",) if shares else ()), "What")
    rows = [
        Row(
            cells=(
                one.incident,
                when(one.opened, zone),
                run_name(one.run, one.run_name),
                *((", ".join(one.shares),) if shares else ()),
                one.headline,
            )
        )
        for one in listed
    ]
    return Table(columns=columns, rows=rows)


def alerts(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    """Return whom alerts told of it, what came of that, and who took it."""
    if found.alerts is None:
        return (Text(words="Unknown: no book of alerts could be read."),)
    if not found.alerts:
        words = "Nobody: no notice about the run or the suspected node went out meanwhile."
        return (Text(words=words),)
    columns = ("Time", "To", "What", "Because", "Came of it", "Taken by")
    table = Table(columns=columns, rows=[_notice(one, found.opened, zone) for one in found.alerts])
    more = found.num_alerts - len(found.alerts)
    return (table, Text(words=f"{counted(more, 'later notice')} left out.")) if more else (table,)


def _notice(one: Told, opened: int, zone: tzinfo) -> Row:
    taken = one.acknowledged_by or "nobody"
    if one.acknowledged_at is not None:
        taken += f" at {clock(one.acknowledged_at, opened, zone)}"
    return Row(
        cells=(
            clock(one.time, opened, zone),
            one.receiver,
            f"{one.status}: {one.headline}",
            one.why,
            one.state + (f": {one.answer}" if one.answer else ""),
            taken,
        )
    )


def run_name(run: str, name: str) -> str:
    """Return what a run is called, with its identity where that is another one."""
    return run if run == name else f"{name} ({run})"
