"""The kernel's log, read for kills for lack of memory alone while a command runs.

The agent reads it, too, for all that concerns the node, but perhaps in another process, and later
than a rank's end has to be explained.
"""

import logging
import time
from collections.abc import Iterator

from headway.exporter.kernel.choices import choices, end_of, open_source
from headway.exporter.kernel.journal import JOURNAL
from headway.exporter.kernel.log import OFF
from headway.exporter.kernel.sources import Source
from headway.kernel_log.oom import OomKill, oom_kill

_log = logging.getLogger(__name__)


class OomLog:
    """Follows what the kernel writes from now on; silent where its log cannot be read."""

    def __init__(self, choice: str) -> None:
        """Open the log that a setting names, as for the agent."""
        self._source: Source | None = None
        for name in choices(choice) if choice != OFF else ():
            if name == JOURNAL:
                continue  # another program has to read it
            try:
                self._source = open_source(name, end_of(name))
            except OSError as error:
                _log.info("cannot read %s: %s", name, error.strerror)
            else:
                break
        for _ in self.read():
            pass  # what the kernel's buffer holds of before the command

    def read(self) -> Iterator[OomKill]:
        """Yield the kills since the last time."""
        more = self._source is not None
        while self._source is not None and more:
            try:
                taken = self._source.read(time.monotonic_ns())
            except OSError as error:
                _log.warning("can no longer read %s: %s", self._source.name, error.strerror)
                self.close()
                return
            more = taken.more
            for message in taken.messages:
                kill = oom_kill(message.text)
                if kill is not None:
                    yield kill

    def close(self) -> None:
        """Let go of it."""
        if self._source is not None:
            self._source.close()
            self._source = None
