"""`headway run`: a command, the observer of its ranks, and the node's agent, in one process.

The main thread has the command, threads do the rest: nothing that they do can keep the command
from starting, hold it up, or change how it ends.
"""

import contextlib
import logging
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from headway.exporter.ends import MARK
from headway.exporter.launcher.channel import Channel
from headway.exporter.launcher.child import Child, StartError, exit_status, open_streams, pause
from headway.exporter.launcher.entering import entered
from headway.exporter.launcher.observer import Observer
from headway.exporter.launcher.oom_log import OomLog
from headway.exporter.launcher.shipping_thread import ShippingThread
from headway.exporter.spooling.layout import spool_folder
from headway.logs import formatter, level_of
from headway.settings import AgentSettings

if TYPE_CHECKING:
    from headway.exporter.launcher.live_log import LiveLog
    from headway.importing.rules import Format

_log = logging.getLogger(__name__)

LOG = "run.log"
"""File in the folder of the spools: a command's own output stays as it is."""
_LOG_SIZE = 1024**2
_LONGEST_DELAY = 1.8
"""Seconds by which this process ends later than its command where the collector takes nothing."""
_LAST_LOOK = 1.0
"""Seconds within which the observer tells what is left to tell."""


Profile = tuple[Sequence["Format"], int | None]
"""Formats to read the command's output with, and the log interval, if it is known."""


def main(
    settings: AgentSettings | None,
    command: Sequence[str],
    mask: set[int],
    profile: Profile | None = None,
) -> int:
    """Run a command under the agent; return its exit status as a shell gives it.

    127 stands for a command that is not there, 126 for one that cannot be executed. Without
    settings it runs alone. With a `profile` its output is read as its log. `mask` is what
    `hold_signals` returned.
    """
    streams = open_streams()
    try:
        if settings is not None:
            return _watched(settings, command, mask, streams, profile)
        return exit_status(Child(command, os.environ, mask, streams, _ignore).wait(_ignore))
    except StartError as error:
        print(f"headway run: {error}", file=sys.stderr)
        return error.status


def _watched(
    settings: AgentSettings,
    command: Sequence[str],
    mask: set[int],
    streams: Sequence[int],
    profile: Profile | None,
) -> int:
    folder = spool_folder(settings.spool).absolute()
    try:
        with _log_file(folder, settings):
            return _observed(settings, folder, command, mask, streams, profile)
    except _UnusableError as error:
        print(
            f"headway run: cannot use the spool folder {str(folder)!r}: {error}; nothing is "
            "recorded; name another with --spool or HEADWAY_SPOOL",
            file=sys.stderr,
        )
        return main(None, command, mask)


def _observed(
    settings: AgentSettings,
    folder: Path,
    command: Sequence[str],
    mask: set[int],
    streams: Sequence[int],
    profile: Profile | None,
) -> int:
    mark = uuid.uuid4().hex
    environment = {**os.environ, "HEADWAY_SPOOL": str(folder), MARK: mark}
    try:
        channel = Channel()
        observer = Observer(folder, mark, environment, channel, OomLog(settings.kernel_log))
        live = None if profile is None else _live_log(folder, profile)
        shipping = ShippingThread(settings, folder)
        shipping.claim()
        inside = entered(command, channel.writing_end)
        os.set_inheritable(channel.writing_end, inside is not None)
    except Exception as error:
        _log.exception("the command runs alone")
        print(f"headway run: {error}; nothing is recorded", file=sys.stderr)
        return main(None, command, mask)
    try:
        heard = None if live is None else live.hear
        child = Child(inside or command, environment, mask, streams, observer.hear, heard)
    except StartError:
        observer.close()
        shipping.release()
        raise
    try:
        channel.started()
        observer.start()
        if live is not None:
            live.start()
        shipping.start()
    except Exception:
        _log.exception("the command runs without some of its observers")
    code = child.wait(observer.signalled)
    deadline = time.monotonic() + _LONGEST_DELAY
    observer.finish(child.process_id, code, _LAST_LOOK)
    if live is not None:
        live.finish(code, _LAST_LOOK)
    if not shipping.finish(deadline, pause):
        # The thread may be in the middle of a request; what it left unsaid is in the spools.
        os._exit(exit_status(code))
    return exit_status(code)


def _live_log(folder: Path, profile: Profile) -> "LiveLog":
    from headway.exporter.launcher.live_log import LiveLog  # numpy, for who wants it

    return LiveLog(folder, *profile)


def _ignore(*_: object) -> None:
    """Take what nobody wants to know."""


class _UnusableError(Exception):
    """The folder of the spools cannot be used."""


@contextlib.contextmanager
def _log_file(folder: Path, settings: AgentSettings) -> Iterator[None]:
    """Send the log to a file in the folder.

    Raises:
        _UnusableError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(folder / LOG, maxBytes=_LOG_SIZE, backupCount=1)
    except OSError as error:
        raise _UnusableError(error.strerror) from error
    handler.setFormatter(
        formatter(settings, "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level_of(settings))
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
