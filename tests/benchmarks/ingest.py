"""What the collector takes in: `scripts/bench ingest [--seconds N] [--minutes N] [--json]`.

The real collector at its default settings in a process of its own, and a client that sends
requests which were encoded before: closed phases of 8 ranks a node, 125 a rank and request, and
then steps, 1,000 a record. Each record is new. A rate counts what was acknowledged, so decoded,
deduplicated and committed; the floor is the same rows as ready Arrow tables, inserted into DuckDB
in this run. With `--minutes` the collector's memory is watched at full load, while 3 readers ask.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.ingesting.client import Sent, send
from benchmarks.ingesting.floor import arrow_insert
from benchmarks.ingesting.load import EACH, fleet, in_turn, nodes

NODES = 16
CONNECTIONS = 32
ATTRIBUTES = 7
"""Attributes of a record, beside five of its resource."""
BARS = {"records_per_s": 50_000.0, "steps_per_s": 1_000_000.0, "p99_ack_s": 2.0}
FLEET = (8, 2, 240)
"""Runs that train at a time, nodes of each, requests of each until it ends."""
LEDGER_LIMIT = 256 * 1024**2
"""Bytes for ledgers while memory is watched, a quarter of the default, so that it is full soon."""
QUESTIONS = ("/metrics", "/api/v1/runs", "/api/v1/runs/llama-0-20261129/report")
_PROGRAM = (  # DuckDB takes a program without a file for a notebook and shows its progress
    "import __main__; __main__.__file__ = 'collector'\n"
    "import sys; from headway.settings import CollectorSettings, load\n"
    "from headway.collector.server import main; sys.exit(main(load(CollectorSettings)))"
)


@dataclass(frozen=True, slots=True)
class Server:
    """A started collector."""

    address: str
    process_id: int

    def cpu(self) -> float:
        """Return the seconds that it has spent on a CPU."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return its resident memory in MB."""
        pages = int(Path(f"/proc/{self.process_id}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def collector(**settings: object) -> Iterator[Server]:
    """Start a collector on an empty database, with defaults for what is not said."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}
        for name, value in {"port": 0, **settings}.items():
            environment[f"HEADWAY_COLLECTOR_{name.upper()}"] = str(value)
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            cwd=folder,
            env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("listening on "):
                    yield Server(line.removeprefix("listening on ").strip(), process.pid)
                    break
            else:
                raise SystemExit("the collector did not start")
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench ingest", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="time of each part; default 15")
    parser.add_argument("--minutes", type=float, default=0.0, help="watch the memory for so long")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    load = os.getloadavg()
    found = {kind: measure(kind, options.seconds) for kind in EACH}
    values = {
        "records_per_s": found["records"]["per_s"],
        "steps_per_s": found["steps"]["per_s"],
        "p99_ack_s": max(part["half_load_p99_s"] for part in found.values()),
    }
    rows = {
        name: {
            "value": value,
            "bar": BARS[name],
            "met": value < BARS[name] if name == "p99_ack_s" else value >= BARS[name],
        }
        for name, value in values.items()
    }
    told: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)),
        "load_before": load,
        "attributes_per_record": ATTRIBUTES,
        **found,
        "bars": rows,
    }
    if options.minutes:
        told["memory"] = watch(options.minutes)
    told["load_after"] = os.getloadavg()
    if options.json:
        print(json.dumps(told))
        return
    for name, row in rows.items():
        met = "yes" if row["met"] else "no"
        print(f"{name:<14} {row['value']:>12,.3g}   bar {row['bar']:>11,.7g}   met {met}")
    for kind, part in found.items():
        print(f"{kind}: {json.dumps({name: round(value, 4) for name, value in part.items()})}")
    print(
        json.dumps(
            {name: told[name] for name in ("load_before", "load_after", "memory") if name in told}
        )
    )


def measure(kind: str, seconds: float) -> Mapping[str, float]:
    """Return the rates of one kind of load, alone and beside its floor."""
    bodies = in_turn(nodes(NODES), kind, EACH[kind])
    with collector() as server:
        send(server.address, islice(bodies, 50), seconds, CONNECTIONS, None)  # warm
        encoded = list(islice(bodies, int(seconds * {"records": 120, "steps": 400}[kind])))
        cpu = server.cpu()
        full = send(server.address, iter(encoded), seconds, CONNECTIONS, None)
        used = server.cpu() - cpu
    per_s = _amount(full) / full.lasted
    per_request = _amount(full) / len(full.waits)
    with collector() as server:
        send(server.address, in_turn(nodes(NODES), kind, EACH[kind]), 1.0, CONNECTIONS, None)
        half = send(server.address, bodies, seconds, CONNECTIONS, per_s / 2 / per_request)
    floor = arrow_insert(encoded[:100])
    return {
        "per_s": per_s,
        "floor_per_s": floor,
        "share_of_floor": per_s / floor,
        "server_cpu_us_each": 1e6 * used / _amount(full),
        "client_cpu_us_each": 1e6 * full.client_cpu / _amount(full),
        "bytes_each": full.content_bytes / _amount(full),
        "each_request": per_request,
        "full_load_p99_s": float(np.quantile(full.waits, 0.99)),
        "half_load_p50_s": float(np.quantile(half.waits, 0.5)),
        "half_load_p99_s": float(np.quantile(half.waits, 0.99)),
        "turned_away": full.turned_away + half.turned_away,
    }


def _amount(sent: Sent) -> int:
    return sent.steps or sent.records


def watch(minutes: float) -> Mapping[str, Any]:
    """Return how the collector's memory goes at full load of both kinds, with 3 readers."""
    samples: list[tuple[float, float]] = []
    statuses: Counter[int] = Counter()
    done = threading.Event()
    with collector(ledger_limit=LEDGER_LIMIT) as server:
        begin = time.monotonic()

        def sample() -> None:
            while not done.wait(5.0):
                samples.append((time.monotonic() - begin, server.memory()))

        def read() -> None:
            with httpx.Client(base_url=server.address, timeout=60, trust_env=False) as http:
                while not done.wait(1.0):
                    for path in QUESTIONS:
                        statuses[http.get(path).status_code] += 1
                    newest = http.get("/api/v1/runs").json()["runs"][:1]
                    for run in newest:
                        asked = http.get(f"/api/v1/runs/{run['run']}/report")
                        statuses[asked.status_code] += 1

        threads = [threading.Thread(target=sample)]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        cpu = server.cpu()
        sent = send(server.address, fleet(*FLEET), 60 * minutes, CONNECTIONS, None)
        cpu = server.cpu() - cpu
        done.set()
        for thread in threads:
            thread.join()
    times, memory = np.array(samples).T
    late = times > times[-1] / 3
    slope = float(np.polyfit(times[late], memory[late], 1)[0])
    return {
        "minutes": minutes,
        "ledger_limit": LEDGER_LIMIT,
        "records_per_s": sent.records / sent.lasted,
        "steps_per_s": sent.steps / sent.lasted,
        "p99_ack_s": float(np.quantile(sent.waits, 0.99)),
        "server_cpu_share": cpu / sent.lasted,
        "answers": {str(status): number for status, number in sorted(statuses.items())},
        "mb_after_each_tenth": [round(float(each[-1]), 1) for each in np.array_split(memory, 10)],
        "mb_per_minute_after_a_third": 60 * slope,
    }


if __name__ == "__main__":
    main()
