"""What launchers and Slurm say in a log, as events of the run."""

from headway.events import (
    Fault,
    RankExited,
    RestartBudget,
    RestartPhase,
    StopAnnounced,
)
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.sayings import Broke
from headway.importing.stamps import Moment
from headway.launcher_log import statements as s

_LAYERS = {"injob": ("launcher", "stop_workers"), "inprocess": ("in_process", "abort")}


class LauncherNews:
    """Takes the statements of `headway.launcher_log` in the order of the log."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._table_rank: s.TableRank | None = None
        self._closing: set[int] = set()
        self._gone: set[int] = set()
        self._cycles: set[int] = set()

    def take(self, lane: Lane, said: s.Said, moment: Moment | None) -> None:
        """Take one statement."""
        course = self._course
        now = course.date(lane, moment)
        if isinstance(said, s.RankFailed):
            self._exited(said.process_id, said.exit_code, said.local_rank, now)
        elif isinstance(said, s.TableRank):
            self._table_rank = said
        elif isinstance(said, s.TableExit):
            rank = None if self._table_rank is None else self._table_rank.rank
            self._exited(said.process_id, said.exit_code, rank, now)
        elif isinstance(said, s.TasksEnded):
            if said.out_of_memory:
                message = f"Slurm: out of memory on {said.node}"
                told = Broke(kind="host_oom", message=message, rank=said.tasks[0], node=said.node)
                self._fault(told, now)
            for task in said.tasks[:1000]:
                self._exited(-1 - task, said.exit_code, task, now, node=said.node)
        elif isinstance(said, s.Closing):
            self._closing.add(said.process_id)
            self._phase("stop_workers", "began", now)
        elif isinstance(said, s.Stopping):
            self._stop("operator" if said.signal == "SIGINT" else "sigterm", now, moment)
        elif isinstance(said, s.Restarting):
            if said.remaining is not None:
                self._budget(said.remaining, said.limit, now)
            self._restart(now)
        elif isinstance(said, s.Exhausted):
            self._budget(0, said.limit, now)
        elif isinstance(said, s.FailureDetected):
            at = now if said.wall is None else said.wall
            if said.cycle not in self._cycles:
                self._cycles.add(said.cycle)
                self._restart(at)
        elif isinstance(said, s.PhaseSaid):
            self._phase(said.phase, said.state, now if said.wall is None else said.wall)
            if said.phase == "spawn" and said.state == "began" and course.restarting:
                course.begin_attempt("launcher")
        elif isinstance(said, s.Nested):
            self._nested(said, now)
        elif isinstance(said, s.TimedOut):
            self._timed_out(said, now)
        elif isinstance(said, s.Cancelled):
            self._cancelled(said, now, moment)
        else:
            message = f"Slurm counted {said.kills} kills for lack of memory in the job step"
            self._fault(Broke(kind="host_oom", message=message), now)

    def _exited(
        self, process_id: int, code: int, rank: int | None, now: int, node: str | None = None
    ) -> None:
        course = self._course
        if process_id in self._gone:
            return
        self._gone.add(process_id)
        course.attempt.ended = course.attempt.progressed = True
        by = "launcher" if process_id in self._closing else "unknown"
        signal = -code if code < 0 else None
        event = RankExited(
            exit_code=None if code < 0 else code,
            signal=signal,
            by=by,
            process_id=process_id if process_id >= 0 else None,
        )
        course.tell(event, now, rank=rank, node=node)
        course.findings.exits.append(
            {"rank": rank, "exit_code": code, "signal": signal, "by": by, "at": course.said(now)}
        )

    def _stop(self, reason: str, now: int, moment: Moment | None) -> None:
        course = self._course
        if f"stop {reason}" in course.attempt.told:
            return
        course.attempt.told.add(f"stop {reason}")
        course.stopped = True
        course.tell(StopAnnounced(reason=reason), now)
        course.findings.stops.append(
            {"reason": reason, "at": course.said(now, moment), "handled": None}
        )

    def _budget(self, remaining: int, limit: int | None, now: int) -> None:
        course = self._course
        course.tell(RestartBudget(layer="launcher", remaining=remaining, limit=limit), now)
        course.findings.budget = {"remaining": remaining, "limit": limit}

    def _restart(self, now: int) -> None:
        """A launcher stops its ranks to start them again."""
        course = self._course
        self._phase("stop_workers", "began", now)
        course.attempt.ended = course.attempt.progressed = True
        course.restarting = True
        course.next_layer = "launcher"

    def _phase(self, phase: str, state: str, now: int) -> None:
        if self._course.attempts:
            self._course.tell(RestartPhase(layer="launcher", phase=phase, state=state), now)

    def _nested(self, said: s.Nested, now: int) -> None:
        known = _LAYERS.get(said.layer.lower())
        course = self._course
        if known is None or known[0] == "launcher":
            return
        if said.stage == "starting":
            course.tell(RestartPhase(layer=known[0], phase=known[1], state="began"), now)
            course.attempt.ended = True
        elif said.stage == "completed":
            course.tell(RestartPhase(layer=known[0], phase=known[1], state="ended"), now)
            if course.attempt.ended:
                course.begin_attempt("in_process")

    def _timed_out(self, said: s.TimedOut, now: int) -> None:
        self._fault(
            Broke(
                kind=said.kind,
                message=said.message,
                rank=said.rank,
                ran_for=said.waited,
                timeout=said.timeout,
            ),
            now,
            phase=said.section,
        )

    def _cancelled(self, said: s.Cancelled, now: int, moment: Moment | None) -> None:
        course = self._course
        course.attempt.cancelled = said.reason
        if said.reason == "node_failure":
            told = [one for one in course.findings.faults if one["kind"] == "lost_node"]
            if told:
                told[-1]["detected"] = told[-1]["detected"] or course.said(now, moment)
            else:
                self._fault(Broke(kind="lost_node", message="Slurm: node failure"), now)
        else:
            self._stop(said.reason, now, moment)

    def _fault(self, told: Broke, now: int, phase: str | None = None) -> None:
        course = self._course
        key = f"{told.kind} {told.rank}"
        if key in course.attempt.told:
            return
        course.attempt.told.add(key)
        course.attempt.ended = True
        course.tell(
            Fault(
                kind=told.kind,
                message=told.message,
                ran_for=told.ran_for,
                timeout=told.timeout,
                phase=phase,
            ),
            now,
            rank=told.rank,
        )
        course.findings.fault(told, course.said(now))
