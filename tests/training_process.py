"""A rank with the real recorder in its own process, which takes its steps on command."""

import subprocess
import sys
from pathlib import Path

from agent_process import clean_environment

PROGRAM = """
import sys
from headway.events import RunEnded
from headway.exporter import Recorder

recorder = Recorder()
with recorder.phase("startup"):
    pass
recorder.resumed(completed=0)
done = 0
print("ready", flush=True)
for line in sys.stdin:
    command, _, number = line.strip().partition(" ")
    if command == "steps":
        for _ in recorder.batches(range(int(number))):
            with recorder.step(done + 1) as step:
                step.loss, step.samples = 1 / (done + 1), 8 * (done + 1)
            done += 1
    elif command == "end":
        recorder.end_attempt()
        recorder.record(RunEnded(reason="completed"))
    print(command, flush=True)
recorder.close()
"""


class TrainingProcess:
    """One rank of a run; each command returns when its records are in the spool."""

    def __init__(self, spool: Path, *, rank: int = 0, world_size: int = 1) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=clean_environment(
                HEADWAY_RUN="llama",
                HEADWAY_RUN_ID="7",
                HEADWAY_SPOOL=str(spool),
                RANK=str(rank),
                WORLD_SIZE=str(world_size),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def steps(self, count: int) -> None:
        """Take training steps."""
        self.begin_steps(count)
        self.finish()

    def begin_steps(self, count: int) -> None:
        """Start to take training steps, and return while they are taken."""
        self._command(f"steps {count}")

    def finish(self) -> None:
        """Wait until the command that was given last is done."""
        self._answer()

    def end(self) -> None:
        """End attempt and run."""
        self._command("end")
        self.finish()

    def exit(self) -> str:
        """Let it exit; return what it wrote to standard error."""
        _, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, errors
        return errors

    def kill(self) -> None:
        """End it as the kernel would."""
        self.process.kill()
        self.process.communicate()

    def _command(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def _answer(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), self.process.communicate()[1]
