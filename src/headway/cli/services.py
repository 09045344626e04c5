"""Services that a command starts for its own run: collector, agents, dashboard, in one folder."""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headway.cli.processes import Process
from headway.cli.refusal import NO, Refusal
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import CollectorError

POLL = 0.5
"""Seconds between two looks at the services."""
START_TIMEOUT = 60.0
"""Seconds that a service may take to say where it listens."""
_SHIP_TIMEOUT = 60.0


class Services:
    """The services of one command; their logs lie in its folder."""

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        self.folder = folder
        # Settings that the user's shell exports are for real services, not for these.
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")
        }
        self._environment |= {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        self._services: list[Process] = []
        self.collector = ""

    def start_collector(self, port: int) -> None:
        """Start the collector and wait for its address; port 0 takes a free one.

        Raises:
            Refusal: it does not start.
        """
        database = str(self.folder / "headway.duckdb")
        tokens = str(self.folder / "headway-tokens.json")  # not those of the user's own collector
        command = ("collect", "--database", database, "--tokens", tokens, "--port", str(port))
        self.collector = self.service("collector", *command).address(START_TIMEOUT)

    def service(self, name: str, *command: str) -> Process:
        """Start one of Headway's own commands, which must then live as long as this command."""
        return self.program(name, [sys.executable, "-m", "headway", *command])

    def program(self, name: str, command: list[str]) -> Process:
        """Start a program that must then live as long as this command."""
        started = self.start(name, command)
        self._services.append(started)
        return started

    def start(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program that may end."""
        log = self.folder / f"{name}.log"
        return Process(name, command, log, {**self._environment, **(environment or {})})

    def client(self) -> CollectorClient:
        """Return a client of the collector."""
        return CollectorClient(ClientSettings(endpoint=self.collector))

    def check(self) -> None:
        """Look whether all live.

        Raises:
            Refusal: one of them ended.
        """
        for service in self._services:
            if service.status() is not None:
                raise Refusal(
                    f"the {service.name} ended with {service.status()}",
                    service.last_lines(),
                    status=NO,
                )

    def settled(self, client: CollectorClient, folders: Iterable[Path]) -> dict[str, Any]:
        """Return the report of the run that ended, once nothing of it waits in these spool folders.

        Raises:
            Refusal: events did not arrive in time, or a service ended.
        """
        watched = tuple(folders)
        deadline = time.monotonic() + _SHIP_TIMEOUT
        while time.monotonic() < deadline:
            self.check()
            found = newest(client)
            waiting = any(_of_runs(folder) for folder in watched)
            if not waiting and found is not None and found["state"] != "running":
                return client.report(found["run"])
            time.sleep(POLL)
        raise Refusal(
            f"events had not reached the collector {_SHIP_TIMEOUT:.0f} s after the training",
            self._services[-1].last_lines(),
            status=NO,
        )

    def stop(self) -> None:
        """End the services, the newest first."""
        for process in reversed(self._services):
            process.stop()


def _of_runs(folder: Path) -> list[Path]:
    """Return the spools of runs; what an agent notes of its node goes on as long as it lives."""
    return [
        spool
        for spool in spools(folder)
        if (producer := SpoolReader(spool).producer) is None or producer.run is not None
    ]


def newest(client: CollectorClient) -> dict[str, Any] | None:
    """Return the summary of the only run there is; a busy collector answers next time."""
    try:
        runs = client.runs()
    except CollectorError:
        return None
    return runs[0] if runs else None
