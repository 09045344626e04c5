"""A seeded, believable run as the collector's API tells it: report, intervals and step curve.

About 400 steps of 0.28 s with five exceptions, each followed by a restart in process. The report
is summed from the intervals, so its numbers hold together by construction.
"""

import random
from dataclasses import dataclass
from typing import Any

from headway import metrics
from headway.checkpoint_writing import STATES
from headway.incidents.recovery import distribution

SECOND = 1_000_000_000
START = 1_764_434_048 * SECOND
TARGET = 400
FAULTS = (62, 131, 239, 310, 372)
EVERY = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the collector answers about one run."""

    report: dict[str, Any]
    intervals: list[dict[str, Any]]
    points: list[dict[str, Any]]

    @property
    def summary(self) -> dict[str, Any]:
        """The report as the list of runs carries it."""
        left_out = {"attempt_list", "incidents", "checkpoints", "formulas"}
        kept = {key: value for key, value in self.report.items() if key not in left_out}
        opened = sum(one["state"] == "open" for one in self.report["incidents"])
        return kept | {"open_incidents": opened}


def sample(
    name: str = "demo",
    *,
    seed: int = 7,
    faults: tuple[int, ...] = FAULTS,
    live: bool = False,
    gap: float = 0.0,
    start: int = START,
) -> Sample:
    """Return one run; `live` stops it at step 330, `gap` adds seconds without evidence."""
    chance = random.Random(seed)  # noqa: S311  # believable numbers, not secrets
    target = 330 if live else TARGET
    faults = tuple(step for step in faults if step < target)
    run = f"{name}-{chance.getrandbits(48):012x}"
    resumes = [0, *(_durable(step) for step in faults)]
    ends = [*faults, target]
    now = start
    intervals: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    attempts: list[dict[str, Any]] = []
    incidents: list[dict[str, Any]] = []
    checkpoints: dict[int, dict[str, Any]] = {}

    def spend(category: str, seconds: float, part: str | None = None, **more: Any) -> None:
        nonlocal now
        length = int(seconds * SECOND)
        interval = {"first_step": None, "last_step": None, "attempt": None} | more
        intervals.append(
            {"start": now, "end": now + length, "category": category, "part": part}
            | {"amounts": {category: length}}
            | interval
        )
        now += length

    for index, (resumed, end) in enumerate(zip(resumes, ends, strict=True)):
        attempt = f"{chance.getrandbits(64):016x}"
        begun = now
        if index == 0:
            spend("startup", 2.1, "import", attempt=attempt)
            spend("startup", 1.2, "rendezvous", attempt=attempt)
            spend("startup", 0.9, "model", attempt=attempt)
        else:
            spend("restart", chance.uniform(0.8, 1.4), "rendezvous", attempt=attempt)
            spend("restart", chance.uniform(0.7, 1.1), "model", attempt=attempt)
            if resumed:
                spend("checkpoint_load", chance.uniform(0.4, 0.8), attempt=attempt)
        if incidents:
            incidents[-1]["recovered"] = now + int(0.28 * SECOND)
        survives = min(resumes[index + 1 :], default=target)
        durable = _durable(target)
        first = resumed + 1
        if gap and index == 2:
            spend("unattributed", gap, attempt=attempt)
        while first <= end:
            last = min(end, _durable(first - 1) + EVERY)
            for low, high, category, part in (
                (first, min(last, survives, durable), "productive", "durable"),
                (max(first, durable + 1), min(last, survives), "productive", "at_risk"),
                (max(first, survives + 1), last, "rolled_back", "whole"),
            ):
                if low > high:
                    continue
                begin = now
                spend(
                    category,
                    (high - low + 1) * chance.uniform(0.26, 0.30),
                    part,
                    attempt=attempt,
                    first_step=low,
                    last_step=high,
                )
                steps = high - low + 1
                points += [
                    {
                        "time": begin + (now - begin) * (n + 1) // steps,
                        "step": low + n,
                        "attempt": attempt,
                    }
                    for n in range(steps)
                ]
            spend("data_wait", chance.uniform(0.05, 0.3), attempt=attempt)
            if last % EVERY == 0:
                scheduled = now
                spend("checkpoint_save", chance.uniform(0.03, 0.09), attempt=attempt)
                checkpoints[last] = {
                    "checkpoint": f"step-{last}",
                    "step": last,
                    "attempt": attempt,
                    "scheduled": scheduled,
                    "finalized": now + int(0.4 * SECOND),
                    "blocking": now - scheduled,
                    "staging": int(0.01 * SECOND),
                    "background": int(0.4 * SECOND),
                    "bytes_staged": 5_054_448,
                    "bytes_written": 5_380_905,
                    "queue_depth": 1,
                    "lowest_memory": 3_000_000_000,
                    "highest_pressure": 0.02,
                    "tier": "shared",
                    "state": "claimed",
                    "durable_since": now + int(0.4 * SECOND),
                }
            first = last + 1
        if end in faults:
            opened = now
            spend("stalled", chance.uniform(0.6, 1.6), attempt=attempt)
            detected = now
            spend("restart", chance.uniform(0.3, 0.6), "teardown", attempt=attempt)
            incidents.append(
                {
                    "incident": f"{run}-{len(incidents) + 1}",
                    "number": len(incidents) + 1,
                    "opened": opened,
                    "closed": None,
                    "recovered": None,
                    "caught_up": None,
                    "cause": "exception",
                    "layer": "in_process",
                    "suspect_rank": chance.randrange(2),
                    "suspect_node": "node-0",
                    "rollback_steps": end - _durable(end),
                    "rollback_ns": int((end - _durable(end)) * 0.28 * SECOND),
                    "attempts": 1,
                    "phases": {"detect": detected - opened, "teardown": now - detected},
                    "evidence": [f"RuntimeError: injected fault at step {end}"],
                    "state": "open",
                }
            )
        attempts.append(
            {
                "attempt": attempt,
                "number": index + 1,
                "layer": "scheduler" if index == 0 else "in_process",
                "start": begun,
                "end": None if live and end == target else now,
                "outcome": "progressed",
                "resumed": resumed,
                "checkpoint": f"step-{resumed}" if resumed else None,
                "first_step": resumed + 1,
                "last_step": end,
                "world_size": 2,
                "ended_by": "exception" if end in faults else None,
            }
        )
    for incident in incidents[: -1 if live else None]:
        incident["closed"] = incident["recovered"] + 4 * SECOND
        incident["caught_up"] = incident["recovered"] + incident["rollback_ns"]
        incident["state"] = "closed"
    if not live:
        spend("productive", 0.4, "durable", attempt=attempts[-1]["attempt"])
    report = _report(name, run, start, now, live, intervals)
    newest = max(checkpoints) if checkpoints else None
    report |= {
        "attempts": len(attempts),
        "restarts": {"in_process": {"exception": len(faults)}} if faults else {},
        "rollbacks": [
            {"incident": one["incident"], "steps": one["rollback_steps"], "ns": one["rollback_ns"]}
            for one in incidents
        ],
        "steps": {
            "highest": target,
            "executed": len(points),
            "surviving": target,
            "rework": len(points) - target,
            "target": TARGET,
        },
        "checkpoint": newest
        and {
            "checkpoint": f"step-{newest}",
            "step": newest,
            "state": "claimed",
            "age_s": (now - checkpoints[newest]["finalized"]) / SECOND,
        },
        "checkpoint_writing": _writing(list(checkpoints.values())),
        "steps_at_risk": target - (newest or 0),
        "attempt_list": attempts,
        "incidents": incidents,
        "gpu_losses": [],
        "restart_budgets": {"in_process": {"remaining": 20 - len(faults), "limit": 20}},
        "longest_phases": [
            {
                "phase": "step",
                "longest_ns": 3 * SECOND,
                "rank": 1,
                "attempt": attempts[0]["attempt"],
                "timeout": timeout,
                "timeout_ns": limit * SECOND,
                "ratio": 3 / limit,
            }
            for timeout, limit in (("in_process.soft_timeout", 60), ("process_group", 120))
        ],
        "checkpoints": [checkpoints[step] for step in sorted(checkpoints)],
    }
    return Sample(report=report, intervals=intervals, points=points)


def _writing(saves: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "saves": dict.fromkeys(STATES, 0) | {"claimed": len(saves)},
        "blocking_ns": distribution([save["blocking"] for save in saves]),
        "staging_ns": distribution([save["staging"] for save in saves]),
        "background_ns": distribution([save["background"] for save in saves]),
        "bytes_staged": distribution([save["bytes_staged"] for save in saves]),
        "bytes_written": distribution([save["bytes_written"] for save in saves]),
        "bytes_per_second": distribution([11_500_000 for _ in saves]),
        "highest_queue_depth": 1 if saves else None,
        "interval_ns": distribution([11 * SECOND for _ in saves[1:]]),
        "write_to_interval": {"mean": 0.036, "max": 0.041}
        if saves
        else {"mean": None, "max": None},
        "lowest_memory": 3_000_000_000 if saves else None,
        "highest_memory_pressure": 0.02 if saves else None,
        "fallbacks": [],
        "restarts_from_zero": [],
    }


def _durable(step: int) -> int:
    return step // EVERY * EVERY


def _report(
    name: str, run: str, start: int, now: int, live: bool, intervals: list[dict[str, Any]]
) -> dict[str, Any]:
    elapsed = now - start
    categories = dict.fromkeys(metrics.CATEGORIES, 0)
    parts: dict[str, dict[str, int]] = {}
    for interval in intervals:
        length = interval["end"] - interval["start"]
        categories[interval["category"]] += length
        if interval["part"] is not None:
            part = parts.setdefault(interval["category"], {})
            part[interval["part"]] = part.get(interval["part"], 0) + length
    unknown = categories["unattributed"]
    bad = categories["stalled"] + categories["restart"] + categories["down"]
    training = [categories["productive"], categories["productive"] + unknown]
    infrastructure = [elapsed - bad - unknown, elapsed - bad]
    ranges = {
        key: {"low": low / elapsed, "high": high / elapsed}
        for key, (low, high) in (
            ("training_goodput", training),
            ("infrastructure_goodput", infrastructure),
        )
    }
    efficiency = 1 - categories["checkpoint_save"] / (elapsed - bad)
    return {
        "run": run,
        "run_name": name,
        "as_of": now,
        "last_event": now,
        "start": start,
        "end": None if live else now,
        "provisional": live,
        "state": "running" if live else "completed",
        "elapsed_ns": elapsed,
        "categories": categories,
        "parts": parts,
        **ranges,
        "gpu_time": {
            "weight": "held",
            "gpus": 2,
            "elapsed_gpu_ns": 2 * elapsed,
            "categories": {name: 2 * ns for name, ns in categories.items()} | {"spare": 0},
            **ranges,
        },
        "checkpoint_efficiency": efficiency,
        "formulas": {
            "training_goodput": {
                "formula": metrics.TRAINING_FORMULA,
                "numerator_ns": training,
                "denominator_ns": elapsed,
            },
            "infrastructure_goodput": {
                "formula": metrics.INFRASTRUCTURE_FORMULA,
                "numerator_ns": infrastructure,
                "denominator_ns": elapsed,
            },
            "checkpoint_efficiency": {
                "formula": "1 - checkpoint_save / (elapsed - stalled - restart - down)",
            },
        },
        "alternatives": [],
        "arrival": None,
        "failed_starts": 0,
        "dropped_events": 0,
        "problems": [],
        "flags": [],
        "labels": {"team": "pretraining"},
        "links": {},
    }
