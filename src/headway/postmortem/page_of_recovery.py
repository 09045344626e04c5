"""The sections on the way back: what it cost, what its time went to, what held, what changed."""

from collections.abc import Sequence
from datetime import tzinfo

from headway.incidents.vocabulary import OUTCOME_WORDS, PHASE_COLOURS, PHASE_MEANINGS
from headway.postmortem.blocks import Block, Figure, Mark, Pairs, Part, Row, Table, Text
from headway.postmortem.model import Postmortem, Restored, Try
from headway.postmortem.moments import clock
from headway.wording import UNKNOWN, count, counted, duration, gpu_hours, money, percent, plain

_OF_NO_PHASE = "#7B8794"


def cost(found: Postmortem) -> Sequence[Block]:
    """Return what the incident cost."""
    one = found.cost
    steps = one.rollback_steps
    share = "" if one.share is None else f", {percent(one.share)} of the run's time"
    gpus = "" if one.gpus is None else f", with {counted(one.gpus, 'GPU')} held"
    priced = "unknown: the collector was told no price of a GPU-hour"
    if one.money is not None and one.currency is not None:
        each = f"{one.per_gpu_hour:g} {one.currency} per GPU-hour"
        priced = f"{money(one.money, one.currency)}, at {each}"
    rows = [
        (
            "Rolled back",
            UNKNOWN if steps is None else f"{counted(steps, 'step')}, {duration(one.rollback_ns)}",
        ),
        ("Time lost", f"{duration(one.lost_ns)}{share}"),
        ("GPU time lost", f"{gpu_hours(one.lost_gpu_ns)}{gpus}"),
        ("Money", priced),
    ]
    words = (
        "Lost is the time from the opening until training went on, as far as nothing was gained in "
        "it, and that of the steps rolled back."
    )
    return Pairs(rows=rows), Text(words=words)


def phases(found: Postmortem) -> Sequence[Block]:
    """Return what the time from the opening until it had caught up went to."""
    whole = sum(one.ns for one in found.phases)
    if not whole:
        return (Text(words="No phase has taken any time."),)
    spent = [(one.phase, one.ns) for one in found.phases]
    rows = [
        Row(
            cells=(name, duration(ns), percent(ns / whole), PHASE_MEANINGS.get(name, "")),
            colour=_colour(name),
        )
        for name, ns in spent
    ]
    rows.append(Row(cells=("all", duration(whole), percent(1.0), "")))
    columns = ("Phase", "#Time", "#Share", "Spent on")
    return _figure(found, spent, whole), Table(columns=columns, rows=rows)


def _figure(found: Postmortem, spent: Sequence[tuple[str, int]], whole: int) -> Figure:
    """Return the phases one after the other, with the turns of the incident above them."""
    parts: list[Part] = []
    reached = 0
    for name, ns in spent:
        if ns:
            words, end = f"{name} {duration(ns)}", reached + ns
            parts.append(Part(start=reached, end=end, colour=_colour(name), name=name, words=words))
            reached = end
    turns = (
        (next((one.time for one in found.timeline if one.first_fault), None), "fault seen"),
        (found.acknowledged_at, "taken charge of"),
        (found.recovered, "recovered"),
        (found.caught_up, "caught up"),
    )
    marks = [
        Mark(time=time - found.opened, words=f"{words} after {duration(time - found.opened)}")
        for time, words in turns
        if time is not None and 0 <= time - found.opened <= whole
    ]
    told = ", ".join(part.words for part in parts)
    return Figure(words=told, length=whole, parts=parts, marks=marks)


def _colour(phase: str) -> str:
    return PHASE_COLOURS.get(phase, _OF_NO_PHASE)


def recovery(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    """Return what brought the training back, from where, and after how many attempts."""
    one = found.recovery
    rows = [("Outcome", OUTCOME_WORDS.get(one.outcome, plain(one.outcome)))]
    if one.layer is not None:
        held = found.recovered is not None
        rows.append(("Brought back by" if held else "Tried last by", _layer(one.layer)))
    if one.restored is not None:
        rows.append(("Checkpoint", _restored(one.restored)))
        rows.append(("To be done again", _again(found.cost.rollback_steps)))
    rows.append(("Same training", f"{one.valid}: {one.valid_reason}"))
    rows += [("Warning", words) for words in one.warnings]
    blocks: list[Block] = [Pairs(rows=rows)]
    if not one.tries:
        return (*blocks, Text(words="No attempt to recover has begun."))
    columns = (
        "#Attempt",
        "Started by",
        "Began",
        "Came to",
        "#From step",
        "#Until then",
        "Broke by",
    )
    body = [_try(tried, found.opened, zone) for tried in one.tries]
    hidden = one.num_tries - len(one.tries)
    if hidden:
        blocks.append(Text(words=f"{counted(hidden, 'attempt')} before these are left out."))
    return (*blocks, Table(columns=columns, rows=body))


def _restored(one: Restored) -> str:
    said = [f"{one.checkpoint}, {counted(one.step, 'step')} done"]
    if one.age_ns is not None:
        age = duration(abs(one.age_ns))
        late = one.age_ns < 0
        said.append(
            f"durable {age} after the opening" if late else f"durable {age} before the opening"
        )
    if one.state is not None:
        said.append(f"{plain(one.state)} since" if one.state == "verified" else plain(one.state))
    return ", ".join(said)


def _again(steps: int | None) -> str:
    return UNKNOWN if steps is None else counted(steps, "step")


def _try(one: Try, opened: int, zone: tzinfo) -> Row:
    return Row(
        cells=(
            count(one.number),
            _layer(one.layer),
            clock(one.began, opened, zone),
            plain(one.outcome),
            count(one.resumed),
            duration(one.until_then_ns),
            "it did not" if one.cause is None else plain(one.cause),
        )
    )


def _layer(layer: str) -> str:
    return "the wrapper inside the process" if layer == "in_process" else f"the {plain(layer)}"


def configuration(found: Postmortem) -> Sequence[Block]:
    """Return what changed in the settings from each attempt of the incident to the next."""
    known = found.configuration
    if known.broken is None or known.last is None:
        return (Text(words="No attempt is known, so that nothing can be compared."),)
    said = []
    if known.broken == 1:
        said.append("Attempt 1 broke; there is none before it in this run to compare it with.")
    if not known.told:
        said.append("No attempt of the incident recorded its settings.")
    first = max(known.broken - 1, 1)
    if first < known.last and not known.differences:
        said.append(f"From attempt {first} to attempt {known.last} nothing on record changed.")
    blocks: list[Block] = [Text(words=" ".join(said))] if said else []
    if not known.differences:
        return blocks
    rows = [
        Row(
            cells=(
                count(one.attempt),
                count(one.before_attempt),
                one.setting,
                one.before or "none",
                one.after or "none",
            )
        )
        for one in known.differences
    ]
    columns = ("#Attempt", "#Against", "Setting", "Before", "After")
    blocks.append(Table(columns=columns, rows=rows))
    more = known.num_differences - len(known.differences)
    return (*blocks, Text(words=f"{counted(more, 'more change')} left out.")) if more else blocks
