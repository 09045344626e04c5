"""From answers to the post-mortem of one incident: every part of it, each bounded."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from headway.course.configuration import UNITS, Change, Configuration, configurations
from headway.course.setting_words import setting_name, setting_value
from headway.fleet.totals import Price
from headway.incidents.model import PHASES
from headway.ledger import Ledger
from headway.postmortem.gaps import Hole, gaps
from headway.postmortem.happenings import shortened
from headway.postmortem.model import (
    Configurations,
    Cost,
    Difference,
    GpuRecord,
    NodeRecord,
    Other,
    PhaseTime,
    Postmortem,
    Recovery,
    Restored,
    Suspect,
    Told,
    Try,
    Verdict,
)
from headway.postmortem.questions import questions
from headway.postmortem.sources import Tellers
from headway.postmortem.timeline import kept, timeline
from headway.wording import counted

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST = 20
"""Entries of each list beside the timeline: attempts, other incidents, notices, changes."""
Answer = Mapping[str, Any]
_Value = TypeVar("_Value", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What is known about one incident, as the read API tells it.

    `incident` is the whole of it, `report` that of its run, `node` the history of the suspected
    node. `similar` and `earlier` are other incidents, with what each shares; `notices` is None
    where no book of alerts could be read. `remarks` are what people said of the run, the node and
    the attempts meanwhile, `holes` records of the run that never came.
    """

    incident: Answer
    report: Answer
    ledger: Ledger
    node: Answer | None = None
    similar: Sequence[tuple[Answer, Sequence[str]]] = ()
    earlier: Sequence[Answer] = ()
    notices: Sequence[Told] | None = None
    remarks: Sequence[Answer] = ()
    holes: Sequence[Hole] = ()
    price: Price | None = None


def postmortem(found: Answers) -> Postmortem:
    """Return the post-mortem of an incident."""
    one, report, ledger = found.incident, found.report, found.ledger
    notices = found.notices or ()
    tellers = Tellers(ledger.book.facts)
    lines = timeline(one, ledger, tellers, notices, found.remarks)
    configuration = _configuration(one, ledger)
    return _by_name(
        Postmortem,
        one,
        labels=tuple(one["labels"]),
        attempt=configuration.broken,
        verdict=_by_name(Verdict, one, false_alarm=one["suspected_false_alarm"]),
        timeline=tuple(kept(lines)),
        num_lines=len(lines),
        cost=_cost(one, report, ledger, found.price),
        phases=tuple(PhaseTime(phase=name, ns=one["phases"].get(name, 0)) for name in PHASES),
        suspect=_suspect(one, found.node, found.earlier),
        recovery=_recovery(one, report),
        similar=tuple(_other(each, shares) for each, shares in found.similar[:MOST]),
        num_similar=len(found.similar),
        configuration=configuration,
        alerts=None if found.notices is None else tuple(notices[:MOST]),
        num_alerts=len(notices),
        gaps=tuple(
            gaps(
                one,
                report,
                ledger,
                found.holes,
                {line.source for line in lines},
                imported=tellers.imported,
                alerting=found.notices is not None,
            )
        ),
        questions=tuple(
            questions(one, ledger, configuration, None if tellers.imported else found.notices)
        ),
    )


def _by_name(kind: type[_Value], answer: Answer, **others: Any) -> _Value:
    """Return a value whose fields the answer tells by their names, but for the others."""
    same = {one.name: answer[one.name] for one in fields(kind) if one.name not in others}
    return kind(**same, **others)


def _cost(one: Answer, report: Answer, ledger: Ledger, price: Price | None) -> Cost:
    elapsed = report["elapsed_ns"]
    return _by_name(
        Cost,
        one,
        share=one["lost_ns"] / elapsed if elapsed else None,
        gpus=ledger.gpus_at(one["opened"]),
        money=None if price is None else price.of(one["lost_gpu_ns"]),
        currency=None if price is None else price.currency,
        per_gpu_hour=None if price is None else price.per_gpu_hour,
    )


def _suspect(one: Answer, node: Answer | None, earlier: Sequence[Answer]) -> Suspect:
    gpus = () if node is None else node["gpus"]
    gpu = next((each for each in gpus if each["device"] == one["suspect_gpu"]), None)
    return Suspect(
        rank=one["suspect_rank"],
        node=one["suspect_node"],
        gpu=one["suspect_gpu"],
        rule=one["suspect_rule"],
        repeats=tuple(
            f"{what}: {counted(times, 'time')} in a row"
            for what, times in sorted(one["persistent"].items())
        ),
        node_record=None if node is None else _node(node),
        gpu_record=None if gpu is None else _gpu(gpu, one["gpu_repeats_in_all_runs"]),
        earlier=tuple(_other(each, ()) for each in earlier[:MOST]),
        num_earlier=len(earlier),
    )


def _node(node: Answer) -> NodeRecord:
    rate = node["per_1000_node_days"]
    return _by_name(NodeRecord, node, node_days=rate["node_days"], rate=rate["rate"])


def _gpu(gpu: Answer, repeats: int | None) -> GpuRecord:
    return _by_name(
        GpuRecord,
        gpu,
        names=tuple(gpu["names"]),
        incidents=len(gpu["incidents"]),
        repeats_in_week=repeats,
        advice=tuple(gpu["advice"]),
    )


def _recovery(one: Answer, report: Answer) -> Recovery:
    tries, valid = one["tries"], one["recovery_valid"]
    # the last ones, among which is the one that held
    return Recovery(
        outcome=one["outcome"],
        layer=one["layer"],
        tries=tuple(_try(each) for each in tries[-MOST:]),
        num_tries=len(tries),
        restored=_restored(one, tries[-1], report) if tries else None,
        valid=valid["valid"],
        valid_reason=valid["reason"],
        warnings=tuple(one["warnings"]),
    )


def _try(tried: Answer) -> Try:
    return _by_name(
        Try,
        tried,
        began=_began(tried),
        until_then_ns=sum(ns for name, ns in tried["phases"].items() if name != "recompute"),
    )


def _began(tried: Answer) -> int:
    began: int | None = tried["began"]
    return int(tried["start"]) if began is None else began


def _restored(one: Answer, held: Answer, report: Answer) -> Restored | None:
    """Return the checkpoint of the last attempt, as the ledger knew the save it came from."""
    identity, step, began = held["checkpoint"], held["resumed"], _began(held)
    if identity is None or step is None:
        return None
    saves = [
        save
        for save in report["checkpoints"]
        if save["checkpoint"] == identity
        and (save["scheduled"] or save["durable_since"] or 0) <= began
    ]
    durable = saves[-1]["durable_since"] if saves else None
    return Restored(
        checkpoint=identity,
        step=step,
        state=saves[-1]["state"] if saves else None,
        durable_since=durable,
        age_ns=None if durable is None else one["opened"] - durable,
    )


def _other(one: Answer, shares: Iterable[str]) -> Other:
    return _by_name(Other, one, headline=shortened(one["headline"]), shares=tuple(shares))


def _configuration(one: Answer, ledger: Ledger) -> Configurations:
    """Compare the attempts of the incident, each with the one before it."""
    known = configurations(ledger)
    places = [i for i, each in enumerate(known) if each.attempt in one["attempt_ids"]]
    found = [
        difference for i in places if i > 0 for difference in _differences(known[i - 1], known[i])
    ]
    return Configurations(
        broken=known[places[0]].number if places else None,
        last=known[places[-1]].number if places else None,
        differences=tuple(found[:MOST]),
        num_differences=len(found),
        told=any(known[i].told for i in places),
    )


def _name(change: Change) -> str:
    return setting_name(change.field, change.name)


def _differences(before: Configuration, after: Configuration) -> list[Difference]:
    return [
        Difference(
            attempt=after.number,
            before_attempt=before.number,
            setting="Nodes left and taken" if one.field == "nodes" else _name(one),
            before=shortened(setting_value(one.field, one.before, UNITS)) or None,
            after=shortened(setting_value(one.field, one.after, UNITS)) or None,
        )
        for one in after.changes
        if not _is_left_out(one, {each.field for each in after.changes})
    ]


def _is_left_out(change: Change, changed: Collection[str]) -> bool:
    """Whether it is told elsewhere, or says how Headway recorded the attempt."""
    match change.field:
        case "environment":
            return (change.name or "").startswith("HEADWAY_")
        case "ranks":
            return "world_size" in changed
    return change.field == "layer"
