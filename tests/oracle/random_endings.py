"""Made-up ends of attempts: clean, announced, silent or broken, and the teardown after them."""

from headway.events import (
    AttemptEnded,
    CheckpointFinalized,
    CheckpointScheduled,
    Heartbeat,
    RestartPhase,
    StopAnnounced,
)
from oracle.random_course import Course, Save, Trial
from oracle.scenario import SECOND

FAR = 400 * 24 * 3600 * SECOND
"""So far off that a stamp there is absurd."""


class Endings(Course):
    """Makes up how attempts end."""

    def finish(self, attempt: Trial, last: bool) -> None:
        begin = attempt.cursor
        kind = self.rng.random()
        if last and kind < 0.35:
            self.clean_end(attempt)
        elif kind < 0.5:
            self.announced_stop(attempt)
        elif kind < 0.6:
            attempt.cursor += self.delay()  # silence: nothing tells how it ended
            self.beats(attempt, begin)
        elif kind < 0.7 and not last:
            self.exits(attempt, itself=True)
        else:
            self.breakage(attempt)
        if last and not self.over and self.chance(0.4):
            self.run.end(attempt.cursor + self.time(0, 20), self.pick("failed", "stopped"))
        if self.chance(0.03, "absurd"):
            node = f"astray {attempt.name}"
            self.run.behind[node] = self.pick(-FAR, FAR) if self.announced else -FAR
            self.run.event(begin, Heartbeat(), attempt.name, 0, node, producer=node)
        self.now = max(self.now, attempt.cursor)

    def clean_end(self, attempt: Trial) -> None:
        attempt.cursor += self.pick(0, self.time(0, 3), self.time(0, 40))
        self.exits(attempt, itself=True)
        if self.chance(0.8):
            reason = self.pick("completed", "completed", "failed", "stopped")
            self.run.end(attempt.cursor + self.pick(0, self.time(0, 5)), reason)
            self.over = True

    def exits(self, attempt: Trial, itself: bool) -> None:
        """Every rank exits on its own or is ended, and most exits are recorded."""
        latest = attempt.cursor
        for rank in attempt.ranks:
            at = attempt.cursor + (self.time(0, 5) if self.chance(0.3) else 0)
            latest = max(latest, at)
            if self.chance(0.15, "unrecorded"):
                continue
            if self.next_layer == "in_process" and self.chance(0.9):
                self.run.event(at, AttemptEnded(), attempt.name, rank)  # the process lives on
                continue
            if itself and self.chance(0.5):
                ended = AttemptEnded(exit_code=self.pick(0, 1))
                self.run.event(at, ended, attempt.name, rank)
            if itself:
                self.run.exit(attempt.name, at, [rank], code=self.pick(0, 1), by="itself")
            else:
                by = self.pick("launcher", "scheduler", "person", "kernel", "unknown")
                self.run.exit(attempt.name, at, [rank], signal=self.pick(9, 15), by=by)
        attempt.cursor = latest

    def announced_stop(self, attempt: Trial) -> None:
        if not self.has("stops"):
            self.exits(attempt, itself=True)
            return
        begin = attempt.cursor
        notice = begin + self.pick(0, self.time(0, 30), -self.time(0, 10))
        reason = self.pick("sigterm", "preemption", "time_limit", "maintenance", "operator")
        for rank in attempt.ranks[: self.pick(1, 4)]:
            self.run.event(max(0, notice), StopAnnounced(reason=reason), attempt.name, rank)
        attempt.cursor = max(begin, notice)
        if self.chance(0.5, "saves", "phases"):
            end = attempt.cursor + self.time(0, 40)
            closed = self.chance(0.7) or not self.has("cut_phases")
            self.run.phase(attempt.name, "checkpoint_save", attempt.cursor, end if closed else None)
            if closed and self.chance(0.8):
                checkpoint = f"exit {attempt.name}"
                scheduled = CheckpointScheduled(checkpoint=checkpoint, step=attempt.last)
                self.run.event(end, scheduled, attempt.name, 0)
                finalized = CheckpointFinalized(checkpoint=checkpoint, step=attempt.last)
                self.run.event(end, finalized, attempt.name, 0)
                self.saves.append(Save(checkpoint, attempt.last, True, end))
            attempt.cursor = end
        attempt.cursor += self.delay()
        if self.chance(0.8):
            self.exits(attempt, itself=self.chance(0.5))

    def beats(self, attempt: Trial, begin: int) -> None:
        if not self.has("heartbeats"):
            return
        for _ in range(self.rng.randint(0, 4)):
            phases = self.pick((), ("step",), ("step", "data_wait"), ("evaluation",), ("model",))
            beat = Heartbeat(open_phases=phases, last_step=attempt.last or None)
            at = self.rng.randint(begin, max(begin, attempt.cursor)) // self.grid * self.grid
            self.run.event(max(begin, at), beat, attempt.name, self.pick(*attempt.ranks))

    def breakage(self, attempt: Trial) -> None:
        """Something breaks, it is noticed after a while, and somebody tears the group down."""
        begin = attempt.cursor
        if not self.has("faults"):
            self.exits(attempt, itself=True)
            return
        culprit = self.pick(*attempt.ranks)
        if self.has("cut_phases"):
            for rank in attempt.ranks:
                if self.chance(0.4):
                    name = self.pick("step", "step", "data_wait", "evaluation", "checkpoint_save")
                    self.run.phase(attempt.name, name, begin + self.time(0, 3), None, rank)
        attempt.cursor += self.pick(0, self.time(0, self.duration / SECOND))
        seen = attempt.cursor
        for _ in range(self.pick(0, 1, 1, 2, 3)):
            fault = self.fault(attempt.last + 1)
            if fault.ran_for is not None and self.chance(0.6):
                seen = begin + fault.ran_for
            accused = self.pick(culprit, *attempt.ranks, None)
            self.run.event(seen, fault, attempt.name, accused)
            seen += self.pick(0, self.time(0, 60))
        attempt.cursor = seen
        if self.chance(0.5):
            by = self.pick("kernel", "unknown", "itself")
            signal = self.pick(6, 9, 11) if by != "itself" else None
            at = self.pick(begin, attempt.cursor)
            self.run.exit(attempt.name, at, [culprit], code=1, signal=signal, by=by)
        attempt.cursor += self.delay()
        self.teardown(attempt)
        self.beats(attempt, begin)
        if self.chance(0.7):
            self.exits(attempt, itself=False)

    def teardown(self, attempt: Trial) -> None:
        for phase in ("abort", "stop_workers", "finalize"):
            if not self.chance(0.4):
                continue
            in_process = phase != "stop_workers"
            layer = "in_process" if in_process else "launcher"
            rank = self.pick(*attempt.ranks) if in_process else None
            name = attempt.name if in_process else self.pick(attempt.name, None)
            end = attempt.cursor + self.time(0, 10)
            began = RestartPhase(layer=layer, phase=phase, state="began")
            self.run.event(attempt.cursor, began, name, rank)
            if self.chance(0.8):
                ended = RestartPhase(layer=layer, phase=phase, state="ended")
                self.run.event(end, ended, name, rank)
            attempt.cursor = end
