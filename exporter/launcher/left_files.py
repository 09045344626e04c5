"""Records what ranks and launchers leave in files: exceptions, and NVRx's cycles."""

import time
from pathlib import Path

from headway.events import Artifact, Note
from headway.exporter.launcher.error_files import Cycle, cycle_of, error_of
from headway.exporter.launcher.ranks import RankProcess, Ranks, earlier_error_files
from headway.exporter.launcher.telling import Telling, monotonic_of


class LeftFiles:
    """Reads each file once, and a cycle's again until it has ended."""

    def __init__(self, ranks: Ranks, tell: Telling) -> None:
        self._ranks = ranks
        self._tell = tell
        self._read: set[Path] = set()
        self._cycles: dict[Path, Cycle] = {}

    def before(self, new: RankProcess) -> None:
        """Read what the ranks of the attempt before a new process left."""
        if new.error_file is not None:
            for local_rank, path in earlier_error_files(new.error_file):
                self._read_error(path, self._last(local_rank))

    def of(self, process: RankProcess) -> None:
        """Read what an ended process left."""
        if process.error_file is not None:
            self._read_error(process.error_file, process)

    def cycles(self) -> None:
        """Record the cycles that NVRx's launcher describes in files."""
        newest = self._ranks.newest()
        if newest is None or newest.cycle_info is None:
            return
        for path in sorted(newest.cycle_info.parent.glob("cycle_info.*.*.*")):
            before = self._cycles.get(path)
            if before is not None and before.ended is not None:
                continue  # it changes no more, and there may be hundreds on a shared disk
            try:
                cycle = cycle_of(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # gone meanwhile, or no text
            if cycle is not None and cycle != before:
                self._cycles[path] = cycle
                self._cycle(path, cycle, before)

    def _last(self, local_rank: int) -> RankProcess | None:
        """Return the last process of a rank of this node that is over."""
        found = [
            item
            for item in self._ranks.known.values()
            if item.local_rank == local_rank and item.ended is not None
        ]
        return found[-1] if found else None

    def _read_error(self, path: Path, process: RankProcess | None) -> None:
        """Record the exception that a rank left behind, where its own recorder did not."""
        if path in self._read:
            return
        self._read.add(path)
        if process is not None and process.closed:
            return
        try:
            text, written = path.read_text(encoding="utf-8", errors="replace"), path.stat()
        except OSError:
            return  # it raised nothing, or does not tell
        event = error_of(text)
        if event is not None:
            at = monotonic_of(written.st_mtime_ns, time.monotonic_ns(), credible=None)
            if process is None:
                self._tell.event(event, at)
            else:
                self._tell.of(process, event, at)

    def _cycle(self, path: Path, cycle: Cycle, before: Cycle | None) -> None:
        now = time.monotonic_ns()
        if before is None:
            standby = f"; standby: {cycle.standby_nodes}" if cycle.standby_nodes else ""
            text = f"NVRx cycle {cycle.number} began on {cycle.active_nodes}{standby}"
            self._tell.event(
                Note(text=text, author=path.name), monotonic_of(cycle.began, now, None)
            )
            if cycle.log_file is not None:
                self._tell.event(Artifact(kind="cycle_log", path=cycle.log_file), now)
        if cycle.ended is not None and (before is None or before.ended is None):
            text = f"NVRx cycle {cycle.number} ended"
            self._tell.event(
                Note(text=text, author=path.name), monotonic_of(cycle.ended, now, None)
            )
