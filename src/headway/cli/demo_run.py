"""What the demo starts and in which order: collector, agent, dashboard, then the training."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.cli.processes import Process, free_port
from headway.cli.progress import Progress
from headway.cli.refusal import NO, Refusal
from headway.exporter.spool import spools
from headway.settings import AgentSettings, ClientSettings, CollectorSettings, DashboardSettings
from headway.storage.client import CollectorClient, CollectorError

RUN_NAME = "demo"
_START_TIMEOUT = 60.0
_SHIP_TIMEOUT = 60.0
_POLL = 0.5
_OUTCOME = (
    "run",
    "elapsed_ns",
    "categories",
    "training_goodput",
    "infrastructure_goodput",
    "attempts",
    "restarts",
    "rollbacks",
    "checkpoint",
    "dropped_events",
)


def outcome(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a report that `headway demo --json` prints."""
    steps = {name: report["steps"][name] for name in ("highest", "executed", "target")}
    return {**{name: report[name] for name in _OUTCOME}, "steps": steps}


class Demo:
    """Services and training of one demo, with all state in one folder."""

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        self._folder = folder
        self._spool = folder / "spool"
        self._spool.mkdir()
        # Settings that the user's shell exports are for real services, not for these.
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")
        }
        self._environment |= {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        self._services: list[Process] = []
        self._training: Process | None = None
        self.collector = ""
        self.dashboard = ""

    def start_services(self) -> None:
        """Start collector, agent and dashboard; their addresses are known afterwards.

        Raises:
            Refusal: one of them does not start.
        """
        database = self._folder / "headway.duckdb"
        port = str(free_port("collector", CollectorSettings().port))
        collector = self._service(
            "collector", "collect", "--database", str(database), "--port", port
        )
        self.collector = collector.address(_START_TIMEOUT)
        port = str(free_port("agent", AgentSettings().port))
        agent = self._service(
            "agent",
            "agent",
            *("--spool", str(self._spool), "--endpoint", self.collector, "--port", port),
        )
        port = str(free_port("dashboard", DashboardSettings().port))
        dashboard = self._service(
            "dashboard", "dashboard", "--endpoint", self.collector, "--port", port
        )
        self.dashboard = dashboard.address(_START_TIMEOUT)
        agent.address(_START_TIMEOUT)

    def train(
        self, *, steps: int, checkpoint_every: int, faults: int, seed: int, ranks: int
    ) -> dict[str, Any]:
        """Train to the end and return the report once the collector has every event.

        Raises:
            Refusal: the training or a service failed, or events did not arrive.
        """
        started = time.strftime("%Y%m%dT%H%M%S")
        self._training = self._start(
            "training",
            "torch.distributed.run",
            *("--standalone", "--nproc-per-node", str(ranks)),
            *("-m", "headway.exporter.training.loop"),
            *("--steps", str(steps), "--checkpoint-every", str(checkpoint_every)),
            *("--faults", str(faults), "--seed", str(seed)),
            *("--directory", str(self._folder / "training")),
            HEADWAY_SPOOL=str(self._spool),
            HEADWAY_RUN=RUN_NAME,
            HEADWAY_RUN_ID=started,
        )
        with CollectorClient(ClientSettings(endpoint=self.collector)) as client:
            progress = Progress()
            while (status := self._training.status()) is None:
                self._check_services()
                progress.show(_newest(client))
                time.sleep(_POLL)
            progress.end()
            if status != 0:
                raise Refusal(
                    f"the training ended with {status}", self._training.last_lines(), status=NO
                )
            return self._settled(client)

    def serve(self) -> None:
        """Keep the services up until Ctrl-C.

        Raises:
            Refusal: one of them ended.
        """
        try:
            while True:
                self._check_services()
                time.sleep(_POLL)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        """End the training, then the services, the newest first."""
        for process in [self._training, *reversed(self._services)]:
            if process is not None:
                process.stop()

    def _settled(self, client: CollectorClient) -> dict[str, Any]:
        deadline = time.monotonic() + _SHIP_TIMEOUT
        while time.monotonic() < deadline:
            self._check_services()
            newest = _newest(client)
            if not spools(self._spool) and newest is not None and newest["state"] != "running":
                return client.report(newest["run"])
            time.sleep(_POLL)
        agent = self._services[1]
        raise Refusal(
            f"events had not reached the collector {_SHIP_TIMEOUT:.0f} s after the training",
            agent.last_lines(),
            status=NO,
        )

    def _check_services(self) -> None:
        for service in self._services:
            if service.status() is not None:
                raise Refusal(
                    f"the {service.name} ended with {service.status()}",
                    service.last_lines(),
                    status=NO,
                )

    def _service(self, name: str, *command: str) -> Process:
        service = self._start(name, "headway", *command)
        self._services.append(service)
        return service

    def _start(self, name: str, module: str, *arguments: str, **environment: str) -> Process:
        return Process(
            name,
            [sys.executable, "-m", module, *arguments],
            self._folder / f"{name}.log",
            {**self._environment, **environment},
        )


def _newest(client: CollectorClient) -> dict[str, Any] | None:
    """Return the summary of the only run there is; a busy collector answers next time."""
    try:
        runs = client.runs()
    except CollectorError:
        return None
    return runs[0] if runs else None
