"""The report of an imported run: the ledger's, with what its log told and published beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headway.events import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """A run out of files; `log` is what its lines told in their own numbers.

    `interval` is for how many steps one line of progress stands; a run that is not `timed` has no
    time of day, only durations.
    """

    run: str
    envelopes: Sequence[Envelope]
    as_of: int
    timed: bool
    interval: int | None
    log: Mapping[str, Any] | None


def report_of(run: ImportedRun) -> dict[str, Any]:
    """Return the report of a run as JSON values."""
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
    if published:
        found["differences"] = [asdict(one) for one in _differences(published, found)]
    return found


def _differences(published: Mapping[str, Any], found: Mapping[str, Any]) -> Sequence[Any]:
    """Return the figures that a program published of its run beside ours."""
    from headway.importing.nvrx_benchmark import Difference, goodputs, recovery_of

    ours = [
        100 * found[name]["low"] if name in found and found[name]["low"] is not None else None
        for name in ("training_goodput", "infrastructure_goodput")
    ]
    if not ours[0] and not ours[1]:
        ours = [
            published.get(f"corrected {name}")
            for name in ("training_goodput_pct", "infra_goodput_pct")
        ]
    told: list[Difference] = [*goodputs(published, ours[0], ours[1])]
    recovery = recovery_of(published)
    return told if recovery is None else [*told, recovery]


def _widen(found: dict[str, Any], interval: int) -> None:
    """Tell rollbacks as the ranges that they are where a line stands for several steps.

    Up to so many steps may have been completed after the last line and were lost, too.
    """
    for item, key in [
        *((one, "steps") for one in found["rollbacks"]),
        *((one, "rollback_steps") for one in found["incidents"]),
    ]:
        least = item[key]
        if least is not None:
            item[f"{key}_range"] = [least, least + interval]
            item[key] = None
