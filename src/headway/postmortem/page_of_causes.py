"""The section on the suspect: whom the evidence accuses, why, and what is on record of them."""

from collections.abc import Sequence
from datetime import tzinfo

from headway.fleet.rates import NS_PER_DAY
from headway.postmortem.blocks import Block, Pairs, Text
from headway.postmortem.model import GpuRecord, NodeRecord, Postmortem
from headway.postmortem.moments import moment
from headway.postmortem.page_of_others import others
from headway.wording import count, counted, duration

Rows = list[tuple[str, str]]


def suspect(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    """Return whom the evidence accuses, with their history."""
    one, verdict = found.suspect, found.verdict
    rows: Rows = []
    if one.rank is not None:
        rows.append(("Rank", count(one.rank)))
    rows += [
        (name, value) for name, value in (("Node", one.node), ("GPU", one.gpu)) if value is not None
    ]
    accused = bool(rows)
    evidence = sum(line.evidence for line in found.timeline)
    if evidence:
        rows.append(("Evidence", f"{counted(evidence, 'line')} marked in the timeline"))
    if accused and one.rule is not None:
        rows.append(("Rule", one.rule))
    if verdict.signature is not None:
        rows.append(("Signature", verdict.signature))
    if verdict.false_alarm:
        rows.append(("Doubt", "perhaps a false alarm: the timeout hit a phase that may take long"))
    rows += [("Repeats", words) for words in one.repeats]
    rows += [] if one.node_record is None else _node(one.node_record, zone)
    rows += [] if one.gpu_record is None else _gpu(one.gpu_record)
    blocks: list[Block] = []
    if not accused:
        blocks.append(Text(words="The evidence accuses no rank, no node and no GPU."))
    if rows:
        blocks.append(Pairs(rows=rows))
    return (*blocks, *_earlier(found, zone)) if accused else blocks


def _earlier(found: Postmortem, zone: tzinfo) -> Sequence[Block]:
    earlier, number = found.suspect.earlier, found.suspect.num_earlier
    if not earlier:
        return (Text(words="No earlier incident on record had suspected the same."),)
    more = number - len(earlier)
    shown = f", of which these are the {count(len(earlier))} newest" if more else ""
    words = f"{counted(number, 'earlier incident')} suspected the same node or rank{shown}:"
    return Text(words=words), others(earlier, zone, shares=False)


def _node(one: NodeRecord, zone: tzinfo) -> Rows:
    watched = f"{duration(round(one.node_days * NS_PER_DAY))} of runs on it"
    if not one.failures:
        return [("Record of the node", f"no failure of the machine in {watched}")]
    long_enough = one.rate is not None and one.node_days >= 1
    rate = f", {one.rate:,.1f} per 1,000 node-days" if long_enough else ""
    last = "" if one.last_failure is None else f"; the last at {moment(one.last_failure, zone)}"
    failed = f"{counted(one.failures, 'failure')} of the machine in {watched}{rate}{last}"
    return [("Record of the node", failed)]


def _gpu(one: GpuRecord) -> Rows:
    product = "" if one.product is None else f"{one.product}; "
    named = f" ({', '.join(one.names)})" if one.names else ""
    week = one.repeats_in_week
    lately = "" if week is None else f", {count(week)} of them within seven days"
    words = (
        f"{product}{counted(one.faults, 'fault')}{named}; to blame for "
        f"{counted(one.incidents, 'incident')}{lately}"
    )
    return [("Record of the GPU", words), *(("Advice", advice) for advice in one.advice)]
