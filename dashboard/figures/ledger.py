"""Where the time of a run, or of all runs, went."""

from collections.abc import Callable
from dataclasses import replace

from headway import metrics
from headway.dashboard.bars import Part, Row
from headway.dashboard.figures.style import Report
from headway.dashboard.palette import NEUTRAL
from headway.wording import duration, percent


def ledger_rows(time: Report) -> list[tuple[metrics.Category, int]]:
    """Return the categories that hold time, in reading order, and always `unattributed`."""
    times = time["categories"]
    names = [*metrics.CATEGORIES, *sorted(set(times) - set(metrics.CATEGORIES))]
    return [
        (metrics.category(name), times.get(name, 0))
        for name in names
        if times.get(name, 0) or name in ("productive", "unattributed")
    ]


def waterfall(
    time: Report,
    top: str = "Elapsed",
    meaning: str = "The run's whole time, from its first evidence on.",
    say: Callable[[int], str] = duration,
) -> list[Row]:
    """Return the way from elapsed time down to productive time; the shares sum to 100 %.

    `top` names the whole, `say` puts amounts of it in words.
    """
    whole = left = time["elapsed_ns"]

    def row(title: str, begin: int, ns: int, colour: str, meaning: str, amount: str = "") -> Row:
        return Row(
            name=title,
            share=percent(ns / whole),
            parts=[Part(begin=begin / whole, width=ns / whole, colour=colour)],
            amount=amount,
            meaning=[f"{say(ns)}, {percent(ns / whole)}", meaning],
        )

    rows = [row(top, 0, whole, NEUTRAL, meaning)]
    for category, ns in ledger_rows(time):
        if category.name != "productive":
            left -= ns
            amount = say(ns) if ns else ""
            rows.append(
                row(category.title, left, ns, category.colour, category.description, amount)
            )
    lasting = metrics.category("productive")
    productive = time["categories"].get("productive", 0)
    last = row(lasting.title, 0, productive, lasting.colour, lasting.description)
    return [*rows, _at_risk(last, time, say)]


def _at_risk(row: Row, time: Report, say: Callable[[int], str]) -> Row:
    """Hatch what of the productive time a failure would still take."""
    at_risk = time.get("parts", {}).get("productive", {}).get("at_risk", 0)
    if not at_risk:
        return row
    (kept,) = row.parts
    share = at_risk / time["elapsed_ns"]
    hatched = replace(kept, begin=kept.width - share, width=share, hatched=True)
    said = (
        f"Hatched, at risk: {say(at_risk)}, {percent(share)}. No durable checkpoint holds it yet."
    )
    return replace(row, parts=[kept, hatched], meaning=[*row.meaning, said])
