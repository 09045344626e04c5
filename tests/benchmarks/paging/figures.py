"""A month of simulated fleet, seed by seed: what was told, what it was worth, what was missed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.paging.judging import MEANT, Met, Verdict, met, verdicts
from benchmarks.paging.watching import Look, Told, told
from headway.alerts.site import Site
from headway.simulate.month import MonthRun
from headway.simulate.needs import NEEDS, Need
from headway.simulate.true_incidents import TrueIncident

_SECOND = 10**9
_MINUTE = 60 * _SECOND
_DAY = 86_400 * _SECOND
WEEK = 7.0
SEVERITIES = ("page", "ticket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run of one seed: what it was, what it needed, and what was published about it."""

    seed: int
    number: int
    nodes: int
    elapsed: int
    needs: tuple[Need, ...]
    incidents: tuple[TrueIncident, ...]
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One run with what people were told of it."""

    seen: Seen
    told: Sequence[Told]


def seen(seed: int, run: MonthRun, looks: Iterable[Look]) -> Seen:
    """Return what is kept of a run."""
    truth = run.simulated.truth
    return Seen(
        seed=seed,
        number=run.number,
        nodes=run.plan.nodes,
        elapsed=truth.elapsed,
        needs=truth.needs,
        incidents=truth.incidents,
        looks=tuple(looks),
    )


def judged(one: Seen, site: Site) -> Judged:
    """Return what a site tells of a run."""
    return Judged(seen=one, told=told(one.looks, site))


def figures(runs: Sequence[Judged], days: int) -> dict[str, Any]:
    """Return the quality of what was told over all runs as JSON values; times in seconds."""
    seeds = sorted({one.seen.seed for one in runs})
    weeks = len(seeds) * days / WEEK
    work = sum(one.seen.elapsed * one.seen.nodes for one in runs) / _DAY
    return {
        "seeds": seeds,
        "runs": len(runs),
        "days": days,
        "run_days": round(sum(one.seen.elapsed for one in runs) / _DAY),
        "node_days": round(work),
        "incidents": sum(len(one.seen.incidents) for one in runs),
        **{f"{severity}s": _of_severity(runs, severity, weeks) for severity in SEVERITIES},
    }


def _of_severity(runs: Sequence[Judged], severity: str, weeks: float) -> dict[str, Any]:
    by_rule: dict[str, list[Verdict]] = defaultdict(list)
    by_need: dict[str, list[Met]] = defaultdict(list)
    false, missed = [], []
    for run in runs:
        for verdict in verdicts(run.told, run.seen.needs, severity):
            first = min(verdict.told.rules, key=lambda rule: verdict.told.rules[rule])
            by_rule[first].append(verdict)
            if not verdict.needs:
                false.append(_false(run, verdict.told))
        for one in met(run.told, run.seen.needs, severity):
            by_need[one.need.kind].append(one)
            if one.delay is None:
                missed.append(_missed(run, one.need))
    every = [verdict for found in by_rule.values() for verdict in found]
    needs = [one for found in by_need.values() for one in found]
    return {
        **_worth(every, weeks),
        **_found(needs),
        "by_rule": {name: _worth(found, weeks) for name, found in sorted(by_rule.items())},
        "by_need": {kind: _found(by_need[kind]) for kind in NEEDS if kind in by_need},
        "false_ones": false,
        "missed_ones": missed,
    }


def _worth(found: Sequence[Verdict], weeks: float) -> dict[str, Any]:
    true = sum(bool(one.needs) for one in found)
    return {
        "told": len(found),
        "true": true,
        "false": len(found) - true,
        "precision": _share(true, len(found)),
        "per_week": round(len(found) / weeks, 2),
        "false_per_week": round((len(found) - true) / weeks, 2),
    }


def _found(needs: Sequence[Met]) -> dict[str, Any]:
    delays = sorted(one.delay / _SECOND for one in needs if one.delay is not None)
    return {
        "needs": len(needs),
        "met": len(delays),
        "recall": _share(len(delays), len(needs)),
        "delay_s": {
            name: round(delays[min(len(delays) - 1, len(delays) * percent // 100)], 1)
            for name, percent in (("p50", 50), ("p90", 90), ("max", 100))
        }
        if delays
        else None,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _false(run: Judged, one: Told) -> dict[str, Any]:
    return {
        "seed": run.seen.seed,
        "run": run.seen.number,
        "nodes": run.seen.nodes,
        "at_s": one.begin // _SECOND,
        "lasted_s": None if one.end is None else (one.end - one.begin) // _SECOND,
        "rules": [*one.rules],
        "why": _why(run.seen, one),
    }


def _why(run: Seen, one: Told) -> str:
    """Return what was going on in truth when something was told that nobody had to hear."""
    early = [
        need
        for need in run.needs
        if one.begin < need.begin and (one.end is None or need.begin <= one.end)
        if one.rules.keys() & set(MEANT[need.kind])
    ]
    if early:
        minutes = (early[0].begin - one.begin) // _MINUTE
        return f"{minutes} min before the need {early[0].kind!r} began"
    after = [need for need in run.needs if need.end < one.begin < need.end + 180 * _MINUTE]
    if after:
        return f"after the need {after[-1].kind!r} was over"
    open_then = [
        incident
        for incident in run.incidents
        if incident.opened <= one.begin
        and (incident.recovered is None or one.begin < incident.recovered + 90 * _MINUTE)
    ]
    if not open_then:
        return "nothing had happened to the run"
    incident = open_then[-1]
    what = f"{', '.join(incident.labels[:3])}: {incident.attempts} attempts"
    if incident.recovered is None:
        return f"{what}, and the run ended before it trained again"
    return f"{what}, trained again by itself {_minutes(incident)} min after it broke"


def _minutes(incident: TrueIncident) -> int:
    return 0 if incident.recovered is None else (incident.recovered - incident.opened) // _MINUTE


def _missed(run: Judged, need: Need) -> dict[str, Any]:
    return {
        "seed": run.seen.seed,
        "run": run.seen.number,
        "nodes": run.seen.nodes,
        "kind": need.kind,
        "at_s": need.begin // _SECOND,
        "lasted_s": (need.end - need.begin) // _SECOND,
        "why": _silence(run.told, need),
    }


def _silence(found: Sequence[Told], need: Need) -> str:
    during: Mapping[str, int] = {
        rule: time
        for one in found
        for rule, time in one.rules.items()
        if one.begin <= need.end and (one.end or need.end) >= need.begin
    }
    if during:
        return f"meanwhile told: {', '.join(sorted(during))}"
    return f"nothing was told in the {(need.end - need.begin) // _MINUTE} min that it lasted"
