"""Writes the figures of simulated months as the page `docs/alerts_quality.md`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FIXED_ON = range(1, 11)
"""Seeds of the months on which thresholds are fixed; others are for judging."""
_MEANING = {
    "loop": "what broke the run stays, and broke it again",
    "hang": "nothing moves, and no watchdog will end it",
    "down": "no layer will start the run again",
    "last_restart": "the outermost layer has no restart left",
    "forgotten": "a load did not find the newest checkpoint, and nobody said so",
    "starved": "over half of the time goes to waiting for data, for hours",
    "saves_fail": "saves fail",
    "writes_slow": "background writes take nearly the whole interval",
    "straggler": "one rank holds all others up",
    "broken_gpu": "a GPU asks for a reset or worse",
    "unreadable": "a checkpoint proved torn when it was loaded",
    "few_restarts": "the outermost layer has at most one restart left",
    "near_timeout": "a phase took over 70 % of the timeout that guards it",
}
_EARLY = (
    "told before the need began: something else broke the run between the first and the second "
    "break by what stays, and on the same rank or node"
)
_LEFT = (
    "what a need left behind: breaks count until the next durable checkpoint, and an overlooked "
    "checkpoint until it is passed"
)
_BY_CHANCE: Mapping[str, str] = {
    "PersistentFault": "two breaks in a row had a rank, node, checkpoint or signature in common by "
    "chance, often a start that failed twice, and a later attempt held: at the second nobody knows",
    "RestartLoop": "three attempts since the newest durable checkpoint, of which the last held: "
    "faults that had nothing to do with each other, most in runs of 64 nodes and more",
    "NotRecovered": "it took longer than thrice what is usual, and came back by itself",
    "GoodputBurnFast": "most of an hour was lost to recoveries that worked in the end",
}
"""What a false page of a rule comes from, where no need was near."""
_BRIEF = 90 * 60
"""Seconds in which the rule about starving, which looks back on an hour, is sure to tell."""
_HEAD = """<!-- Written by `scripts/bench alerts --page FILE`; run it again instead of editing. -->

# Are the right people woken?

{days} days of a simulated fleet, {runs} runs a month, seeds {seeds}: {run_days} run-days,
{node_days} node-days, {incidents} incidents. The rules are those that are shipped, computed and
grouped by the code that serves.
{fixed}

## What is true

The simulator knows what it did to a run, and never asks Headway. A person has to be woken from the
moment at which the run cannot mend itself any more until the simulated person has mended it. Nobody
has to be woken for what recovers: machines that break at 6.50 per 1000 node-days in the shares of
the Llama 3 table, collectives that a watchdog ends after ten minutes, failed starts, preemptions
with their queue, resizes, and two windows of maintenance of four hours that nobody announced to
Headway.

A page is true if one of its rules was told of while such a need held and is about it. A need is met
by the first page, or ticket, with a rule that names it. All else is false, or missed. Looks are as
far apart as `benchmarks/paging/watching.py` says: delays are exact to a minute for what stands
still, and to two hours for what gets worse in a run that goes on.

Left out are rules about nodes (RepeatOffenderNode) and about Headway itself (AgentSilent and the
others of the pipeline), since a month has neither, RecoveryNotValid, since its runs have no losses,
RunFailed, since none is given up, and GoodputBurnSlow where it alone sums up a day.
"""


def page(found: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    seeds, months = _seeds(found["seeds"]), len(found["seeds"])
    words = {**found, "seeds": seeds, "runs": found["runs"] // months}
    head = _HEAD.format(**words, fixed=_fixed(found["seeds"]))
    return "\n".join([head, *_severity(found, "page"), *_severity(found, "ticket")]) + "\n"


def _fixed(judged: Sequence[int]) -> str:
    """Say on which seeds the thresholds were fixed, and whether these are among them."""
    own = [seed for seed in judged if seed in FIXED_ON]
    words = f"Thresholds and what the conditions mean were fixed on seeds {_seeds(FIXED_ON)}"
    return f"{words}, with {_seeds(own)} of these." if own else f"{words}, before."


def _seeds(seeds: Sequence[int]) -> str:
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 2 and last - first + 1 == len(seeds):
        return f"{first} to {last}"
    return ", ".join(map(str, seeds))


def _severity(found: Mapping[str, Any], severity: str) -> Iterator[str]:
    part = found[f"{severity}s"]
    yield f"## {severity.capitalize()}s\n"
    yield (
        f"**{part['told']} {severity}s, {_percent(part['precision'])} of them true; "
        f"{part['met']} of {part['needs']} needs met ({_percent(part['recall'])}).** "
        f"{part['per_week']} a week for the whole fleet, {part['false_per_week']} of them false."
    )
    yield ""
    yield from _table(
        ("told first by", "told", "true", "false", "precision", "a week"),
        (
            (name, one["told"], one["true"], one["false"], _percent(one["precision"]),
             one["per_week"])
            for name, one in part["by_rule"].items()
        ),
    )  # fmt: skip
    yield from _table(
        ("need", "", "times", "met", "recall", "delay: half", "nine in ten", "longest"),
        (
            (f"`{kind}`", _MEANING[kind], one["needs"], one["met"], _percent(one["recall"]),
             *_delays(one["delay_s"]))
            for kind, one in part["by_need"].items()
        ),
    )  # fmt: skip
    yield from _listed(part, severity)


def _listed(part: Mapping[str, Any], severity: str) -> Iterator[str]:
    """Name each false and each missed page; of tickets the reasons and how often."""
    if severity == "page":
        yield "Why pages were false:\n"
        causes = Counter(map(_explained, part["false_ones"]))
        yield from _table(("explanation", "pages"), causes.most_common())
        yield "Why needs were missed:\n"
        causes = Counter(map(_overlooked, part["missed_ones"]))
        yield from _table(("explanation", "needs"), causes.most_common())
        yield "Every false page, and what was going on:\n"
        yield from _table(
            ("seed, run", "nodes", "at", "rules", "in truth"),
            (
                (f"{one['seed']}, {one['run']}", one["nodes"], _hours(one["at_s"]),
                 ", ".join(one["rules"]), one["why"])
                for one in part["false_ones"]
            ),
        )  # fmt: skip
        yield "Every need that nobody was woken for:\n"
        yield from _table(
            ("seed, run", "nodes", "need", "at", "lasted", "meanwhile"),
            (
                (f"{one['seed']}, {one['run']}", one["nodes"], one["kind"], _hours(one["at_s"]),
                 _hours(one["lasted_s"]), one["why"])
                for one in part["missed_ones"]
            ),
        )  # fmt: skip
        return
    reasons = Counter((", ".join(one["rules"]), _short(one["why"])) for one in part["false_ones"])
    yield "False tickets by rule, and what was going on:\n"
    yield from _table(
        ("rules", "in truth", "times"), ((*what, count) for what, count in reasons.most_common())
    )
    lost = Counter((one["kind"], _short(one["why"])) for one in part["missed_ones"])
    yield "Missed:\n"
    yield from _table(
        ("need", "meanwhile", "times"), ((*what, count) for what, count in lost.most_common())
    )


def _explained(one: Mapping[str, Any]) -> str:
    """Return where a false page comes from."""
    if "before the need" in one["why"]:
        return _EARLY
    if one["why"].startswith("after the need"):
        return _LEFT
    return _BY_CHANCE.get(one["rules"][0], f"{one['rules'][0]}: {one['why']}")


def _overlooked(one: Mapping[str, Any]) -> str:
    """Return why nobody was woken for a need."""
    if one["lasted_s"] < _BRIEF:
        return f"`{one['kind']}`: it was over within {_BRIEF // 60} min, before the rule can tell"
    return f"`{one['kind']}`: never bad enough for the rule; {one['why']}"


def _table(head: Sequence[str], rows: Iterator[Sequence[object]] | Any) -> Iterator[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    if not lines:
        yield "None.\n"
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from lines
    yield ""


def _short(why: str) -> str:
    """Return a reason without its figures, so that equal ones are counted together."""
    return why.partition(":")[2].partition(",")[2].partition(" by itself")[0].strip() or why


def _delays(delays: Mapping[str, float] | None) -> tuple[str, str, str]:
    if delays is None:
        return ("", "", "")
    return _minutes(delays["p50"]), _minutes(delays["p90"]), _minutes(delays["max"])


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.1f} h"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f} %"
