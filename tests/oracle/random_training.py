"""Made-up attempts from the process's start to their last completed step."""

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Heartbeat,
    PhaseBegan,
    PhaseEnded,
    Resumed,
    StepsSummary,
)
from headway.step_blocks import Step
from oracle.random_course import Course, Save, Trial


class Training(Course):
    """Makes up starts, loads, steps, phases between them and saves."""

    def prepare(self, attempt: Trial) -> bool:
        """Go from the process's start to the first step; False where a load killed it."""
        begin = attempt.cursor
        nested = self.chance(0.3, "nested")
        for name in ("import", "rendezvous", "model"):
            if self.chance(0.4):
                end = attempt.cursor + self.time(0, 15)
                for rank in attempt.ranks:
                    if self.chance(0.8):
                        self.run.phase(attempt.name, name, attempt.cursor, end, rank)
                attempt.cursor = end
            elif self.chance(0.3, "gaps"):
                attempt.cursor += self.time(0, 10)
        loaded = self.load(attempt)
        if loaded is None:
            return False
        if self.chance(0.25, "phases"):
            name = self.pick("warmup", "evaluation", "checkpoint_save", "custom:probe", "data_wait")
            end = attempt.cursor + self.time(0, 20)
            self.run.phase(attempt.name, name, attempt.cursor, end, self.pick(*attempt.ranks))
            attempt.cursor = end
        if nested:
            for rank in attempt.ranks:
                self.run.phase(attempt.name, "startup", begin, attempt.cursor, rank)
        self.completed = attempt.last = loaded
        return True

    def load(self, attempt: Trial) -> int | None:
        """Load the newest checkpoint that can be read; None where the process dies of it."""
        name = attempt.name
        usable = [save for save in self.saves if save.finalized or self.chance(0.3)]
        self.rng.shuffle(usable) if self.chance(0.2) else usable.sort(key=lambda save: save.step)
        while usable and self.has("loads"):
            save = usable.pop()
            end = attempt.cursor + self.time(0, 30)
            if not save.readable or self.chance(0.15):
                save.readable = save.readable and self.chance(0.5)
                error = "corrupt" if self.chance(0.5) else None
                took = end - attempt.cursor
                for rank in attempt.ranks[: self.pick(1, 4)]:
                    self.run.event(attempt.cursor, PhaseBegan(phase="checkpoint_load"), name, rank)
                    ended = PhaseEnded(phase="checkpoint_load", duration=took, error=error)
                    self.run.event(end, ended, name, rank)
                failed = CheckpointLoadFailed(checkpoint=save.checkpoint, step=save.step)
                self.run.event(end, failed, name, 0)
                attempt.cursor = end + self.time(0, 2)
                if self.chance(0.2):
                    return None
                continue
            for rank in attempt.ranks:
                if rank == 0 or self.chance(0.8):
                    late = self.time(0, 2) if self.chance(0.2, "skew") else 0
                    self.run.phase(name, "checkpoint_load", attempt.cursor, end + late, rank)
                    attempt.behind[rank] = late
            attempt.cursor = end + max(attempt.behind.values(), default=0)
            attempt.behind.clear()
            if self.chance(0.7):
                loaded = CheckpointLoaded(checkpoint=save.checkpoint, step=save.step)
                self.run.event(attempt.cursor, loaded, name, 0)
            known = self.chance(0.8)
            self.resumed(attempt, save.step, save.checkpoint if known else None)
            return save.step
        completed = 0
        if self.highest and self.chance(0.6):
            completed = self.rng.randint(0, self.highest)
        self.resumed(attempt, completed, None)
        return completed

    def resumed(self, attempt: Trial, completed: int, checkpoint: str | None) -> None:
        if self.chance(0.25, "unrecorded"):
            return
        event = Resumed(completed=completed, checkpoint=checkpoint)
        for rank in attempt.ranks[: self.pick(1, 4)]:
            self.run.event(attempt.cursor, event, attempt.name, rank)

    def train(self, attempt: Trial) -> None:
        if self.chance(0.15, "gaps"):
            attempt.cursor += self.delay()
        shift = self.pick(-1, 1) if self.chance(0.05, "unrecorded") else 0
        step = max(1, attempt.last + 1 + shift)
        silent = self.pick(*attempt.ranks) if self.chance(0.1, "skew") else None
        total = self.pick(1, 2, 5, 12, 30)
        for number in range(self.rng.randint(1, total)):
            if number and silent is not None and number > total // 2 and silent != 0:
                attempt.detail[silent] = "none"
            self.one_step(attempt, step)
            attempt.last = self.completed = step
            self.highest = max(self.highest, step)
            self.after_step(attempt, step)
            step += 1
            if self.chance(0.02, "resegment") and self.saves:
                self.flush(attempt)
                save = self.pick(*self.saves)
                end = attempt.cursor + self.time(0, 10)
                self.run.phase(attempt.name, "checkpoint_load", attempt.cursor, end, 0)
                attempt.cursor = end
                self.run.event(
                    end,
                    Resumed(completed=save.step, checkpoint=save.checkpoint),
                    attempt.name,
                    0,
                )
                attempt.last = self.completed = save.step
                step = save.step + 1
        self.flush(attempt)

    def one_step(self, attempt: Trial, step: int) -> None:
        duration = self.duration + self.time(0, 0.5)
        if self.chance(0.03, "long_steps"):
            duration = self.time(50, 300)
        wait = self.time(0, 8) if self.chance(0.3, "waits") else 0
        ends = []
        for rank in attempt.ranks:
            lag = self.time(0, 2) if self.chance(0.2, "skew") else 0
            own_wait = wait + (self.time(0, 3) if self.chance(0.1, "waits", "ranks") else 0)
            start = attempt.cursor + own_wait
            end = max(start, attempt.cursor + wait + duration + lag)
            if self.chance(0.05, "waits"):
                own_wait += self.time(0, 20)  # a wait that began before the previous step ended
            times = Step(self.run.monotonic(start), end - start, own_wait)
            attempt.pending.setdefault(rank, []).append((step, times))
            ends.append(end)
            if self.chance(0.04, "nested", "phases"):
                name = self.pick("custom:inner", "evaluation", "checkpoint_save", "data_wait")
                begin = self.rng.randint(start, end)
                self.run.phase(attempt.name, name, begin, self.rng.randint(begin, end), rank)
            if self.chance(0.02, "nested", "cut_phases"):
                self.run.phase(attempt.name, self.pick("evaluation", "custom:x"), start, None, rank)
            if self.chance(0.03, "heartbeats"):
                beat = Heartbeat(open_phases=("step",), last_step=step - 1)
                self.run.event(self.rng.randint(start, end), beat, attempt.name, rank)
        attempt.cursor = max(ends)

    def after_step(self, attempt: Trial, step: int) -> None:
        if self.chance(0.08):
            self.flush(attempt)
        if self.chance(0.1, "gaps"):
            attempt.cursor += self.time(0, 4) if self.chance(0.7) else self.delay()
        if self.chance(0.12, "phases"):
            name = self.pick("evaluation", "custom:check", "data_wait", "warmup", "custom:x")
            begin, end = attempt.cursor, attempt.cursor + self.time(0, 40)
            if self.chance(0.05, "long_steps"):
                end = begin + self.time(50, 300)
            for rank in attempt.ranks:
                if self.chance(0.8):
                    self.run.phase(attempt.name, name, begin, end, rank)
            if self.chance(0.3, "nested"):
                inner = self.rng.randint(begin, end)
                name = self.pick("data_wait", "checkpoint_save", "custom:inner")
                self.run.phase(attempt.name, name, inner, self.rng.randint(inner, end), 0)
            attempt.cursor = end
        if self.chance(0.12, "saves"):
            self.save(attempt, step)
        if self.chance(0.03, "faults", "self_heal"):
            self.run.event(
                attempt.cursor, self.fault(step), attempt.name, self.pick(*attempt.ranks)
            )

    def save(self, attempt: Trial, step: int) -> None:
        blocking = self.time(0, 15)
        begin, end = attempt.cursor, attempt.cursor + blocking
        if self.chance(0.6, "phases"):
            for rank in attempt.ranks:
                if rank == 0 or self.chance(0.7):
                    self.run.phase(attempt.name, "checkpoint_save", begin, end, rank)
        checkpoint = f"c{step}" if self.chance(0.7) else f"c{step} {attempt.name}"
        scheduled = CheckpointScheduled(
            checkpoint=checkpoint,
            step=step,
            blocking=blocking if self.chance(0.8) else None,
            tier=self.pick("memory", "local", "shared", None),
        )
        for rank in attempt.ranks[: self.pick(1, 1, 4)]:
            self.run.event(end, scheduled, attempt.name, rank)
        attempt.cursor = end
        done: int | None = None
        if self.chance(0.75):
            done = end + self.time(0, 60)
            finalized = CheckpointFinalized(checkpoint=checkpoint, step=step)
            self.run.event(done, finalized, self.pick(attempt.name, None), 0)
        elif self.chance(0.5):
            failed = CheckpointFailed(checkpoint=checkpoint, step=step)
            self.run.event(end + self.time(0, 30), failed, attempt.name, 0)
        self.saves.append(Save(checkpoint, step, self.chance(0.85), done))

    def flush(self, attempt: Trial) -> None:
        """Write the steps done so far in each rank's own fashion."""
        for rank, steps in attempt.pending.items():
            mode = attempt.detail[rank]
            if mode in ("detail", "both"):
                self.run.step_times(attempt.name, steps[0][0], [s for _, s in steps], rank)
            if mode in ("summary", "both"):
                self.summaries(attempt, rank, steps)
        attempt.pending.clear()

    def summaries(self, attempt: Trial, rank: int, steps: list[tuple[int, Step]]) -> None:
        while steps:
            size = self.rng.randint(1, 10)
            part, steps = steps[:size], steps[size:]
            first, newest = part[0][1], part[-1][1]
            longest = max(part, key=lambda item: item[1].duration)
            wide = self.chance(0.7)
            summary = StepsSummary(
                first_step=part[0][0],
                num_steps=len(part),
                duration=newest.start + newest.duration - first.start,
                step_time=sum(s.duration for _, s in part) if wide else None,
                data_wait=sum(s.data_wait for _, s in part[1:]) if wide else None,
                longest=longest[1].duration if wide else None,
                longest_step=longest[0] if wide else None,
            )
            at = newest.start + newest.duration - self.run.monotonic(0)
            count = len(part) if self.chance(0.7) else 1
            self.run.event(at, summary, attempt.name, rank, count=count)
