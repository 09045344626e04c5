"""Headway's ledger beside ml-goodput-measurement 0.2.3 on the same runs; see README.md.

Each side of each case runs in a process of its own. Costs are CPU time, because the machine may be
shared; bars are ratios within one run.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PEER = "ml-goodput-measurement 0.2.3"
SIDES = "benchmarks.goodput"
SCORED = 18

Costs = Mapping[str, float]


class Row(NamedTuple):
    """One question put to both; `ratio` is how many times cheaper Headway's answer was."""

    case: str
    question: str
    unit: str
    headway: float
    peer: float
    bar: int | None = None

    @property
    def ratio(self) -> float:
        """The peer's cost by Headway's."""
        return self.peer / self.headway

    @property
    def met(self) -> bool | None:
        """Whether the bar is reached; None without a bar."""
        return None if self.bar is None else self.ratio >= self.bar


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench ledger", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    load = os.getloadavg()
    cases = {
        "1m_steps": _case("1m_steps", per_step=True),
        "1000_restarts": _case("1000_restarts"),
        "3000_evaluations": _case("3000_evaluations"),
    }
    rows = [row for name, costs in cases.items() for row in _rows(name, costs)]
    probes = {"headway": _child("headway_probes"), "peer": _child("peer_probes")}
    scores = {side: sum(one["right"] for one in found.values()) for side, found in probes.items()}
    found = {
        "peer": PEER,
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_before": load,
            "load_after": os.getloadavg(),
        },
        "rows": [{**row._asdict(), "ratio": row.ratio, "met": row.met} for row in rows],
        "probes": {**scores, "of": SCORED, "bar": SCORED, "met": scores["headway"] == SCORED},
        "probe_answers": probes,
        "measured": cases,
    }
    print(json.dumps(found) if options.json else "\n".join(_table(rows, scores)))


def _case(name: str, per_step: bool = False) -> dict[str, Costs]:
    """Ask both sides about one case."""
    found = {
        "peer": _child("peer_side", name),
        "blocks": _child("headway_side", name, "events", "blocks"),
    }
    if per_step:
        found["database"] = _child("headway_side", name, "database", "blocks")
        found["per_step"] = _child("headway_side", name, "events", "per_step")
        found["database_per_step"] = _child("headway_side", name, "database", "per_step")
    return found


def _rows(case: str, costs: Mapping[str, Costs]) -> Iterator[Row]:
    peer, blocks = costs["peer"], costs["blocks"]
    first_bar, poll_bar = (50, 1000) if case == "1m_steps" else (100, 100)
    yield Row(case, "first answer", "s", blocks["first_s"], peer["first_s"], first_bar)
    yield Row(case, "next poll", "s", blocks["poll_s"], peer["poll_s"], poll_bar)
    yield Row(case, "next poll, whole report", "s", blocks["report_poll_s"], peer["poll_s"])
    yield Row(case, "memory added", "MB", blocks["added_mb"], peer["added_mb"])
    yield Row(case, "memory of decoded events", "MB", blocks["input_mb"], peer["input_mb"])
    if "per_step" in costs:
        single = costs["per_step"]
        yield Row(case, "first answer, per-step input", "s", single["first_s"], peer["first_s"])
        yield Row(case, "next poll, per-step input", "s", single["poll_s"], peer["poll_s"])
        yield Row(case, "memory added, per-step", "MB", single["added_mb"], peer["added_mb"])
        for source in ("database", "database_per_step"):
            question = f"first answer, {source.replace('_', ', ').replace(', step', '-step')}"
            yield Row(case, question, "s", costs[source]["first_s"], peer["first_s"])


def _child(module: str, *arguments: str) -> Any:
    """Run one side and return what it prints."""
    command = [sys.executable, "-m", f"{SIDES}.{module}", *arguments]
    print(" ".join(("measuring:", module, *arguments)), file=sys.stderr)
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return json.loads(ended.stdout)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _table(rows: list[Row], scores: Mapping[str, int]) -> Iterator[str]:
    line = "{:<17} {:<31} {:>12} {:>12} {:>9} {:>6} {:>4}"
    yield line.format("case", "question", "headway", "peer", "ratio", "bar", "met")
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar}x"
        met = {None: "", True: "yes", False: "no"}[row.met]
        costs = [f"{cost:.4g} {row.unit}" for cost in (row.headway, row.peer)]
        yield line.format(row.case, row.question, *costs, f"{row.ratio:.3g}x", bar, met)
    met = "yes" if scores["headway"] == SCORED else "no"
    right = [f"{scores[side]} of {SCORED}" for side in ("headway", "peer")]
    yield line.format("probes", "answered rightly", *right, "", SCORED, met)
    yield f"peer: {PEER}; CPU seconds, the cheapest of a few runs where they are short"


if __name__ == "__main__":
    main()
