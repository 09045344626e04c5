"""How soon a page is delivered, by either engine.

A real collector takes the events of a run whose third attempt since its last checkpoint just broke,
and the time is taken from that moment until a local receiver has the notice: told by the embedded
notifier, and by a real Prometheus and Alertmanager at the settings that are shipped (scraped and
evaluated every 15 s). Each run is one page; the events of several runs are a few seconds apart.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from alert_receiver import AlertReceiver, alert_receiver
from alert_stack import collecting, standard
from headway.alerts.engine import INTERVAL
from headway.alerts.prometheus_rules import INTERVAL as SHIPPED
from headway.collector.otlp.bodies import PROTOBUF
from headway.events import Envelope
from otlp_requests import body
from timeline import at, timeline

BARS = {"embedded": 10.0, "prometheus": 90.0}
"""Longest time in seconds from the event to the delivery, by the design."""
PATIENCE = 300.0
_GOLDEN = 0.618
"""Part of an interval by which moments are shifted, so that they spread over it."""
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
match = ['alertname=~"PersistentFault|RestartLoop"']
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


def delays(address: str, receiver: AlertReceiver, runs: int, interval: float) -> list[float]:
    """Return for each run the seconds from its events to its page.

    Runs break at other moments between two looks, which are `interval` seconds apart.
    """
    found = []
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        for number in range(runs):
            time.sleep(number * _GOLDEN % 1 * interval)
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
        alerts_file = routes(Path(folder), receiver)
        with collecting(Path(folder), "--alerts-file", str(alerts_file)) as address:
            return delays(address, receiver, runs, INTERVAL)


def prometheus(runs: int) -> list[float]:
    """Return the delays with Prometheus and Alertmanager at the shipped settings."""
    with tempfile.TemporaryDirectory() as name, alert_receiver() as receiver:
        folder = Path(name)
        alerts_file = routes(folder, receiver)
        with (
            collecting(folder, "--alerting", "no") as address,
            standard(folder, address, alerts_file, f"{SHIPPED}s"),
        ):
            return delays(address, receiver, runs, SHIPPED)


def routes(folder: Path, receiver: AlertReceiver) -> Path:
    """Write an alerts file that leads the pages to a receiver; return its path."""
    path = folder / "alerts.toml"
    path.write_text(ROUTES.replace("ADDRESS", receiver.address), encoding="utf-8")
    return path


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


def delivery(runs: int) -> dict[str, Any]:
    """Return the figures of both ways to tell, each of so many pages."""
    return {
        "embedded": row("embedded", embedded(runs)),
        "prometheus": row("prometheus", prometheus(runs)),
    }
