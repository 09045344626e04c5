"""What the demo starts and in which order: collector, agent, dashboard, then the training."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.cli.monitoring import Monitoring
from headway.cli.processes import Process, free_port
from headway.cli.progress import Progress
from headway.cli.refusal import NO, Refusal
from headway.cli.services import POLL, START_TIMEOUT, Services, newest
from headway.settings import AgentSettings, CollectorSettings, DashboardSettings

RUN_NAME = "demo"
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
        self._spool = folder / "spool"
        self._spool.mkdir()
        self._services = Services(folder)
        self._training: Process | None = None
        self._agent = ""
        self.dashboard = ""

    @property
    def collector(self) -> str:
        """Address of the collector, once the services are started."""
        return self._services.collector

    def start_services(self) -> None:
        """Start collector, agent and dashboard; their addresses are known afterwards.

        Raises:
            Refusal: one of them does not start.
        """
        self._services.start_collector(free_port("collector", CollectorSettings().port))
        endpoint = ("--endpoint", self.collector)
        port = str(free_port("dashboard", DashboardSettings().port))
        dashboard = self._services.service("dashboard", "dashboard", *endpoint, "--port", port)
        port = str(free_port("agent", AgentSettings().port))
        agent = self._services.service(
            "agent", "agent", "--spool", str(self._spool), *endpoint, "--port", port
        )
        self.dashboard = dashboard.address(START_TIMEOUT)
        self._agent = agent.address(START_TIMEOUT)

    def start_monitoring(self) -> Monitoring:
        """Start Prometheus and Alertmanager beside the services.

        Raises:
            Refusal: one of them does not start.
        """
        started = Monitoring(self._services)
        started.start([self.collector, self._agent], self.dashboard)
        return started

    def train(
        self, *, steps: int, checkpoint_every: int, faults: int, seed: int, ranks: int
    ) -> dict[str, Any]:
        """Train to the end and return the report once the collector has every event.

        Raises:
            Refusal: the training or a service failed, or events did not arrive.
        """
        command = [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(ranks)),
            *("-m", "headway.exporter.training.loop"),
            *("--steps", str(steps), "--checkpoint-every", str(checkpoint_every)),
            *("--faults", str(faults), "--seed", str(seed)),
            *("--directory", str(self._services.folder / "training")),
        ]
        environment = {
            "HEADWAY_SPOOL": str(self._spool),
            "HEADWAY_RUN": RUN_NAME,
            "HEADWAY_RUN_ID": time.strftime("%Y%m%dT%H%M%S"),
        }
        self._training = self._services.start("training", command, environment)
        with self._services.client() as client:
            progress = Progress()
            while (status := self._training.status()) is None:
                self._services.check()
                progress.show(newest(client))
                time.sleep(POLL)
            progress.end()
            if status != 0:
                raise Refusal(
                    f"the training ended with {status}", self._training.last_lines(), status=NO
                )
            return self._services.settled(client, [self._spool])

    def serve(self) -> None:
        """Keep the services up until Ctrl-C.

        Raises:
            Refusal: one of them ended.
        """
        try:
            while True:
                self._services.check()
                time.sleep(POLL)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        """End the training, then the services, the newest first."""
        if self._training is not None:
            self._training.stop()
        self._services.stop()
