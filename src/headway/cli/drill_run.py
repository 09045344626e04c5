"""One drill from start to end: the nodes, the fault from outside, the layer, the report."""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from headway.cli.demo_run import outcome
from headway.cli.drill_layers import Node, nodes
from headway.cli.drill_plan import Drill
from headway.cli.memory_limit import MemoryLimit
from headway.cli.processes import Process, is_listening, unused_port
from headway.cli.refusal import NO, Refusal
from headway.cli.services import Services
from headway.exporter.training.faults import MEMORY
from headway.storage.client import CollectorClient

_POLL = 0.1
_LONGEST = 480.0
"""Seconds after which a drill counts as failed."""
_LEAVING = 30.0
"""Seconds that the other nodes may take to end once the training is complete."""
_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 300.0
"""Seconds that Kubernetes waits before it starts a failed container again, doubled each time."""
_BACKOFF_SCALE = 0.2
"""Part of the back-off for which a drill really waits."""
_MOST_STARTS = 4
_OF_INCIDENT = (
    "cause",
    "rule",
    "layer",
    "suspect_rank",
    "suspect_node",
    "suspect_gpu",
    "suspect_rule",
    "rollback_steps",
    "attempts",
    "outcome",
    "phases",
    "tries",
    "recovery_valid",
    "warnings",
    "evidence",
)


class DrillRun:
    """Services and nodes of one drill, with all state in one folder."""

    def __init__(self, drill: Drill, folder: Path) -> None:
        """Start nothing yet.

        Raises:
            Refusal: this machine cannot stage the fault.
        """
        self._drill = drill
        self._folder = folder
        self._limit = _memory_limit(drill)
        self._services = Services(folder)
        # Launchers leave logs and sockets behind, and a socket's path must be short.
        self._temporary = tempfile.mkdtemp(prefix="headway-")
        self._spools: dict[str, Path] = {}
        self._running: dict[str, Process] = {}
        self._lost: set[str] = set()
        self._struck = self._stopping = False
        self._deadline = time.monotonic() + _LONGEST

    def run(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Run it and return the report, and its incidents as the read API tells them.

        Raises:
            Refusal: the training did not reach its end, or a service failed.
        """
        self._services.start_collector(0)
        start = 0
        while not self._completed(start):
            start += 1
            if self._drill.layer != "scheduler" or start == _MOST_STARTS:
                raise self._failure(f"the training failed under the layer {self._drill.layer}")
            self._back_off(start)
        left = [folder for name, folder in self._spools.items() if name not in self._lost]
        with self._services.client() as client:
            report = self._services.settled(client, left)
            self._attach(client, report)
            return report, [client.incident(one["incident"]) for one in report["incidents"]]

    def _attach(self, client: CollectorClient, report: Mapping[str, Any]) -> None:
        """Keep the result with the configuration that met the fault, that of the first attempt."""
        content = json.dumps(told(self._drill, report))
        title = f"drill: {self._drill.fault} under {self._drill.layer}"
        client.attach(title, content, "headway drill", run=report["run"], attempt=1)

    def stop(self) -> None:
        """End every node, then the services."""
        for name in list(self._running):
            self._end(name)
        self._services.stop()

    def close(self) -> None:
        """Remove what was left behind, once no process of the drill lives."""
        shutil.rmtree(self._temporary, ignore_errors=True)
        if self._limit is not None:
            self._limit.close()

    def _completed(self, start: int) -> bool:
        """Start the job once and follow it to its end; return whether the training is complete."""
        port = unused_port()
        for node in nodes(self._drill, self._folder, port, start):
            self._start(node)
            if not node.environment:
                # Launchers number their ranks by their process ids, so the first must be first.
                self._wait_for_port(port)
        first, *others = self._running
        while self._running[first].status() is None:
            self._watch()
            if self._drill.layer == "scheduler" and any(self._failed(name) for name in others):
                break
            time.sleep(_POLL)
        done = self._running[first].status() == 0
        leaving = time.monotonic() + (_LEAVING if done or self._stopping else 0.0)
        while time.monotonic() < leaving and self._some_run(others):
            self._watch()
            time.sleep(_POLL)
        for name in list(self._running):
            self._end(name)
        return done

    def _some_run(self, names: Iterable[str]) -> bool:
        return any(self._running[name].status() is None for name in names)

    def _end(self, name: str) -> None:
        """End a node as a scheduler does, with whatever its processes left behind."""
        self._running.pop(name).stop()
        for process in self._processes(name):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _processes(self, name: str) -> list[psutil.Process]:
        spool = str(self._spools[name])
        return [one for one in psutil.process_iter() if _spool_of(one) == spool]

    def _wait_for_port(self, port: int) -> None:
        while not is_listening(port):
            self._watch()
            if any(process.status() is not None for process in self._running.values()):
                return
            time.sleep(_POLL)

    def _failed(self, name: str) -> bool:
        """Return whether a scheduler sees a node's job fail; a lost node tells it nothing."""
        return name not in self._lost and self._running[name].status() not in (None, 0)

    def _watch(self) -> None:
        """Do what is to be done from outside, once its moment has come.

        Raises:
            Refusal: a service ended, or the drill takes too long.
        """
        self._services.check()
        if time.monotonic() > self._deadline:
            raise self._failure(f"the drill had not ended after {_LONGEST:.0f} s")
        if self._struck:
            return
        mark = next((self._folder / "training" / MEMORY).glob(f"*-{self._drill.fault}"), None)
        if mark is None:
            return
        written = mark.read_text(encoding="ascii")
        if not written.endswith("\n"):
            return  # it was created just now
        self._struck = True
        self._tell_the_kernel(list(self._running)[-1])
        if self._drill.fault == "preemption":
            self._stopping = True
            for process in self._running.values():
                process.signal(signal.SIGTERM)
        elif self._drill.fault == "node_lost":
            self._lose(list(self._running)[-1])
        elif self._limit is not None:
            try:
                self._limit.run_out(int(written))
            except OSError as error:
                raise self._failure(f"the kernel did not kill the rank: {error}") from error

    def _tell_the_kernel(self, name: str) -> None:
        """Let the kernel's log of a node say what the drill wants it to say."""
        time_of = datetime.now(UTC) + timedelta(seconds=self._drill.kernel_lines_after)
        with self._kernel_log(name).open("a", encoding="utf-8") as log:
            for line in self._drill.kernel_lines:
                log.write(f"{time_of.isoformat()} {name} kernel: {line}\n")

    def _kernel_log(self, name: str) -> Path:
        return self._folder / f"{name}.kernel.log"

    def _lose(self, name: str) -> None:
        """Kill all processes of a node at once, as a power failure does."""
        found = self._processes(name)
        # Stopped first, so that none can tell of another's death.
        for step in (psutil.Process.suspend, psutil.Process.kill):
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    step(process)
        self._lost.add(name)

    def _start(self, node: Node) -> None:
        spool = self._spools.setdefault(node.name, self._folder / "spool" / node.name)
        spool.mkdir(parents=True, exist_ok=True)
        environment = {
            **node.environment,
            "NODE_NAME": node.name,
            "TMPDIR": self._temporary,
            "HEADWAY_SPOOL": str(spool),
            "HEADWAY_RUN_ID": str(self._drill.seed),
            "HEADWAY_ENDPOINT": self._services.collector,
            "HEADWAY_AGENT_PORT": "0",
        }
        if self._drill.kernel_lines:
            self._kernel_log(node.name).touch()
            environment["HEADWAY_AGENT_KERNEL_LOG"] = str(self._kernel_log(node.name))
        command = [sys.executable, "-m", "headway", "run", "--", *node.command]
        if self._limit is not None:
            command = self._limit.entered_by(command)
        self._running[node.name] = self._services.start(node.name, command, environment)

    def _back_off(self, start: int) -> None:
        real = min(_FIRST_BACKOFF * 2 ** (start - 1), _LONGEST_BACKOFF)
        scaled = real * _BACKOFF_SCALE
        print(
            f"scheduler: the job failed; start {start + 1} after a back-off of {scaled:.0f} s, "
            f"which stands for {real:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(scaled)

    def _failure(self, sentence: str) -> Refusal:
        logs = [self._folder / f"{name}.log" for name in self._spools]
        return Refusal(sentence, "\n".join(f"see {log}" for log in logs), status=NO)


def told(drill: Drill, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `headway drill --json` prints."""
    return {
        **outcome(report),
        **{name: getattr(drill, name) for name in ("layer", "fault", "at", "save", "seed")},
        "state": report["state"],
        "failed_starts": report["failed_starts"],
        "checkpoint_efficiency": report["checkpoint_efficiency"],
        "checkpoints": [
            {"step": one["step"], "state": one["state"]} for one in report["checkpoints"]
        ],
        "gpu_losses": report["gpu_losses"],
        "incidents": [
            {name: incident[name] for name in _OF_INCIDENT} for incident in report["incidents"]
        ],
    }


def _memory_limit(drill: Drill) -> MemoryLimit | None:
    if drill.fault != "oom":
        return None
    try:
        return MemoryLimit(f"headway-drill-{os.getpid()}")
    except OSError as error:
        raise Refusal(
            f"this machine cannot stage an oom: {error}",
            "run it as root of a machine whose memory cgroup is delegated to it",
        ) from error


def _spool_of(process: psutil.Process) -> str | None:
    try:
        found: str | None = process.environ().get("HEADWAY_SPOOL")
    except psutil.Error:
        return None
    return found
