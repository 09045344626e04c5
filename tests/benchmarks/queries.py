"""What the read API answers, and how fast: `scripts/bench queries [--json]`; see README.md.

A real collector with 1,000 runs and 10 million steps answers every endpoint, and what the pages of
the dashboard ask, in many rounds while the live runs go on. The bar is a p95 under 300 ms for each.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.querying.fleet import Fleet, Rank, wide
from collector_process import CollectorProcess
from headway import events
from headway.collector.endpoints import ENDPOINTS
from headway.events import Envelope
from headway.storage.store import EventStore
from otlp_requests import body

BAR_MS = 300.0
_ROUNDS = 60
"""Rounds in which each question is asked once, so that data has changed before it is again."""
_SLOWEST_START = 1_800.0
_ROWS_AT_ONCE = 20_000
_WIDE, _READERS = 1_000, 4
"""Ranks of one live run, and how many clients ask for its report again and again."""
_READ_EVERY = 0.05
"""Seconds from an answer to the next question of such a client."""
_WEEK = 7 * 86_400 * 10**9
_TICKS = os.sysconf("SC_CLK_TCK")

BUSY = 503

Ask = Callable[[httpx.Client, random.Random, Mapping[str, str]], httpx.Response]
"""Asks a question with headers; the same chance chooses the same run, node and incident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one question was answered, in ms; the first one apart, since nothing is cached then.

    `cpu_ms` is what the collector's process took for each, with all that it does beside. `poll_ms`
    is the median of asking again with the tag of the newest answer, None where there is no tag.
    """

    question: str
    first_ms: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float
    poll_ms: float | None
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
    built = build(fleet, path)
    begun = time.monotonic()
    collector = CollectorProcess(path, variables={"HEADWAY_COLLECTOR_COMMIT_INTERVAL": "0.2"})
    process = collector.process.pid
    try:
        ready = time.monotonic() - begun
        with httpx.Client(base_url=collector.address, timeout=600) as http:
            wait_for_ledgers(http)
            computed, size = time.monotonic() - begun, resident(process)
            with going_on(fleet, http):
                rows = _rows(_questions(fleet, http), http, process)
                rows += _beside_a_wide_run(http, process)
        return {
            "bar_ms": BAR_MS,
            "rows": [asdict(row) for row in rows],
            "met": all(row.met for row in rows),
            "fleet": asdict(fleet),
            "stored": built,
            "start_s": {"ready": ready, "every_ledger": computed},
            "resident_mb": {"ready": size, "after": resident(process)},
            "machine": {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "load_before": load,
                "load_after": os.getloadavg(),
            },
        }
    finally:
        collector.kill()


def build(fleet: Fleet, path: Path) -> dict[str, Any]:
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


def wait_for_ledgers(http: httpx.Client, path: str = "/api/v1/runs?limit=1") -> None:
    """Wait until ledgers are computed: before, who asks is told to come again."""
    deadline = time.monotonic() + _SLOWEST_START
    while (answer := http.get(path)).status_code == BUSY:
        if time.monotonic() > deadline:
            raise SystemExit(f"not ready after {_SLOWEST_START:g} s: {answer.text[:500]}")
        print(answer.json()["error"], file=sys.stderr)
        time.sleep(1.0)


def going_on(fleet: Fleet, http: httpx.Client) -> AbstractContextManager[None]:
    """Let the live runs complete a second of steps every second."""
    found = []
    for number in range(fleet.runs - fleet.live, fleet.runs):
        newest = None
        for envelope in fleet.envelopes(number):
            if envelope.event.name == "steps":
                newest = envelope
        if newest is not None:
            rank = fleet.rank(number)
            rank.attempt, rank.now = newest.attempt or "", newest.monotonic
            rank.sequence = newest.last_sequence + 1_000_000  # a gap: what lay between was torn
            step = newest.event.first_step + newest.last_sequence - newest.first_sequence + 1
            found.append((rank, step))
    return _training(found, http)


@contextmanager
def _training(ranks: Sequence[tuple[Rank, int]], http: httpx.Client) -> Iterator[None]:
    """Let ranks, each with its next step, complete a second of steps every second."""
    ended = threading.Event()

    def post() -> None:
        done = [step for _, step in ranks]
        while not ended.wait(1.0):
            content = []
            for place, (rank, _) in enumerate(ranks):
                content.append(rank.steps(done[place], 10))
                done[place] += 10
            _post(http, content)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _post(http: httpx.Client, envelopes: Sequence[Envelope]) -> None:
    headers = {"content-type": "application/x-protobuf"}
    http.post("/v1/logs", content=body(envelopes), headers=headers)


def _beside_a_wide_run(http: httpx.Client, process: int) -> list[Row]:
    """Ask while others ask again and again for a live run of many ranks."""
    ranks = wide(_WIDE, time.time_ns())
    _post(http, [ranks[0].tell(events.RunStarted(run_name="wide"))])
    started = events.AttemptStarted(layer="launcher", world_size=_WIDE, local_rank=0)
    for begin in range(0, _WIDE, 100):
        some = ranks[begin : begin + 100]
        _post(http, [rank.tell(started) for rank in some])
        _post(http, [rank.steps(1 + 20 * block, 20) for block in range(25) for rank in some])
    report = "/api/v1/runs/wide-1/report"
    wait_for_ledgers(http, report)
    ended = threading.Event()

    def keep_asking() -> None:
        with httpx.Client(base_url=http.base_url, timeout=600) as own:
            while not ended.wait(_READ_EVERY):
                own.get(report)

    def get(path: str) -> Ask:
        return lambda http, _, headers: http.get(path, headers=headers)

    paths = ("/api/v1/runs", "/api/v1/fleet", "/api/v1/health", "/metrics", report)
    readers = [threading.Thread(target=keep_asking, daemon=True) for _ in range(_READERS)]
    for reader in readers:
        reader.start()
    try:
        with _training([(rank, 501) for rank in ranks], http):
            questions = {f"beside {_WIDE:,} ranks: {path}": get(path) for path in paths}
            return _rows(questions, http, process)
    finally:
        ended.set()
        for reader in readers:
            reader.join()


def _questions(fleet: Fleet, http: httpx.Client) -> Mapping[str, Ask]:
    """Return a question per endpoint, each about another run, node or incident every time."""
    runs = [fleet.rank(number).run for number in range(fleet.runs)]
    chosen = {
        "run": runs,
        "node": [f"node-{number:03d}" for number in range(min(fleet.nodes, fleet.runs))],
        "incident": [
            one["incident"] for one in http.get("/api/v1/incidents?limit=1000").json()["incidents"]
        ],
        "question": [one["name"] for one in http.get("/api/v1/questions").json()["questions"]],
    }

    def get(path: str, **query: Any) -> Ask:
        def ask(
            http: httpx.Client, chance: random.Random, headers: Mapping[str, str]
        ) -> httpx.Response:
            named = {name: chance.choice(values) for name, values in chosen.items()}
            return http.get(path.format_map(named), params=query, headers=headers)

        return ask

    def sql(statement: str, arrow: bool = False) -> Ask:
        query = {"format": "arrow"} if arrow else {}

        def ask(http: httpx.Client, chance: random.Random, _: Mapping[str, str]) -> httpx.Response:
            asked = statement.replace("RUN", chance.choice(runs))
            return http.post("/api/v1/sql", json={"sql": asked}, params=query)

        return ask

    needed = {
        "/api/v1/comparison": {"one_run": runs[2], "other_run": runs[3]},
        "/api/v1/search": {"words": "timeout of rank 3"},
    }
    every = {
        one.path.removeprefix("/api/v1/"): get(one.path, **needed.get(one.path, {}))
        for one in ENDPOINTS
        if one.method == "GET" and not one.path.startswith("/api/v1/alerts")  # off here
    }
    live = f"/api/v1/runs/{runs[-1]}"
    return {
        **every,
        **{
            f"{path}, last week": get(f"/api/v1/{path}", last=_WEEK)
            for path in ("fleet", "fleet/course", "fleet/runs", "recovery", "hardware")
        },
        "runs?limit=1000": get("/api/v1/runs", limit=1000),
        "runs?label=team": get("/api/v1/runs", label="team=team-3"),
        "fleet?by=team": get("/api/v1/fleet", by="team"),
        "fleet?by=month": get("/api/v1/fleet", by="month"),
        "fleet/runs?sort=newest": get("/api/v1/fleet/runs", sort="newest"),
        "incidents?limit=1000": get("/api/v1/incidents", limit=1000),
        "incidents?run": get("/api/v1/incidents", run=runs[5]),
        "incidents?node": get("/api/v1/incidents", node="node-007"),
        **{
            f"live run's {part}": get(f"{live}/{part}")
            for part in ("report", "intervals", "steps", "ranks", "pace", "configuration")
        },
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
        "metrics": lambda http, _, headers: http.get("/metrics", headers=headers),
    }


@dataclass(slots=True)
class _Course:
    """What was measured of one question so far; times in ms, CPU time in s."""

    chance: random.Random
    asked: list[float] = field(default_factory=list)
    polled: list[float] = field(default_factory=list)
    cpu: float = 0.0
    size: int = 0


def _rows(questions: Mapping[str, Ask], http: httpx.Client, process: int) -> list[Row]:
    courses = {name: _Course(random.Random(name)) for name in questions}  # noqa: S311  # no secret
    for number in range(_ROUNDS + 1):
        print(f"round {number} of {_ROUNDS}", file=sys.stderr)
        for name, ask in questions.items():
            _ask_once(courses[name], ask, http, process)
    return [_row(name, course) for name, course in courses.items()]


def _ask_once(course: _Course, ask: Ask, http: httpx.Client, process: int) -> None:
    """Ask a question, and the same again as a page does that is kept open."""
    state, begun = course.chance.getstate(), _cpu(process)
    taken, answer = _timed(ask, http, course.chance, {})
    course.cpu += _cpu(process) - begun if course.asked else 0.0
    course.asked.append(taken)
    course.size = len(answer.content)
    if "ETag" in answer.headers:
        course.chance.setstate(state)
        known = {"If-None-Match": answer.headers["ETag"]}
        course.polled.append(_timed(ask, http, course.chance, known)[0])


def _row(name: str, course: _Course) -> Row:
    first, *rest = course.asked
    ordered, polled = sorted(rest), sorted(course.polled)
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return Row(
        question=name,
        first_ms=first,
        p50_ms=ordered[len(ordered) // 2],
        p95_ms=p95,
        cpu_ms=course.cpu / len(rest) * 1e3,
        poll_ms=polled[len(polled) // 2] if polled else None,
        size=course.size,
        met=p95 < BAR_MS,
    )


def _timed(
    ask: Ask, http: httpx.Client, chance: random.Random, headers: Mapping[str, str]
) -> tuple[float, httpx.Response]:
    """Return how long an answer took in ms, and the answer."""
    begun = time.perf_counter()
    answer = ask(http, chance, headers)
    taken = (time.perf_counter() - begun) * 1e3
    if answer.is_error:
        raise SystemExit(f"{answer.url}: {answer.status_code} {answer.text[:500]}")
    return taken, answer


def _cpu(process: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(process_id: int) -> float:
    """Return the memory of a process in MB."""
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * 4096 / 1e6


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    stored, memory, start = found["stored"], found["resident_mb"], found["start_s"]
    yield (
        f"{stored['events']:,} events in {stored['rows']:,} rows, {stored['mb']:.0f} MB; "
        f"ready after {start['ready']:.1f} s, every ledger after {start['every_ledger']:.1f} s "
        f"with {memory['ready']:.0f} MB, {memory['after']:.0f} MB at the end"
    )
    names = ("first ms", "p50 ms", "p95 ms", "CPU ms", "poll ms")
    yield f"{'question':<36}" + "".join(f" {name:>9}" for name in names) + f" {'bytes':>10}  met"
    for row in found["rows"]:
        poll = "-" if row["poll_ms"] is None else f"{row['poll_ms']:.1f}"
        yield (
            f"{row['question']:<36} {row['first_ms']:>9.1f} {row['p50_ms']:>9.1f} "
            f"{row['p95_ms']:>9.1f} {row['cpu_ms']:>9.1f} {poll:>9} {row['size']:>10,}  "
            f"{'yes' if row['met'] else 'NO'}"
        )


if __name__ == "__main__":
    main()
