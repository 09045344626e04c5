"""What the node agent costs: `scripts/bench agent [--seconds N] [--json]`.

The real agent at its default settings follows the real recorders of 8 ranks at 10 steps/s and
ships to an endpoint that counts every byte of every request, head and body. Its CPU time and
memory are the kernel's figures for its process.
"""

import argparse
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

RANKS, PACE = 8, 10
WARM_UP = 5.0
"""Seconds from the ranks' start that are left out: imports, first requests."""
BARS = {"cpu_percent": 1.0, "memory_mb": 80.0, "bytes_per_s": 2048.0}
"""CPU of one core and memory: design section 10; bytes: section 6."""


class Counter(socketserver.StreamRequestHandler):
    """Answers every request with 200 and counts what came."""

    received = 0
    requests = 0

    def handle(self) -> None:
        while line := self.rfile.readline():
            size, length = len(line), 0
            is_clock = line.startswith(b"GET")
            while (header := self.rfile.readline()).strip():
                size += len(header)
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            Counter.received += size + len(header) + len(self.rfile.read(length))
            Counter.requests += 1
            body = json.dumps({"time": time.time_ns()}).encode() if is_clock else b""
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench agent", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time measured; default 60")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    load = os.getloadavg()
    found = measure(options.seconds)
    rows = {
        name: {"value": found[name], "bar": bar, "met": found[name] < bar}
        for name, bar in BARS.items()
    }
    told = {"ranks": RANKS, "steps_per_s": PACE, "load_before": load, **found, "bars": rows}
    if options.json:
        print(json.dumps(told))
        return
    for name, row in rows.items():
        met = "yes" if row["met"] else "no"
        print(f"{name:<14} {row['value']:>10.3g}   bar {row['bar']:>8.5g}   met {met}")


def measure(seconds: float) -> dict[str, float]:
    """Return the agent's figures over some seconds of training."""
    with (
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Counter) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        agent = _start("headway", "agent", "--spool", folder, "--endpoint", endpoint, "--port", "0")
        assert agent.stdout is not None
        agent.stdout.readline()
        lasting = str(seconds + 2 * WARM_UP)
        ranks = _start("benchmarks.shipping.ranks", folder, str(RANKS), str(PACE), lasting)
        try:
            time.sleep(WARM_UP)
            before, began = _usage(agent.pid), time.monotonic()
            time.sleep(seconds)
            after, took = _usage(agent.pid), time.monotonic() - began
            memory = _peak(agent.pid)
        finally:
            for process in (ranks, agent):
                process.terminate()
                process.wait()
        server.shutdown()
    return {
        "seconds": took,
        "cpu_percent": 100 * (after[0] - before[0]) / took,
        "memory_mb": memory,
        "bytes_per_s": (after[1] - before[1]) / took,
        "requests_per_s": (after[2] - before[2]) / took,
    }


def _start(*module: str) -> "subprocess.Popen[Any]":
    return subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.PIPE)


def _usage(process_id: int) -> tuple[float, int, int]:
    """Return CPU seconds, bytes and requests so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return cpu, Counter.received, Counter.requests


def _peak(process_id: int) -> float:
    """Return the largest resident memory so far in MB."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("the kernel tells no memory of the agent")


if __name__ == "__main__":
    main()
