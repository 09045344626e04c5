"""The helper as the agent holds it: started, read without waiting, killed without waiting."""

import os
import subprocess
import time
from collections.abc import Sequence

_READ = 256 * 1024
"""Bytes taken at one look."""
_LONGEST_LINE = 1024 * 1024


class HelperProcess:
    """A started helper; `command` is its program and arguments."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        self._output, output = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module, or what a test gives
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                start_new_session=True,  # a Ctrl-C is for the agent
            )
        except OSError:
            os.close(self._output)
            raise
        finally:
            os.close(output)
        os.set_blocking(self._output, False)
        self._rest = b""

    @property
    def status(self) -> int | None:
        """Its exit status, None while it exists."""
        return self._process.poll()

    def lines(self) -> list[bytes] | None:
        """Return the whole lines that have come; None where it wrote nothing since the last look.

        One that has ended and whose output is read to the end has written nothing.
        """
        try:
            content = os.read(self._output, _READ)
        except BlockingIOError:
            return None
        if not content:
            return None
        *lines, rest = (self._rest + content).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        return lines

    def kill(self) -> None:
        """End it, as far as the operating system can; no line is read from it any more."""
        self._process.kill()
        os.close(self._output)

    def wait(self, seconds: float) -> bool:
        """Wait for its end for so long at most; return whether it has ended."""
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.status is not None
