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
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from headway.events import (
    Artifact,
    Event,
    Fault,
    Note,
    RankExited,
    RestartBudget,
    RestartPhase,
    StopAnnounced,
)
from headway.exporter.identity import boot_id
from headway.exporter.launcher import lines
from headway.exporter.launcher.channel import Channel, Measured, WorkerEnded, WorkerStarted
from headway.exporter.launcher.error_files import Cycle, cycle_of, error_of
from headway.exporter.launcher.exits import Ending, ended_by
from headway.exporter.launcher.oom_log import OomLog
from headway.exporter.launcher.ranks import RankProcess, Ranks, earlier_error_files
from headway.exporter.oom import OomEvidence
from headway.exporter.witness import Witness

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
_WATCHDOG = 60 * _SECOND
"""How long before an end a watchdog may have fired that caused it."""
_GRACE = 900 * _SECOND
"""Longest time that a command takes to end after it was told to."""
_MOST = 10_000
"""Lines and events that are kept until they can be dealt with."""
_STOPS = {
    signal.SIGINT: "operator",
    signal.SIGTERM: "sigterm",
    signal.SIGHUP: "sigterm",
    signal.SIGQUIT: "operator",
}
_LAYERS = {"injob": ("launcher", "stop_workers"), "inprocess": ("in_process", "abort")}


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
        self.ranks = Ranks(folder, mark, boot_id(), time.monotonic_ns())
        self.oom = OomEvidence()
        self._witness = Witness(folder, os.getpid(), boot_id())
        self._scheduled = bool(
            environment.get("SLURM_JOB_ID") or environment.get("KUBERNETES_SERVICE_HOST")
        )
        self._channel = channel
        self._kernel_log = kernel_log
        self._heard: deque[tuple[int, lines.Said]] = deque(maxlen=_MOST)
        self._signals: deque[tuple[int, int, bool]] = deque(maxlen=_MOST)
        self._waiting: deque[tuple[int, Event, int | None]] = deque(maxlen=_MOST)
        """Events from before the first rank recorded: nobody knows yet of which run."""
        self._untold: list[RankProcess] = []
        self._codes: dict[int, tuple[int, int, int | None]] = {}
        """Ends, by process id, of ranks that recorded nothing: when, code, rank."""
        self._rank_of: dict[int, int] = {}
        self._done: set[int] = set()
        """Processes whose ends are told."""
        self._closing: dict[int, int] = {}
        self._watchdogs: dict[int | None, int] = {}
        self._stop: tuple[int, str] | None = None
        self._table_rank: lines.TableRank | None = None
        self._remaining: int | None = None
        self._limit = 0
        self._nested: dict[str, int] = {}
        self._read: set[Path] = set()
        self._cycles: dict[Path, Cycle] = {}
        self._own: tuple[int, int] | None = None
        self._looks = 0
        self._profiled = False
        """Whether the launcher prints a profile of its restarts, as NVRx does from 0.5 on."""
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=run, name="headway observer", daemon=True)
            for run in (self._wait_for_ends, self._run)
        ]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def hear(self, line: str) -> None:
        """Take a line that the command wrote; may be called by any thread."""
        said = lines.parse(line)
        if said is not None:
            self._heard.append((time.monotonic_ns(), said))

    def signalled(self, number: int, by_terminal: bool) -> None:
        """Take a signal that this process got; may be called by any thread."""
        self._signals.append((time.monotonic_ns(), number, by_terminal))

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

    def _wait_for_ends(self) -> None:
        while not self._over.is_set():
            self.ranks.wait(_ENDS)

    def _run(self) -> None:
        failed = False
        while True:
            over = self._over.is_set()  # asked first: what was heard before is all there
            if over:
                self._threads[0].join()
                self.ranks.wait(0)
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
        self.ranks.close()
        self._kernel_log.close()
        self._witness.close()

    def look(self, final: bool = False) -> None:
        """Take one look; a final one waits for nothing more."""
        for process in self.ranks.look():
            self._arrived(process)
        self._looks += 1
        if final or self._looks % _WATCH == 0:
            self.ranks.watch()
            self._read_cycles()
        own = None if self._own is None else self.ranks.by_process(self._own[0])
        if own is not None and self._own is not None:
            own.code = self._own[1]
        if final or self._looks % _OOM == 0:
            self._look_for_kills()
        self._hear_all()
        self._untold += [
            process
            for process in self.ranks.known.values()
            if process.ended is not None and process not in self._untold and not process.told
        ]
        self._tell_ends(final)

    def _look_for_kills(self) -> None:
        now = time.monotonic_ns()
        self.oom.look(now)
        for kill in self._kernel_log.read():
            self.oom.logged(kill, now)

    # What arrives

    def _arrived(self, process: RankProcess) -> None:
        self.oom.watch(process.process_id, process.counter)
        self._closing.pop(process.process_id, None)  # of an earlier process with this id
        self._done.discard(process.process_id)
        self._rank_of[process.process_id] = process.rank
        if process.error_file is not None:
            for local_rank, path in earlier_error_files(process.error_file):
                self._read_error(path, self._before(local_rank))
        while self._waiting:
            at, event, rank = self._waiting.popleft()
            self._tell(event, at, rank)

    def _before(self, local_rank: int) -> RankProcess | None:
        """Return the last process of a rank of this node that is over."""
        found = [
            item
            for item in self.ranks.known.values()
            if item.local_rank == local_rank and item.ended is not None
        ]
        return found[-1] if found else None

    def _hear_all(self) -> None:
        if self._channel is not None:
            for message in self._channel.read():
                self._measured(message)
        while self._signals:
            self._signal(*self._signals.popleft())
        while self._heard:
            at, said = self._heard.popleft()
            self._said(said, at)

    def _signal(self, at: int, number: int, by_terminal: bool) -> None:
        reason = _STOPS.get(signal.Signals(number)) if number in _STOPS else None
        if reason is None:
            return
        person = by_terminal or number in (signal.SIGINT, signal.SIGQUIT) or not self._scheduled
        self._stopped(at, reason, "person" if person else "scheduler")

    def _stopped(self, at: int, reason: str, by: str) -> None:
        """Record that the command was told to end, unless that is known."""
        if self._stop is None or at - self._stop[0] > _WATCHDOG:
            self._tell(StopAnnounced(reason=reason), at)
            self._stop = (at, by)

    def _measured(self, message: Measured | WorkerStarted | WorkerEnded) -> None:
        if isinstance(message, WorkerStarted):
            self._rank_of[message.process_id] = message.rank
        elif isinstance(message, WorkerEnded):
            self._ended(message.process_id, message.code, message.at, message.rank)
        elif message.remaining is not None:
            self._budget(message.remaining, None, message.at)
        elif message.phase is not None and message.duration is not None and not self._profiled:
            self._phase("launcher", message.phase, "began", message.at - message.duration)
            self._phase("launcher", message.phase, "ended", message.at)

    def _said(self, said: lines.Said, at: int) -> None:
        if isinstance(said, lines.RankFailed):
            rank = self._rank_of.get(said.process_id)
            if rank is None:
                process = self.ranks.by_local_rank(said.local_rank)
                rank = None if process is None else process.rank
            self._ended(said.process_id, said.exit_code, at, rank)
        elif isinstance(said, lines.TableRank):
            self._table_rank = said
        elif isinstance(said, lines.TableExit):
            rank = None if self._table_rank is None else self._table_rank.rank
            self._ended(said.process_id, said.exit_code, at, rank)
        elif isinstance(said, lines.TasksEnded):
            for task in said.tasks:
                self._task_ended(task, said.exit_code, at)
        elif isinstance(said, lines.Closing):
            self._closing.setdefault(said.process_id, at)
        elif isinstance(said, lines.Stopping):
            reason = "operator" if said.signal == "SIGINT" else "sigterm"
            self._stopped(at, reason, "scheduler" if self._scheduled else "person")
        elif isinstance(said, lines.Restarting | lines.Exhausted):
            remaining = said.remaining if isinstance(said, lines.Restarting) else 0
            if remaining is not None:
                self._budget(remaining, said.limit, at)
        elif isinstance(said, lines.FailureDetected):
            self._profiled = True
            self._phase("launcher", "stop_workers", "began", _monotonic(said.wall, at))
        elif isinstance(said, lines.PhaseSaid):
            # What is measured inside the launcher is more exact than its plain lines, and what
            # it profiles itself is more exact than that.
            self._profiled |= said.cycle is not None
            if said.cycle is not None or not (self._profiled or self._is_inside()):
                self._phase("launcher", said.phase, said.state, _monotonic(said.wall, at))
        elif isinstance(said, lines.Nested):
            self._nested_said(said, at)
        elif isinstance(said, lines.TimedOut):
            self._timed_out(said, at)
        elif isinstance(said, lines.Cancelled):
            if said.reason == "node_failure":
                self._tell(Fault(kind="lost_node", message="Slurm: node failure"), at)
            else:
                self._stopped(at, said.reason, "scheduler")
        else:
            message = f"Slurm counted {said.kills} kills for lack of memory in the job step"
            self._tell(Fault(kind="host_oom", message=message), at)

    def _nested_said(self, said: lines.Nested, at: int) -> None:
        known = _LAYERS.get(said.layer.lower())
        if known is None or (known[0] == "launcher" and self._is_inside()):
            return
        if said.stage == "starting":
            # A job that ends well says so, too, and then `aborted`.
            self._nested[said.layer] = at
        elif said.stage in ("processing", "completed"):
            began = self._nested.pop(said.layer, None)
            if began is not None:
                self._phase(*known, "began", began)
                self._phase(*known, "ended", at)
        else:
            self._nested.pop(said.layer, None)

    def _timed_out(self, said: lines.TimedOut, at: int) -> None:
        rank = said.rank
        if rank is None and said.local_rank is not None:
            process = self.ranks.by_local_rank(said.local_rank)
            rank = None if process is None else process.rank
        told = self._watchdogs.get(rank)
        self._watchdogs[rank] = at
        if told is not None and at - told < _SECOND:
            return
        event = Fault(
            kind=said.kind,
            message=said.message,
            ran_for=said.waited,
            timeout=said.timeout,
            phase=said.section,
        )
        self._tell(event, at, rank)

    def _budget(self, remaining: int, limit: int | None, at: int) -> None:
        if remaining != self._remaining:
            self._remaining = remaining
            # Nobody restarts more often than was left at first.
            self._limit = limit or max(self._limit, remaining)
            event = RestartBudget(layer="launcher", remaining=remaining, limit=self._limit)
            self._tell(event, at)

    def _phase(self, layer: str, phase: str, state: str, at: int) -> None:
        """Record a phase of a restart; the first start, before any rank recorded, is none."""
        if self.ranks.newest() is not None:
            self._tell(RestartPhase(layer=layer, phase=phase, state=state), at)

    def _is_inside(self) -> bool:
        return self._channel is not None and self._channel.is_alive

    # Files

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
            at = _monotonic(written.st_mtime_ns, time.monotonic_ns(), credible=None)
            if process is None:
                self._tell(event, at)
            else:
                self._tell_of(process, event, at)

    def _read_cycles(self) -> None:
        """Record the cycles that NVRx's launcher describes in files."""
        newest = self.ranks.newest()
        if newest is None or newest.cycle_info is None:
            return
        try:
            paths = sorted(newest.cycle_info.parent.glob("cycle_info.*.*.*"))
            told = {path: cycle_of(path.read_text(encoding="utf-8")) for path in paths}
        except (OSError, ValueError):
            return
        for path, cycle in told.items():
            before = self._cycles.get(path)
            if cycle is None or cycle == before:
                continue
            self._cycles[path] = cycle
            self._cycle(path, cycle, before)

    def _cycle(self, path: Path, cycle: Cycle, before: Cycle | None) -> None:
        now = time.monotonic_ns()
        if before is None:
            standby = f"; standby: {cycle.standby_nodes}" if cycle.standby_nodes else ""
            text = f"NVRx cycle {cycle.number} began on {cycle.active_nodes}{standby}"
            self._tell(Note(text=text, author=path.name), _monotonic(cycle.began, now, None))
            if cycle.log_file is not None:
                self._tell(Artifact(kind="cycle_log", path=cycle.log_file), now)
        if cycle.ended is not None and (before is None or before.ended is None):
            text = f"NVRx cycle {cycle.number} ended"
            self._tell(Note(text=text, author=path.name), _monotonic(cycle.ended, now, None))

    # Ends

    def _ended(self, process_id: int, code: int, at: int, rank: int | None) -> None:
        """Take how a process ended from somebody who saw it."""
        process = self.ranks.by_process(process_id)
        if process is None and process_id not in self._done:
            when, _, known = self._codes.get(process_id, (at, code, None))
            self._codes[process_id] = (when, code, known if rank is None else rank)
        elif process is not None and process.code is None:
            process.code = code

    def _task_ended(self, task: int, code: int, at: int) -> None:
        process = self.ranks.by_rank(task)
        if process is not None:
            self._ended(process.process_id, code, at, task)

    def _tell_ends(self, final: bool) -> None:
        now = time.monotonic_ns()
        for process in list(self._untold):
            if process.ended is None:
                continue
            waited = now - process.ended
            patience = _EVIDENCE_LATER[process.code == -signal.SIGKILL]
            patience = _TOLD_LATER if process.code is None and not process.closed else patience
            if final or waited > patience:
                self.ranks.refresh(process)
                self._untold.remove(process)
                self._tell_end(process, process.ended)
                self.ranks.told(process)
                self._done.add(process.process_id)
        if final:
            for process_id, (at, code, rank) in self._codes.items():
                self._tell(_exit(process_id, code, self._by(process_id, rank, code, at)), at, rank)
            self._codes.clear()

    def _tell_end(self, process: RankProcess, ended: int) -> None:
        if process.error_file is not None:
            self._read_error(process.error_file, process)
        code = process.code
        if code is None and process.closed:
            return  # it has told its end itself, and nobody knows more
        by = self._by(process.process_id, process.rank, code, ended, process.counter)
        if by == "kernel":
            message = "the kernel killed it for lack of memory"
            event = Fault(kind="host_oom", message=message, signal=signal.SIGKILL)
            self._tell_of(process, event, ended)
        self._tell_of(process, _exit(process.process_id, code, by), ended)

    def _by(
        self,
        process_id: int,
        rank: int | None,
        code: int | None,
        ended: int,
        counter: Path | None = None,
    ) -> str:
        fired, stop = self._watchdogs.get(rank), self._stop
        return ended_by(
            Ending(
                code=code,
                closed_by_launcher=process_id in self._closing,
                watchdog_fired=fired is not None and ended - fired < _WATCHDOG,
                out_of_memory=code == -signal.SIGKILL
                and self.oom.explains(process_id, counter, ended),
                stopped_by=stop[1] if stop is not None and ended - stop[0] < _GRACE else None,
            )
        )

    # Telling

    def _tell(self, event: Event, at: int, rank: int | None = None) -> None:
        """Record an event of the launcher, about a rank where one is named."""
        process = None if rank is None else self.ranks.by_rank(rank)
        process = process or self.ranks.newest()
        if process is None:
            self._waiting.append((at, event, rank))
        else:
            self._witness.tell(event, process.producer, rank, process.attempt, at)

    def _tell_of(self, process: RankProcess, event: Event, at: int) -> None:
        self._witness.tell(event, process.producer, process.rank, process.attempt, at)


def _exit(process_id: int, code: int | None, by: str) -> RankExited:
    by_signal = code is not None and code < 0
    return RankExited(
        exit_code=None if by_signal else code,
        signal=-code if code is not None and by_signal else None,
        by=by,
        process_id=process_id,
    )


def _monotonic(wall: int | None, at: int, credible: int | None = _WATCHDOG) -> int:
    """Return a time of the wall clock on the monotonic one; `at` where that cannot be right.

    `credible` is how far from `at` it may lie, in ns; `None` allows any time before.
    """
    if wall is None:
        return at
    found = wall - (time.time_ns() - time.monotonic_ns())
    if found < 0 or found > at + _SECOND or (credible is not None and at - found > credible):
        return at
    return found
