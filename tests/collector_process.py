"""The real collector in its own process, for tests that stop or kill it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAM = (
    # Without a file DuckDB takes a program for a notebook, and draws the progress of each query of
    # more than two seconds into its output, before what is waited for there.
    "import __main__; __main__.__file__ = 'collector'\n"
    "import sys; from headway.settings import CollectorSettings, load\n"
    "from headway.collector.server import main; sys.exit(main(load(CollectorSettings)))"
)

COMMAND = ("-m", "headway", "collect")
"""As people start it: with alerting beside the server."""


class CollectorProcess:
    """A started collector; `address` is known once it is ready."""

    def __init__(
        self,
        database: Path,
        port: int = 0,
        variables: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-c", PROGRAM),
    ) -> None:
        """Start it and wait for its address; a `program` other than the server alone runs it."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")
        }
        environment |= {
            "HEADWAY_COLLECTOR_DATABASE": str(database),
            "HEADWAY_COLLECTOR_PORT": str(port),
            "HEADWAY_COLLECTOR_COMMIT_INTERVAL": "0.01",
            "HEADWAY_COLLECTOR_TOKENS": str(database.with_name("tokens.json")),
            **(variables or {}),
        }
        self.process = subprocess.Popen(
            [sys.executable, *program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.address = self._read_address()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith("listening on "):
                return line.removeprefix("listening on ").strip()
        return ""

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        """Ask it to stop; return its exit status and what it wrote to standard error."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, errors


@contextmanager
def collector_process(
    database: Path, port: int = 0, variables: Mapping[str, str] | None = None
) -> Iterator[CollectorProcess]:
    """Start a collector and wait until it is ready; it is gone when the block ends."""
    started = CollectorProcess(database, port, variables)
    try:
        yield started
    finally:
        started.kill()
