"""What the read API answers, and how fast: `scripts/bench queries [--json]`; see README.md.

A real collector with 1,000 runs and 10 million steps answers every endpoint again and again while
the live runs go on. The bar is a p95 under 300 ms for each endpoint.
"""

import argparse
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.querying.fleet import Fleet, Rank
from collector_process import CollectorProcess
from headway.collector.endpoints import ENDPOINTS
from headway.storage.store import EventStore
from otlp_requests import body

BAR_MS = 300.0
_TIMES = 60
_SLOWEST_START = 1_800.0
_ROWS_AT_ONCE = 20_000

Ask = Callable[[httpx.Client, random.Random], httpx.Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one question was answered, in ms; the first one apart, since nothing is cached then."""

    question: str
    first_ms: float
    p50_ms: float
    p95_ms: float
    size: int
    met: bool


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench queries", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=1_000, help="runs; default: 1000")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of a run; default: 10000")
    parser.add_argument(
        "--record", type=int, default=20, help="steps of one stored record; default: 20"
    )
    options = parser.parse_args()
    fleet = Fleet(
        runs=options.runs,
        steps=options.steps,
        record=options.record,
        live=min(20, options.runs),
        nodes=100,
        end=time.time_ns(),
    )
    folder = Path(tempfile.mkdtemp(prefix="headway-queries-"))
    try:
        found = _measured(fleet, folder)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(found) if options.json else "\n".join(_table(found)))


def _measured(fleet: Fleet, folder: Path) -> dict[str, Any]:
    load, path = os.getloadavg(), folder / "events.duckdb"
    built = _build(fleet, path)
    begun = time.monotonic()
    collector = CollectorProcess(path, variables={"HEADWAY_COLLECTOR_COMMIT_INTERVAL": "0.2"})
    try:
        ready = time.monotonic() - begun
        resident = _resident(collector.process.pid)
        with httpx.Client(base_url=collector.address, timeout=600) as http, _going_on(fleet, http):
            rows = [_row(name, ask, http) for name, ask in _questions(fleet, http).items()]
        return {
            "bar_ms": BAR_MS,
            "rows": [asdict(row) for row in rows],
            "met": all(row.met for row in rows),
            "fleet": asdict(fleet),
            "stored": built,
            "start_s": ready,
            "resident_mb": {"ready": resident, "after": _resident(collector.process.pid)},
            "machine": {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "load_before": load,
                "load_after": os.getloadavg(),
            },
        }
    finally:
        collector.kill()


def _build(fleet: Fleet, path: Path) -> dict[str, Any]:
    """Store the fleet's history."""
    begun, store = time.monotonic(), EventStore.open(path)
    num_records = num_rows = 0
    waiting = []
    for number in range(fleet.runs):
        waiting += fleet.envelopes(number)
        if len(waiting) >= _ROWS_AT_ONCE or number == fleet.runs - 1:
            num_records += store.append(waiting).num_stored
            num_rows += len(waiting)
            waiting = []
            print(f"stored {number + 1} of {fleet.runs} runs", file=sys.stderr)
    store.close()
    return {
        "events": num_records,
        "rows": num_rows,
        "mb": path.stat().st_size / 1e6,
        "seconds": time.monotonic() - begun,
    }


@contextmanager
def _going_on(fleet: Fleet, http: httpx.Client) -> Iterator[None]:
    """Let the live runs complete a second of steps every second."""
    ranks = []
    for number in range(fleet.runs - fleet.live, fleet.runs):
        newest = None
        for envelope in fleet.envelopes(number):
            if envelope.event.name == "steps":
                newest = envelope
        if newest is not None:
            rank: Rank = fleet.rank(number)
            rank.attempt, rank.now = newest.attempt or "", newest.monotonic
            rank.sequence = newest.last_sequence + 1_000_000  # a gap: what lay between was torn
            step = newest.event.first_step + newest.last_sequence - newest.first_sequence + 1
            ranks.append((rank, step))
    ended = threading.Event()

    def post() -> None:
        done = [step for _, step in ranks]
        while not ended.wait(1.0):
            content = []
            for place, (rank, _) in enumerate(ranks):
                content.append(rank.steps(done[place], 10))
                done[place] += 10
            headers = {"content-type": "application/x-protobuf"}
            http.post("/v1/logs", content=body(content), headers=headers)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _questions(fleet: Fleet, http: httpx.Client) -> Mapping[str, Ask]:
    """Return a question per endpoint, each about another run, node or incident every time."""
    runs = [fleet.rank(number).run for number in range(fleet.runs)]
    nodes = [f"node-{number:03d}" for number in range(min(fleet.nodes, fleet.runs))]
    incidents = [
        one["incident"] for one in http.get("/api/v1/incidents?limit=1000").json()["incidents"]
    ]

    def get(path: str, **query: Any) -> Ask:
        def ask(http: httpx.Client, chance: random.Random) -> httpx.Response:
            named = {"run": chance.choice(runs), "node": chance.choice(nodes)}
            named["incident"] = chance.choice(incidents)
            return http.get(path.format_map(named), params=query)

        return ask

    def sql(statement: str, arrow: bool = False) -> Ask:
        query = {"format": "arrow"} if arrow else {}

        def ask(http: httpx.Client, chance: random.Random) -> httpx.Response:
            asked = statement.replace("RUN", chance.choice(runs))
            return http.post("/api/v1/sql", json={"sql": asked}, params=query)

        return ask

    found = {
        one.path.removeprefix("/api/v1/"): get(one.path) for one in ENDPOINTS if one.method == "GET"
    }
    return {
        **found,
        "runs?limit=1000": get("/api/v1/runs", limit=1000),
        "runs?label=team": get("/api/v1/runs", label="team=team-3"),
        "fleet?by=team": get("/api/v1/fleet", by="team"),
        "incidents?run": get("/api/v1/incidents", run=runs[5]),
        "live run's report": get(f"/api/v1/runs/{runs[-1]}/report"),
        "live run's intervals": get(f"/api/v1/runs/{runs[-1]}/intervals"),
        "intervals, arrow": get("/api/v1/runs/{run}/intervals", format="arrow"),
        "step_records, arrow, a whole run": get(
            "/api/v1/runs/{run}/step_records", format="arrow", limit=fleet.steps * 2
        ),
        "events of a run": get(f"/api/v1/events?run={runs[7]}"),
        "events, arrow": get("/api/v1/events", format="arrow"),
        "events, faults of all": get("/api/v1/events", name="fault"),
        "sql: events by kind": sql("SELECT name, count(*) FROM events GROUP BY name"),
        "sql: faults by node": sql("SELECT node, count(*) FROM v_faults GROUP BY node"),
        "sql: steps of a run": sql("FROM v_steps WHERE run = 'RUN'"),
        "sql, arrow: steps of a run": sql("FROM v_steps WHERE run = 'RUN'", arrow=True),
        "sql: runs": sql("SELECT run, training_goodput_low FROM v_runs"),
        "metrics": lambda http, _: http.get("/metrics"),
    }


def _row(name: str, ask: Ask, http: httpx.Client) -> Row:
    chance = random.Random(name)  # noqa: S311  # which run is asked about is no secret
    times, size = [], 0
    for _ in range(_TIMES + 1):
        begun = time.perf_counter()
        answer = ask(http, chance)
        times.append((time.perf_counter() - begun) * 1e3)
        if not answer.is_success:
            raise SystemExit(f"{name}: {answer.status_code} {answer.text[:500]}")
        size = len(answer.content)
    ordered = sorted(times[1:])
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    row = Row(
        question=name,
        first_ms=times[0],
        p50_ms=ordered[len(ordered) // 2],
        p95_ms=p95,
        size=size,
        met=p95 < BAR_MS,
    )
    print(f"{name}: {row.p95_ms:.1f} ms", file=sys.stderr)
    return row


def _resident(process_id: int) -> float:
    """Return the memory of a process in MB."""
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * 4096 / 1e6


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    stored, memory = found["stored"], found["resident_mb"]
    yield (
        f"{stored['events']:,} events in {stored['rows']:,} rows, {stored['mb']:.0f} MB; "
        f"ready after {found['start_s']:.1f} s with {memory['ready']:.0f} MB, "
        f"{memory['after']:.0f} MB at the end"
    )
    yield f"{'question':<36} {'first ms':>9} {'p50 ms':>8} {'p95 ms':>8} {'bytes':>10}  met"
    for row in found["rows"]:
        yield (
            f"{row['question']:<36} {row['first_ms']:>9.1f} {row['p50_ms']:>8.1f} "
            f"{row['p95_ms']:>8.1f} {row['size']:>10,}  {'yes' if row['met'] else 'NO'}"
        )


if __name__ == "__main__":
    main()
