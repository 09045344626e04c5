"""The report of a run: the ledger as one plain object, the same for API, terminal and dashboard."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from headway.checkpoint_writing import checkpoint_writing
from headway.clocks import clock_problems
from headway.formulas import Alternative, alternatives
from headway.incidents import (
    Evidence,
    GpuLoss,
    Incident,
    Straggler,
    attempts_without_durable_step,
    gpu_losses,
    headline,
    incidents,
    loops,
    loss_of,
    recovery,
    restarts,
    stragglers,
)
from headway.ledger import Interval, Ledger, Problem, Range
from headway.ledger.ratios import checkpoint_efficiency, goodput
from headway.ledger.timeouts import Guarded, longest_phases
from headway.metrics import INFRASTRUCTURE_FORMULA, TRAINING_FORMULA
from headway.windows import Arrival, arrival

CHECKPOINT_FORMULA = (
    "1 - checkpoint_save / (productive + rolled_back + checkpoint_save + data_wait + evaluation"
    " + custom)"
)
EVIDENCE_SHOWN = 50
"""Observations of one incident that a report lists; of thousands of ranks most say the same."""
DETAILS = (
    "attempt_list",
    "incidents",
    "gpu_losses",
    "checkpoints",
    "checkpoint_writing",
    "formulas",
    "alternatives",
    "recovery",
    "stragglers",
    "loops",
    "longest_phases",
)
"""Parts of a report that a summary leaves out."""


def report(ledger: Ledger) -> dict[str, Any]:
    """Return everything that is shown of a run as JSON values; times in UTC ns."""
    known = incidents(ledger)
    training, infrastructure = ledger.training_goodput, ledger.infrastructure_goodput
    configured = ledger.book.configured
    return {
        "run": ledger.run,
        "run_name": ledger.book.run_name or ledger.run,
        "as_of": ledger.as_of,
        "start": ledger.start,
        "provisional": ledger.provisional,
        "state": ledger.state,
        "last_event": ledger.heard,
        "elapsed_ns": ledger.elapsed,
        "categories": dict(ledger.categories),
        "parts": {name: dict(parts) for name, parts in ledger.parts.items()},
        "training_goodput": bounds(training),
        "infrastructure_goodput": bounds(infrastructure),
        "gpu_time": _gpu_time(ledger, "held"),
        "gpu_time_requested": _gpu_time(ledger, "requested")
        if ledger.book.requested.times
        else None,
        "checkpoint_efficiency": checkpoint_efficiency(ledger.categories),
        "formulas": {
            "training_goodput": formula_object(TRAINING_FORMULA, training),
            "infrastructure_goodput": formula_object(INFRASTRUCTURE_FORMULA, infrastructure),
            "checkpoint_efficiency": {"formula": CHECKPOINT_FORMULA},
        },
        "alternatives": [_alternative(figure) for figure in alternatives(ledger)],
        "arrival": _arrival(arrival(ledger)),
        "attempts": len(ledger.book.attempts),
        "failed_starts": ledger.failed_starts,
        "restarts": restarts(ledger, known),
        "restart_budgets": {
            layer: {"remaining": budget.remaining, "limit": budget.limit}
            for layer, budget in sorted(ledger.book.budgets.items())
        },
        "rollbacks": [
            {
                "incident": incident.incident,
                "steps": incident.rollback_steps,
                "ns": incident.rollback,
            }
            for incident in known
            if incident.rollback_steps is not None
        ],
        "steps": asdict(ledger.steps),
        "checkpoint": _freshness(ledger),
        "steps_at_risk": ledger.steps_at_risk,
        "problems": [asdict(problem) for problem in [*ledger.problems, *_clock_problems(ledger)]],
        "flags": list(ledger.flags),
        "attempt_list": [_values(attempt) for attempt in ledger.attempts],
        "gpu_losses": [_gpu_loss(loss) for loss in gpu_losses(ledger, known)],
        "recovery": recovery(known),
        "loops": [asdict(loop) for loop in loops(ledger)],
        "longest_phases": [_guarded(one) for one in longest_phases(ledger)],
        "checkpoints": [_values(checkpoint) for checkpoint in ledger.checkpoints],
        "labels": dict(configured.labels or {}) if configured else {},
        "links": dict(configured.links or {}) if configured else {},
        **watched(ledger, known),
    }


def watched(ledger: Ledger, known: Sequence[Incident]) -> dict[str, Any]:
    """Return the part of the report that alerts look at; `known` are the ledger's incidents."""
    return {
        "end": ledger.end,
        "dropped_events": ledger.book.num_dropped,
        "checkpoint_writing": checkpoint_writing(ledger),
        "incidents": [_incident(incident, ledger) for incident in known],
        "attempts_without_durable_step": attempts_without_durable_step(ledger),
        "stragglers": [_straggler(straggler) for straggler in stragglers(ledger)],
    }


def _clock_problems(ledger: Ledger) -> list[Problem]:
    known = (fact.envelope for fact in ledger.book.facts if fact.time <= ledger.as_of)
    return clock_problems(list(known))


def summary(full: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without its lists."""
    return {
        **{name: value for name, value in full.items() if name not in DETAILS},
        "open_incidents": sum(item["state"] == "open" for item in full["incidents"]),
    }


def interval_objects(intervals: Sequence[Interval]) -> list[dict[str, Any]]:
    """Return intervals as JSON values."""
    return [asdict(interval) for interval in intervals]


def bounds(ratio: Range) -> dict[str, float | None]:
    """Return the two ends of a ratio as JSON values."""
    return {"low": ratio.low, "high": ratio.high}


def formula_object(formula: str, ratio: Range) -> dict[str, Any]:
    """Return what a ratio was computed from as JSON values, in ns."""
    return {
        "formula": formula,
        "numerator_ns": list(ratio.numerator),
        "denominator_ns": ratio.denominator,
    }


def _alternative(figure: Alternative) -> dict[str, Any]:
    return {
        "name": figure.name,
        "formula": figure.formula,
        "ratio": figure.ratio,
        "numerator_ns": figure.numerator,
        "denominator_ns": figure.denominator,
    }


def _arrival(found: Arrival | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "low": found.low,
        "high": found.high,
        "steps_left": found.steps_left,
        "steps_per_hour": {"low": min(found.rates), "high": max(found.rates)},
    }


def _gpu_time(ledger: Ledger, weight: Literal["held", "requested"]) -> dict[str, Any]:
    totals = dict(ledger.gpu_time(weight))
    whole = sum(totals.values())
    good = ledger.training_good
    return {
        "weight": weight,
        "gpus": ledger.num_gpus,
        "elapsed_gpu_ns": whole,
        "categories": totals,
        "training_goodput": bounds(goodput(totals, whole, "training", good)),
        "infrastructure_goodput": bounds(goodput(totals, whole, "infrastructure", good)),
    }


def _freshness(ledger: Ledger) -> dict[str, Any] | None:
    newest = ledger.newest_durable
    if newest is None or newest.durable_since is None:
        return None
    return {
        "checkpoint": newest.checkpoint,
        "step": newest.step,
        "state": newest.state,
        "age_s": max(ledger.closed_at - newest.durable_since, 0) / 1e9,
    }


def _incident(incident: Incident, ledger: Ledger) -> dict[str, Any]:
    values = {
        name: getattr(incident, name)
        for name in (
            "incident",
            "number",
            "opened",
            "closed",
            "recovered",
            "caught_up",
            "cause",
            "original_cause",
            "rule",
            "layer",
            "suspect_rank",
            "suspect_node",
            "suspect_gpu",
            "suspect_rule",
            "signature",
            "gpu_repeats",
            "alike",
            "rollback_steps",
            "outcome",
            "suspected_false_alarm",
        )
    }
    said, lost = incident.judgement, loss_of(ledger, incident)
    # What decides comes first among the evidence; of what is shown the order is that of time.
    shown = sorted(incident.evidence[:EVIDENCE_SHOWN], key=lambda item: (item.time, item.began))
    return {
        **values,
        "headline": headline(incident, ledger.closed_at),
        "rollback_ns": incident.rollback,
        "lost_ns": lost.time,
        "lost_gpu_ns": lost.gpu_time,
        "attempts": len(incident.tries),
        "attempt_ids": list(incident.attempts),
        "phases": dict(incident.phases),
        "tries": [_values(one) for one in incident.tries],
        "evidence": [item.words for item in shown],
        "observations": [_observation(item) for item in shown],
        "first_fault": _first_fault(shown),
        "decided_by": _decided_by(shown, incident),
        "num_observations": len(incident.evidence),
        "persistent": dict(incident.persistent),
        "warnings": list(incident.warnings),
        "recovery_valid": _values(incident.validity),
        "open_phase": None if incident.open_phase is None else _values(incident.open_phase),
        "corrected_by": said.author,
        "corrected_at": said.time,
        "reason": said.reason,
        "acknowledged_by": said.acknowledged_by,
        "acknowledged_at": said.acknowledged_at,
        "state": "open" if incident.outcome == "open" else "closed",
    }


def _first_fault(shown: Sequence[Evidence]) -> int | None:
    """Return the place of the first observation that is no echo; an exit only follows a fault."""
    own = [(item.time, item.kind == "exit", i) for i, item in enumerate(shown) if not item.echo]
    return min(own)[-1] if own else None


def _decided_by(shown: Sequence[Evidence], incident: Incident) -> int | None:
    """Return the place of the observation on which the verdict rests; None where it is no one's."""
    telling = [
        (item.signature != incident.signature, item.echo, item.time, i)
        for i, item in enumerate(shown)
        if item.cause == incident.original_cause
    ]
    return min(telling)[-1] if telling else None


def _observation(item: Evidence) -> dict[str, Any]:
    return {
        "time": item.time,
        "began": item.began,
        "words": item.words,
        "kind": item.kind,
        "phase": item.phase,
        "rank": item.rank,
        "node": item.node,
        "gpu": item.gpu,
        "classification": item.classification,
        "policy": item.policy,
        "attempt": item.attempt,
        "echo": item.echo,
        "events": [{"producer": s.producer, "sequence": s.sequence} for s in item.sources],
    }


def _gpu_loss(one: GpuLoss) -> dict[str, Any]:
    return {
        "node": one.node,
        "device": one.device,
        "faults": one.faults,
        "classes": dict(one.classes),
        "names": list(one.names),
        "incidents": list(one.incidents),
        "steps": one.loss.steps,
        "lost_ns": one.loss.time,
        "gpu_ns": one.loss.gpu_time,
    }


def _values(one: Any) -> dict[str, Any]:
    """Return the fields of a flat value; unlike `asdict` it copies nothing, and there are many."""
    return {name: getattr(one, name) for name in one.__slots__}


def _guarded(one: Guarded) -> dict[str, Any]:
    values = _values(one)
    values["longest_ns"] = values.pop("longest")
    values["timeout_ns"] = values.pop("limit")
    return values


def _straggler(straggler: Straggler) -> dict[str, Any]:
    values = _values(straggler)
    values["excess_ns"] = values.pop("excess")
    values["peers_ns"] = values.pop("peers")
    values["usual_ns"] = values.pop("usual")
    return values
