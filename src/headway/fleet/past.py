"""What one run's incidents tell the fleet: how they went, what they cost, and around what.

Read from the run's report, so that the fleet's figures are those of the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTry:
    """One attempt to recover; its phases are in ns."""

    layer: str
    phases: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastIncident:
    """One incident of one run; times in UTC ns, durations in ns, None is unknown or not yet.

    `checkpoint_bytes` and `checkpoint_age` are those of the checkpoint from which the run went on,
    its age when the incident opened; `ranks` is the size of the group that broke.
    """

    run: str
    run_name: str
    labels: Mapping[str, str]
    incident: str
    number: int
    opened: int
    recovered: int | None
    caught_up: int | None
    cause: str
    layer: str | None
    outcome: str
    node: str | None
    headline: str
    lost_gpu: int
    valid: str
    phases: Mapping[str, int]
    tries: Sequence[PastTry]
    checkpoint_bytes: int | None
    checkpoint_age: int | None
    ranks: int | None

    @property
    def is_open(self) -> bool:
        """Whether no attempt has put it behind yet."""
        return self.outcome == "open"

    @property
    def recovery(self) -> int | None:
        """Time from the fault to the first step after it, in ns."""
        return None if self.recovered is None else self.recovered - self.opened


def past_incidents(report: Mapping[str, Any]) -> tuple[PastIncident, ...]:
    """Return the incidents of a run's report, in its order."""
    saves = {one["checkpoint"]: one for one in report["checkpoints"]}
    ranks = [(one["start"], one["world_size"]) for one in report["attempt_list"]]
    labels = {name: str(value) for name, value in report["labels"].items()}
    return tuple(
        _past(report, one, labels, saves, _ranks(ranks, one["opened"]))
        for one in report["incidents"]
    )


def _past(
    report: Mapping[str, Any],
    one: Mapping[str, Any],
    labels: Mapping[str, str],
    saves: Mapping[str, Mapping[str, Any]],
    ranks: int | None,
) -> PastIncident:
    loaded = next(
        (found for told in reversed(one["tries"]) if (found := told["checkpoint"]) is not None),
        None,
    )
    save = saves.get(loaded or "", {})
    written, durable = save.get("bytes_written"), save.get("durable_since")
    return PastIncident(
        run=report["run"],
        run_name=report["run_name"],
        labels=labels,
        incident=one["incident"],
        number=one["number"],
        opened=one["opened"],
        recovered=one["recovered"],
        caught_up=one["caught_up"],
        cause=one["cause"],
        layer=one["layer"],
        outcome=one["outcome"],
        node=one["suspect_node"],
        headline=one["headline"],
        lost_gpu=one["lost_gpu_ns"],
        valid=one["recovery_valid"]["valid"],
        phases=one["phases"],
        tries=tuple(PastTry(layer=told["layer"], phases=told["phases"]) for told in one["tries"]),
        checkpoint_bytes=save.get("bytes_staged") if written is None else written,
        checkpoint_age=None if durable is None else max(one["opened"] - durable, 0),
        ranks=ranks,
    )


def _ranks(sizes: Sequence[tuple[int, int | None]], opened: int) -> int | None:
    """Return the size of the newest group that had begun by then."""
    return next((size for start, size in reversed(sizes) if start <= opened), None)
