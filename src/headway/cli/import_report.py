"""The report of an imported run: the ledger's, with what its log told and published beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headway.events import Envelope

if TYPE_CHECKING:
    from headway.importing.benchmark_figures import Difference, Ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """A run out of files; `log` is what its lines told in their own numbers.

    `lasting` are the events that stay true when the log grows, `interval` is for how many steps
    one line of progress stands; a run that is not `timed` has no time of day, only durations.
    """

    run: str
    envelopes: Sequence[Envelope]
    lasting: Sequence[Envelope]
    as_of: int
    timed: bool
    interval: int | None
    log: Mapping[str, Any] | None


def report_of(run: ImportedRun, *, with_steps: bool = True) -> dict[str, Any]:
    """Return the report of a run as JSON values; logs may tell it without any of its steps."""
    from headway.cli.import_unknown import forget_steps
    from headway.ledger import Timeline
    from headway.report import report

    log = {**(run.log or {}), "timed": run.timed}
    published = log.get("published") or {}
    found: dict[str, Any] = {"run": run.run, "log": log}
    if run.envelopes:
        timeline = Timeline(run.run)
        timeline.add(run.envelopes)
        found |= report(timeline.ledger(run.as_of))
        if run.interval is not None and run.interval > 1:
            _widen(found, run.interval)
        untold = not with_steps or log.get("losses_without_step")
        if untold and not found["steps"]["executed"]:
            forget_steps(found)
    if published:
        found["differences"] = [asdict(one) for one in _differences(published, found)]
    return found


def _differences(published: Mapping[str, Any], found: Mapping[str, Any]) -> Sequence["Difference"]:
    """Return the figures that a program published of its run beside ours."""
    from headway.importing.benchmark_figures import differences, from_their_numbers

    known = bool(found.get("steps", {}).get("executed"))
    return differences(published, _ours(found) if known else from_their_numbers(published))


def _ours(found: Mapping[str, Any]) -> "Ours":
    from headway.importing.benchmark_figures import Ours
    from headway.importing.stamps import SECOND

    seconds = {name: time / SECOND for name, time in found["categories"].items()}
    outage = sum(seconds[name] for name in ("stalled", "restart", "down", "unattributed"))
    layers = set(found["restarts"])
    training, infrastructure = (
        None if found[name]["low"] is None else 100 * found[name]["low"]
        for name in ("training_goodput", "infrastructure_goodput")
    )
    return Ours(
        training=training,
        infrastructure=infrastructure,
        outage=outage,
        recovery=outage / len(found["incidents"]) if found["incidents"] else None,
        lost=seconds["rolled_back"],
        step_time=(seconds["productive"] + seconds["rolled_back"]) / found["steps"]["executed"],
        rework=found["steps"]["rework"],
        in_process=layers == {"in_process"} if layers else None,
    )


def _widen(found: dict[str, Any], interval: int) -> None:
    """Tell rollbacks as the ranges that they are where a line stands for several steps.

    Up to so many steps may have been completed after the last line and were lost, too, unless a
    line says after which step the attempt broke.
    """
    told = {one["attempt"] for one in found["log"].get("attempts", ()) if one["last_step_told"]}
    exact = {one["attempt"] for one in found["attempt_list"] if one["number"] in told}
    certain = {one["incident"] for one in found["incidents"] if exact & {*one["attempt_ids"][:1]}}
    for item, key, incident in [
        *((one, "steps", one["incident"]) for one in found["rollbacks"]),
        *((one, "rollback_steps", one["incident"]) for one in found["incidents"]),
    ]:
        least = item[key]
        if least is not None and incident not in certain:
            item[f"{key}_range"] = [least, least + interval]
            item[key] = None
