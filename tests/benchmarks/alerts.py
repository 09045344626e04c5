"""How soon a page is delivered: `scripts/bench alerts [--runs N] [--json]`.

A real collector takes the events of a run whose third attempt since its last checkpoint just broke,
and the time is taken from that moment until a local receiver has the notice: told by the embedded
notifier, and by a real Prometheus and Alertmanager at the settings that are shipped (scraped and
evaluated every 15 s). Each run is one page; the events of several runs are a few seconds apart.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from agent_process import clean_environment
from alert_receiver import AlertReceiver, alert_receiver
from alertmanager_process import alertmanager
from headway.alerts.alertmanager import configuration
from headway.alerts.catalogue import GROUPS
from headway.alerts.prometheus_rules import rule_file
from headway.alerts.site import site
from headway.collector.otlp.bodies import PROTOBUF
from headway.events import Envelope
from otlp_requests import body
from prometheus_process import prometheus
from timeline import at, timeline

BARS = {"embedded": 10.0, "prometheus": 90.0}
"""Longest time in seconds from the event to the delivery, by the design."""
PATIENCE = 300.0
LOOP = """
0      allocation 4
0      attempt A launcher world=1
0-50   steps 1-50
50     scheduled c50
52     finalized c50
60     fault exception exception=ValueError message="bad sample 17"
61     exit code=1
70     attempt B launcher world=1
72     resumed 50 from=c50
72-73  steps 51
75     fault exception exception=ValueError message="bad sample 17"
76     exit code=1
80     attempt C launcher world=1
82     resumed 50 from=c50
82-83  steps 51
85     fault exception exception=ValueError message="bad sample 17"
86     exit code=1
90     attempt D launcher world=1
"""
ROUTES = """
default = "log"
[receivers.log]
kind = "log"
[receivers.hook]
kind = "webhook"
url = "ADDRESS/hook"
[[routes]]
match = ['alertname="RestartLoop"']
receiver = "hook"
"""


def looping(run: str) -> list[Envelope]:
    """Return the events of a run that loops since now."""
    shift = time.time_ns() - at(91)
    return [
        replace(
            one,
            producer=f"{run}-{one.producer}",
            anchor=one.anchor + shift,
            wall=one.wall + shift,
            boot_id=run,
        )
        for one in timeline(LOOP, run)
    ]


def delays(address: str, receiver: AlertReceiver, runs: int) -> list[float]:
    """Return for each run the seconds from its events to its page."""
    found = []
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        for number in range(runs):
            before = len(receiver.taken)
            content = body(looping(f"run{number}-{time.time_ns()}"))
            begun = time.monotonic()
            headers = {"content-type": PROTOBUF}
            client.post("/v1/logs", content=content, headers=headers).raise_for_status()
            receiver.bodies(before + 1, PATIENCE)
            found.append(time.monotonic() - begun)
    return found


def embedded(runs: int) -> list[float]:
    """Return the delays with the collector's own notifier."""
    with tempfile.TemporaryDirectory() as folder, alert_receiver() as receiver:
        path = Path(folder) / "alerts.toml"
        path.write_text(ROUTES.replace("ADDRESS", receiver.address), encoding="utf-8")
        with _collector(Path(folder), "--alerts-file", str(path)) as address:
            return delays(address, receiver, runs)


def standard(runs: int) -> list[float]:
    """Return the delays with Prometheus and Alertmanager at the shipped settings."""
    with tempfile.TemporaryDirectory() as name, alert_receiver() as receiver:
        folder = Path(name)
        routes = site(ROUTES.replace("ADDRESS", receiver.address))
        rules = folder / "rules.yml"
        rules.write_text(rule_file(GROUPS, "http://127.0.0.1:8752"), encoding="utf-8")
        with (
            _collector(folder, "--alerting", "no") as address,
            alertmanager(folder, configuration(routes)) as manager,
            prometheus(folder, _scraping(address, manager, rules)),
        ):
            return delays(address, receiver, runs)


@contextmanager
def _collector(folder: Path, *options: str) -> Iterator[str]:
    """Serve `headway collect` as a user starts it; give its address."""
    files = ("--database", str(folder / "events.duckdb"), "--tokens", str(folder / "tokens.json"))
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", "collect", *files, "--port", "0", *options],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield next(
            line.removeprefix("listening on ").strip()
            for line in process.stdout
            if line.startswith("listening on ")
        )
    finally:
        process.terminate()
        process.wait(30)


def _scraping(collector: str, manager: str, rules: Path) -> str:
    hosts = [collector.removeprefix("http://")]
    managers = [manager.removeprefix("http://")]
    return json.dumps(
        {
            "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": managers}]}]},
            "scrape_configs": [{"job_name": "headway", "static_configs": [{"targets": hosts}]}],
        }
    )


def row(name: str, found: Sequence[float]) -> dict[str, Any]:
    """Return the figures of one way to tell."""
    ordered = sorted(found)
    longest = ordered[-1]
    return {
        "pages": len(ordered),
        "p50_s": round(ordered[len(ordered) // 2], 2),
        "longest_s": round(longest, 2),
        "bar_s": BARS[name],
        "met": longest <= BARS[name],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench alerts", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="pages of each way; default 5")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = {
        "embedded": row("embedded", embedded(options.runs)),
        "prometheus": row("prometheus", standard(options.runs)),
    }
    if options.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            words = ", ".join(f"{key} {value}" for key, value in figures.items())
            print(f"{name}: {words}")
    sys.exit(0 if all(one["met"] for one in found.values()) else 1)


if __name__ == "__main__":
    main()
