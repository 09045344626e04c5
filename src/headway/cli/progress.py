"""How far the demo's training is, in one line for the person who waits."""

import sys
import time
from collections.abc import Mapping
from typing import Any

from headway import wording

_LINE_INTERVAL = 10.0
"""Seconds between two lines where they cannot be rewritten in place."""


class Progress:
    """One line on stderr that follows the training; on a terminal it is rewritten in place."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._shown = ""
        self._next = 0.0

    def show(self, summary: Mapping[str, Any] | None) -> None:
        """Show how far the run is, if that changed and a reader can follow."""
        if summary is None:
            line = "the training starts"
        else:
            steps = summary["steps"]
            restarts = sum(sum(causes.values()) for causes in summary["restarts"].values())
            line = (
                f"step {wording.count(steps['highest'])} of {wording.count(steps['target'])}, "
                f"{wording.counted(restarts, 'restart')}, training goodput "
                f"{wording.ratio_range(**summary['training_goodput'])}, infrastructure goodput "
                f"{wording.ratio_range(**summary['infrastructure_goodput'])}"
            )
        if line == self._shown or time.monotonic() < self._next:
            return
        terminal = sys.stderr.isatty()
        if terminal:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        self._shown = line
        self._next = time.monotonic() + (0.0 if terminal else _LINE_INTERVAL)

    def end(self) -> None:
        """Leave the line behind."""
        if self._shown and sys.stderr.isatty():
            print(file=sys.stderr)
