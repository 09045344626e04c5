"""A collector, an agent and a folder of spools, of which the first two die and come back.

What producers record is kept from the agent, which deletes what was acknowledged: each file of a
spool gets a second name elsewhere as soon as it appears, so the recorded truth outlives the agent.
"""

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Self

from agent_process import AgentProcess
from collector_process import CollectorProcess
from headway.exporter.spooling.reader import SpoolReader, spools

VICTIMS = ("collector", "agent", "rank")
_LOOK = 0.003
"""Seconds between two looks for new files; the agent needs longer to delete one."""
_TRIES = 5


class DoomedCollector(CollectorProcess):
    """A collector that is killed some seconds after its start, ready or not."""

    def __init__(self, database: Path, port: int, delay: float) -> None:
        self._delay = delay
        super().__init__(database, port)

    def _read_address(self) -> str:
        time.sleep(self._delay)
        self.kill()
        return ""


@dataclass(slots=True)
class Counts:
    """What happened so far."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    while_starting: int = 0
    """Collectors killed before they were ready, beside the others."""
    opens: int = 0
    failed_opens: int = 0
    errors: list[str] = field(default_factory=list)


class World:
    """Everything but the ranks."""

    def __init__(self, folder: Path, chance: Random, counts: Counts) -> None:
        self.spool, self.truth = folder / "spool", folder / "truth"
        self.database = folder / "store.duckdb"
        self.counts = counts
        self._chance = chance
        self._ended = threading.Event()
        self._linking = threading.Thread(target=self._link_on, name="links")

    def __enter__(self) -> Self:
        self.spool.mkdir(parents=True)
        self.truth.mkdir()
        self._linking.start()
        self.collector = CollectorProcess(self.database)
        self._port = int(self.collector.address.rpartition(":")[2])
        self.agent = AgentProcess(self.spool, self.collector.address)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._linking.join()
        self.agent.kill()
        self.collector.kill()

    def kill_collector(self) -> None:
        """Kill it and start it again; now and then kill it while it starts, too."""
        self.collector.kill()
        self.counts.kills["collector"] += 1
        if self._chance.random() < 0.25:
            DoomedCollector(self.database, self._port, self._chance.uniform(0, 1.5))
            self.counts.while_starting += 1
        for _ in range(_TRIES):
            self.collector = CollectorProcess(self.database, self._port)
            self.counts.opens += 1
            if self.collector.address.endswith(f":{self._port}"):
                return
            if self.collector.address == "":
                self.counts.failed_opens += 1
                self.counts.errors.append(self.collector.stop()[1])
            else:
                self.collector.kill()  # somebody else had the port for a moment
            time.sleep(0.5)
        raise RuntimeError(f"the collector does not come back: {self.counts.errors}")

    def kill_agent(self) -> None:
        """Kill it and start it again."""
        self.agent.kill()
        self.counts.kills["agent"] += 1
        self.agent = AgentProcess(self.spool, self.collector.address)

    def drain(self, seconds: float = 120) -> None:
        """Wait until the spools of all ranks are acknowledged and gone, then end the agent."""
        deadline = time.monotonic() + seconds
        while any(_is_of_a_rank(folder) for folder in spools(self.spool)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"not shipped: {[path.name for path in spools(self.spool)]}")
            time.sleep(0.05)
        self.agent.stop()

    def _link_on(self) -> None:
        while not self._ended.wait(_LOOK):
            self.link()

    def link(self) -> None:
        """Give what is new in the spools its second name."""
        with suppress(FileNotFoundError):
            for folder in os.scandir(self.spool):
                if folder.is_dir() and not folder.name.startswith("."):
                    self._link_spool(Path(folder.path))

    def _link_spool(self, folder: Path) -> None:
        kept = self.truth / folder.name
        with suppress(FileNotFoundError):  # the agent may just have deleted it
            for path in os.listdir(folder):
                if not (kept / path).exists():
                    kept.mkdir(exist_ok=True)
                    with suppress(FileExistsError):
                        (kept / path).hardlink_to(folder / path)


def _is_of_a_rank(folder: Path) -> bool:
    producer = SpoolReader(folder).producer
    return producer is not None and producer.rank is not None
