"""What the launcher says, measures and is told, as events of its run."""

import signal
import time
from collections import deque

from headway.events import Fault, RestartBudget, RestartPhase, StopAnnounced
from headway.exporter.launcher.channel import Channel, Measured, WorkerEnded, WorkerStarted
from headway.exporter.launcher.ranks import Ranks
from headway.exporter.launcher.telling import CREDIBLE, Telling, monotonic_of
from headway.launcher_log import lines, statements

_SECOND = 1_000_000_000
_GRACE = 900 * _SECOND
"""Longest time in ns that a command takes to end after it was told to."""
_MOST = 10_000
"""Lines that are kept until they can be dealt with."""
_STOPS = {
    signal.SIGINT: "operator",
    signal.SIGTERM: "sigterm",
    signal.SIGHUP: "sigterm",
    signal.SIGQUIT: "operator",
}
_LAYERS = {"injob": ("launcher", "stop_workers"), "inprocess": ("in_process", "abort")}


class LauncherNews:
    """What is known from the launcher; `scheduled` says that a scheduler started this process."""

    def __init__(
        self, ranks: Ranks, tell: Telling, channel: Channel | None, *, scheduled: bool
    ) -> None:
        self._ranks = ranks
        self._tell = tell
        self._channel = channel
        self._scheduled = scheduled
        self._heard: deque[tuple[int, statements.Said]] = deque(maxlen=_MOST)
        self._signals: deque[tuple[int, int, bool]] = deque(maxlen=_MOST)
        self.unknown: dict[int, tuple[int, int, int | None]] = {}
        """Ends, by process id, of ranks that recorded nothing: when, code, rank."""
        self._rank_of: dict[int, int] = {}
        self._closing: set[int] = set()
        self._fired: dict[int, int] = {}
        """When a watchdog fired, by process id."""
        self._stop: tuple[int, str] | None = None
        self._table_rank: statements.TableRank | None = None
        self._remaining: int | None = None
        self._limit = 0
        self._nested: dict[str, int] = {}
        self._profiled = False
        """Whether the launcher prints a profile of its restarts, as NVRx does from 0.5 on."""
        self._done: set[int] = set()
        """Processes whose ends are told."""

    def hear(self, line: str) -> None:
        """Take a line that the command wrote; may be called by any thread."""
        said = lines.parse(line)
        if said is not None:
            self._heard.append((time.monotonic_ns(), said))

    def signalled(self, number: int, by_terminal: bool) -> None:
        """Take a signal that this process got; may be called by any thread."""
        self._signals.append((time.monotonic_ns(), number, by_terminal))

    def arrived(self, process_id: int, rank: int) -> None:
        """Take a new rank; what is known of an earlier process with its id is not of this one."""
        self._closing.discard(process_id)
        self._done.discard(process_id)
        self._fired.pop(process_id, None)
        self._rank_of[process_id] = rank

    def told(self, process_id: int) -> None:
        """Take note that the end of a process is told."""
        self._done.add(process_id)

    def closed(self, process_id: int) -> bool:
        """Return whether the launcher said that it sends a signal to this process."""
        return process_id in self._closing

    def watchdog_fired(self, process_id: int, ended: int) -> bool:
        """Return whether the launcher's watchdog fired for a process just before it ended."""
        fired = self._fired.get(process_id)
        return fired is not None and ended - fired < CREDIBLE

    def stopped_by(self, ended: int) -> str | None:
        """Return who told the command to end before a rank did."""
        stop = self._stop
        return stop[1] if stop is not None and ended - stop[0] < _GRACE else None

    def take(self) -> None:
        """Deal with all that came since the last time."""
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
        if self._stop is None or at - self._stop[0] > CREDIBLE:
            self._tell.event(StopAnnounced(reason=reason), at)
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

    def _said(self, said: statements.Said, at: int) -> None:
        if isinstance(said, statements.RankFailed):
            rank = self._rank_of.get(said.process_id)
            if rank is None:
                process = self._ranks.by_local_rank(said.local_rank)
                rank = None if process is None else process.rank
            self._ended(said.process_id, said.exit_code, at, rank)
        elif isinstance(said, statements.TableRank):
            self._table_rank = said
        elif isinstance(said, statements.TableExit):
            rank = None if self._table_rank is None else self._table_rank.rank
            self._ended(said.process_id, said.exit_code, at, rank)
        elif isinstance(said, statements.TasksEnded):
            for task in said.tasks:
                self._task_ended(task, said.exit_code, at)
        elif isinstance(said, statements.Closing):
            self._closing.add(said.process_id)
        elif isinstance(said, statements.Stopping):
            reason = "operator" if said.signal == "SIGINT" else "sigterm"
            self._stopped(at, reason, "scheduler" if self._scheduled else "person")
        elif isinstance(said, statements.Restarting | statements.Exhausted):
            remaining = said.remaining if isinstance(said, statements.Restarting) else 0
            if remaining is not None:
                self._budget(remaining, said.limit, at)
        elif isinstance(said, statements.FailureDetected):
            self._profiled = True
            self._phase("launcher", "stop_workers", "began", monotonic_of(said.wall, at))
        elif isinstance(said, statements.PhaseSaid):
            # What is measured inside the launcher is more exact than its plain lines, and what
            # it profiles itself is more exact than that.
            self._profiled |= said.cycle is not None
            if said.cycle is not None or not (self._profiled or self._is_inside()):
                self._phase("launcher", said.phase, said.state, monotonic_of(said.wall, at))
        elif isinstance(said, statements.Nested):
            self._nested_said(said, at)
        elif isinstance(said, statements.TimedOut):
            self._timed_out(said, at)
        elif isinstance(said, statements.Cancelled):
            if said.reason == "node_failure":
                self._tell.event(Fault(kind="lost_node", message="Slurm: node failure"), at)
            else:
                self._stopped(at, said.reason, "scheduler")
        else:
            message = f"Slurm counted {said.kills} kills for lack of memory in the job step"
            self._tell.event(Fault(kind="host_oom", message=message), at)

    def _nested_said(self, said: statements.Nested, at: int) -> None:
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

    def _timed_out(self, said: statements.TimedOut, at: int) -> None:
        process = None
        if said.rank is not None:
            process = self._ranks.by_rank(said.rank)
        elif said.local_rank is not None:
            process = self._ranks.by_local_rank(said.local_rank)
        event = Fault(
            kind=said.kind,
            message=said.message,
            ran_for=said.waited,
            timeout=said.timeout,
            phase=said.section,
        )
        if process is None:
            self._tell.event(event, at, said.rank)
        elif process.process_id not in self._fired:
            self._fired[process.process_id] = at
            self._tell.of(process, event, at)

    def _budget(self, remaining: int, limit: int | None, at: int) -> None:
        if remaining != self._remaining:
            self._remaining = remaining
            # Nobody restarts more often than was left at first.
            self._limit = limit or max(self._limit, remaining)
            event = RestartBudget(layer="launcher", remaining=remaining, limit=self._limit)
            self._tell.event(event, at)

    def _phase(self, layer: str, phase: str, state: str, at: int) -> None:
        """Record a phase of a restart; the first start, before any rank recorded, is none."""
        if self._ranks.newest() is not None:
            self._tell.event(RestartPhase(layer=layer, phase=phase, state=state), at)

    def _is_inside(self) -> bool:
        return self._channel is not None and self._channel.is_alive

    def _ended(self, process_id: int, code: int, at: int, rank: int | None) -> None:
        """Take how a process ended from somebody who saw it."""
        process = self._ranks.by_process(process_id)
        if process is None and process_id not in self._done:
            when, _, known = self.unknown.get(process_id, (at, code, None))
            self.unknown[process_id] = (when, code, known if rank is None else rank)
        elif process is not None and process.code is None:
            process.code = code

    def _task_ended(self, task: int, code: int, at: int) -> None:
        process = self._ranks.by_rank(task)
        if process is not None:
            self._ended(process.process_id, code, at, task)
