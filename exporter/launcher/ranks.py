"""The ranks that a command started, found by their spools, and how their processes end.

A rank's process is no child of ours, but the kernel tells its end to whoever holds a descriptor of
it, and how it ended to whoever asks at once.
"""

import contextlib
import os
import re
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headway.exporter.ends import MARK, Parent
from headway.exporter.launcher.process_end import exit_code
from headway.exporter.oom import kill_counter
from headway.exporter.spooling.layout import HEADER, Producer
from headway.exporter.spooling.reader import SpoolReader, Status

_ERROR_FILE = re.compile(r"(.+)/(attempt|cycle)_(\d{1,9})/(\d{1,9})/error\.json")


@dataclass(slots=True, kw_only=True)
class RankProcess:
    """One rank's process, as far as it is known; times are monotonic ns."""

    producer: Producer
    rank: int
    process_id: int
    attempt: str | None = None
    local_rank: int | None = None
    error_file: Path | None = None
    cycle_info: Path | None = None
    counter: Path | None = None
    """What counts the kills for lack of memory in its control group."""
    closed: bool = False
    """Whether its recorder ended in order."""
    ended: int | None = None
    code: int | None = None
    """Exit code as Python gives it, negative for a signal."""
    told: bool = False
    """Whether its end was told."""
    descriptor: int | None = field(default=None, repr=False)


class Ranks:
    """The processes that recorded in a folder of spools and carry the command's mark."""

    def __init__(self, folder: Path, mark: str, boot_id: str | None, since: int) -> None:
        """Begin with those that record after `since`, in monotonic ns.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder = folder
        self._mark = mark
        self._boot_id = boot_id
        self._since = since
        self._parent = Parent(folder, mark)
        self._readers: dict[str, SpoolReader] = {}
        self._ends = select.epoll()
        self.known: dict[str, RankProcess] = {}
        """Every rank of the command so far, by producer."""

    def look(self) -> Iterator[RankProcess]:
        """Look for new ranks; yield them."""
        try:
            there = set(os.listdir(self._folder))
        except OSError:
            return
        for name in sorted(there - self._readers.keys()):
            if name.startswith(".") or not (self._folder / name / HEADER).is_file():
                continue
            reader = self._readers[name] = SpoolReader(self._folder / name)
            found = self._found(reader)
            if found is not None:
                self._forget_before(found)
                self.known[name] = found
                yield found
        for name in self._readers.keys() - there - self.known.keys():
            del self._readers[name]

    def refresh(self, process: RankProcess) -> None:
        """Look at what a rank is doing, or was when it ended."""
        self._watch(process, self._readers[process.producer.producer].status())

    def watch(self) -> None:
        """Look at what each rank is doing, and whether it is alive."""
        for process in self.known.values():
            if process.ended is None:
                self.refresh(process)

    def told(self, process: RankProcess) -> None:
        """Remember that the end of a rank is told."""
        process.told = True
        self._parent.told(self._folder / process.producer.producer)

    def wait(self, seconds: float) -> None:
        """Wait until a rank's process ends, `seconds` at most, and read at once how it ended.

        For a thread of its own: a launcher asks for the exit code within milliseconds.
        """
        ready = [descriptor for descriptor, _ in self._ends.poll(seconds)]
        now = time.monotonic_ns()
        for process in list(self.known.values()) if ready else ():
            if process.descriptor is not None and process.descriptor in ready:
                process.code = exit_code(process.process_id, process.descriptor)
                self._forget(process)
                process.ended = now

    def close(self) -> None:
        """Let go of every process; the agent tells the ends that are yet to come."""
        for process in self.known.values():
            self._forget(process)
        self._parent.close()
        self._ends.close()

    def by_process(self, process_id: int) -> RankProcess | None:
        """Return the newest rank with a process id."""
        found = [item for item in self.known.values() if item.process_id == process_id]
        return found[-1] if found else None

    def by_rank(self, rank: int) -> RankProcess | None:
        """Return the newest process of a rank."""
        found = [item for item in self.known.values() if item.rank == rank]
        return found[-1] if found else None

    def by_local_rank(self, local_rank: int) -> RankProcess | None:
        """Return the newest process of a rank by its number on this node."""
        found = [item for item in self.known.values() if item.local_rank == local_rank]
        return found[-1] if found else None

    def newest(self) -> RankProcess | None:
        """Return the rank that was found last."""
        return next(reversed(self.known.values()), None)

    def _found(self, reader: SpoolReader) -> RankProcess | None:
        producer = reader.producer
        if producer is None or producer.rank is None or producer.boot_id != self._boot_id:
            return None
        environment = _environment(producer.process_id)
        if environment is None:
            # It is gone already: one that was at work before the command started is not ours.
            if reader.status().last_activity < self._since:
                return None
            environment = {}
        elif environment.get(MARK) != self._mark:
            return None
        local = environment.get("LOCAL_RANK") or environment.get("SLURM_LOCALID") or ""
        error_file = environment.get("TORCHELASTIC_ERROR_FILE")
        cycle_info = environment.get("NVRX_CURRENT_CYCLE_INFO")
        process = RankProcess(
            producer=producer,
            rank=producer.rank,
            process_id=producer.process_id,
            local_rank=int(local) if local.isascii() and local.isdigit() else None,
            error_file=Path(error_file) if error_file else None,
            cycle_info=Path(cycle_info) if cycle_info else None,
            counter=kill_counter(producer.process_id),
        )
        with contextlib.suppress(OSError):  # it is gone, or the kernel is too old
            process.descriptor = os.pidfd_open(producer.process_id)
            self._ends.register(process.descriptor, select.EPOLLIN)
        self._watch(process, reader.status())
        return process

    def _forget_before(self, new: RankProcess) -> None:
        """Forget what a rank was before, once its end is told, but for the newest of them."""
        told = [name for name, item in self.known.items() if item.rank == new.rank and item.told]
        for name in told[:-1]:
            del self.known[name]

    def _watch(self, process: RankProcess, status: Status) -> None:
        process.attempt = status.attempt or process.attempt
        process.closed |= status.closed
        if process.descriptor is None and process.ended is None and not status.alive:
            process.ended = time.monotonic_ns()

    def _forget(self, process: RankProcess) -> None:
        if process.descriptor is not None:
            descriptor, process.descriptor = process.descriptor, None
            self._ends.unregister(descriptor)
            os.close(descriptor)


def earlier_error_files(error_file: Path) -> list[tuple[int, Path]]:
    """Return local rank and error file of the ranks of the attempt before, by torchelastic's names.

    `.../attempt_1/0/error.json` leads to `.../attempt_0/*/error.json`; NVRx 0.6 says `cycle_`.
    """
    found = _ERROR_FILE.fullmatch(str(error_file))
    if found is None or found[3] == "0":
        return []
    before = Path(found[1]) / f"{found[2]}_{int(found[3]) - 1}"
    try:
        folders = sorted(before.iterdir())
    except OSError:
        return []
    return [
        (int(folder.name), folder / "error.json") for folder in folders if folder.name.isdigit()
    ]


def _environment(process_id: int) -> dict[str, str] | None:
    """Return the environment that a process was started with; `None` where it is gone."""
    try:
        content = Path(f"/proc/{process_id}/environ").read_bytes()
    except PermissionError:
        return {}
    except OSError:
        return None
    if not content:
        return None
    pairs = (item.partition(b"=") for item in content.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
