"""The real node agent in its own process, for tests that stop or kill it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

UNWATCHED = {
    "HEADWAY_AGENT_MEMORY": "no",
    "HEADWAY_AGENT_GPUS": "no",
    "HEADWAY_AGENT_NICS": "no",
    "HEADWAY_AGENT_KERNEL_LOG": "off",
}
"""Keeps what the machine itself has to say out of tests that are not about it; options win."""


def clean_environment(**variables: str) -> dict[str, str]:
    """Return the environment without settings of Headway but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
    return {**kept, **variables}


class AgentProcess:
    """A started agent; `address` is that of its metrics, empty where it refused to start."""

    def __init__(
        self,
        spool: Path,
        endpoint: str,
        *options: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        own = (
            "--spool",
            str(spool),
            "--endpoint",
            endpoint,
            "--port",
            "0",
            "--interval",
            "0.02",
            "--steps-interval",
            "0",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headway", "agent", *own, *options],
            env=clean_environment(**{**UNWATCHED, **(variables or {})}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("listening on ").strip()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        """Ask it to stop; return its exit status and what it wrote to standard error."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for its end; return its exit status and what it wrote to standard error."""
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, errors


@contextmanager
def agent_process(
    spool: Path, endpoint: str, *options: str, variables: Mapping[str, str] | None = None
) -> Iterator[AgentProcess]:
    """Start an agent and wait until it runs; it is gone when the block ends."""
    started = AgentProcess(spool, endpoint, *options, variables=variables)
    try:
        yield started
    finally:
        started.kill()
