"""Joins what the launcher prints with the ranks it started into events of their run.

A thread of its own looks several times a second, so that an end is seen before the launcher has
asked about it. Its events wait in spools like the ranks' and are shipped by whichever agent serves
the folder. Nothing in here can stop the command: what fails is logged, and the next look is taken.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from headway.events import RankExited
from headway.exporter import oom
from headway.exporter.identity import boot_id
from headway.exporter.launcher.channel import Channel
from headway.exporter.launcher.exits import Ending, ended_by
from headway.exporter.launcher.launcher_news import LauncherNews
from headway.exporter.launcher.left_files import LeftFiles
from headway.exporter.launcher.oom_log import OomLog
from headway.exporter.launcher.ranks import RankProcess, Ranks
from headway.exporter.launcher.telling import Telling
from headway.exporter.node.witness import Witness
from headway.exporter.oom import OomEvidence

_log = logging.getLogger(__name__)

_LOOK = 0.05
"""Seconds between two looks for new ranks, so that each is known before it ends."""
_ENDS = 0.2
"""Seconds for which one wait for ends lasts; a rank that is new joins it at once."""
_OOM = 4
"""Looks between two looks for kills for lack of memory."""
_WATCH = 20
"""Looks between two looks at what the ranks are doing and at the launcher's files."""
_SECOND = 1_000_000_000
_TOLD_LATER = 10 * _SECOND
"""How long, in ns, to wait for the launcher to say how a rank ended that nobody saw end."""
_EVIDENCE_LATER = {True: 3 * _SECOND // 2, False: 3 * _SECOND // 10}
"""How long to wait for evidence about a SIGKILL, and about any other end."""


class Observer:
    """Watches one command; `environment` is this process's, in which schedulers leave traces."""

    def __init__(
        self,
        folder: Path,
        mark: str,
        environment: Mapping[str, str],
        channel: Channel | None,
        kernel_log: OomLog,
    ) -> None:
        self._ranks = Ranks(folder, mark, boot_id(), time.monotonic_ns())
        self._tell = Telling(Witness(folder, os.getpid(), boot_id()), self._ranks)
        scheduled = "SLURM_JOB_ID" in environment or "KUBERNETES_SERVICE_HOST" in environment
        self._news = LauncherNews(self._ranks, self._tell, channel, scheduled=scheduled)
        self._files = LeftFiles(self._ranks, self._tell)
        self._oom = OomEvidence()
        self._kernel_log = kernel_log
        self._untold: list[RankProcess] = []
        self.hear = self._news.hear
        self.signalled = self._news.signalled
        self._own: tuple[int, int] | None = None
        self._looks = 0
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=run, name="headway observer", daemon=True)
            for run in (self._wait_for_ends, self._run)
        ]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def finish(self, process_id: int, code: int, seconds: float) -> None:
        """Tell all that is known now that the command is over, within so many seconds.

        The command may be a rank itself, and how it ended is known for certain.
        """
        deadline = time.monotonic() + seconds
        self._own = (process_id, code)
        self._over.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(deadline - time.monotonic(), 0.0))

    def close(self) -> None:
        """Let go of everything; for the thread itself, or where it was never started."""
        self._ranks.close()
        self._kernel_log.close()
        self._tell.close()

    def _wait_for_ends(self) -> None:
        while not self._over.is_set():
            self._ranks.wait(_ENDS)

    def _run(self) -> None:
        failed = False
        while True:
            over = self._over.is_set()  # asked first: what was heard before is all there
            if over:
                self._threads[0].join()
                self._ranks.wait(0)
            try:
                self.look(final=over)
                failed = False
            except Exception:
                if not failed:
                    _log.exception("the launcher could not be observed; the command goes on")
                failed = True
            if over:
                break
            self._over.wait(_LOOK)
        self.close()

    def look(self, final: bool = False) -> None:
        """Take one look; a final one waits for nothing more."""
        for process in self._ranks.look():
            self._arrived(process)
        self._looks += 1
        if final or self._looks % _WATCH == 0:
            self._ranks.watch()
            self._files.cycles()
        own = None if self._own is None else self._ranks.by_process(self._own[0])
        if own is not None and self._own is not None:
            own.code = self._own[1]
        if final or self._looks % _OOM == 0:
            self._look_for_kills()
        self._news.take()
        self._untold += [
            process
            for process in self._ranks.known.values()
            if process.ended is not None and process not in self._untold and not process.told
        ]
        self._tell_ends(final)

    def _look_for_kills(self) -> None:
        now = time.monotonic_ns()
        self._oom.look(now)
        for kill in self._kernel_log.read():
            self._oom.logged(kill, now)

    def _arrived(self, process: RankProcess) -> None:
        self._oom.watch(process.process_id, process.counter)
        self._news.arrived(process.process_id, process.rank)
        self._files.before(process)
        self._tell.waiting()

    def _tell_ends(self, final: bool) -> None:
        now = time.monotonic_ns()
        for process in self._untold:
            if process.ended is not None and self._may_be_killed(process):
                self._oom.died(process.process_id, process.counter, process.ended)
        for process in list(self._untold):
            if process.ended is None:
                continue
            waited = now - process.ended
            patience = _EVIDENCE_LATER[process.code == -signal.SIGKILL]
            patience = _TOLD_LATER if process.code is None and not process.closed else patience
            if final or waited > patience:
                self._ranks.refresh(process)
                self._untold.remove(process)
                self._tell_end(process, process.ended)
                self._ranks.told(process)
                self._news.told(process.process_id)
        if final:
            for process_id, (at, code, rank) in self._news.unknown.items():
                event = _exit(process_id, code, self._by(process_id, code, at))
                self._tell.event(event, at, rank)
            self._news.unknown.clear()

    def _may_be_killed(self, process: RankProcess) -> bool:
        """Return whether a process died by SIGKILL for a reason that nobody told."""
        if process.code is None:
            return not process.closed
        return process.code == -signal.SIGKILL and not self._news.closed(process.process_id)

    def _tell_end(self, process: RankProcess, ended: int) -> None:
        self._files.of(process)
        code = process.code
        if code is None and process.closed:
            return  # it has told its end itself, and nobody knows more
        by = self._by(process.process_id, code, ended, process.counter)
        if by == "kernel":
            self._tell.of(process, oom.FAULT, ended)
        self._tell.of(process, _exit(process.process_id, code, by), ended)

    def _by(
        self,
        process_id: int,
        code: int | None,
        ended: int,
        counter: Path | None = None,
    ) -> str:
        return ended_by(
            Ending(
                code=code,
                closed_by_launcher=self._news.closed(process_id),
                watchdog_fired=self._news.watchdog_fired(process_id, ended),
                out_of_memory=code == -signal.SIGKILL
                and self._oom.explains(process_id, counter, ended),
                stopped_by=self._news.stopped_by(ended),
            )
        )


def _exit(process_id: int, code: int | None, by: str) -> RankExited:
    by_signal = code is not None and code < 0
    return RankExited(
        exit_code=None if by_signal else code,
        signal=-code if code is not None and by_signal else None,
        by=by,
        process_id=process_id,
    )
