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

from headway.exporter.launcher.channel import Channel
from headway.exporter.launcher.child import Child, StartError, open_streams, pause
from headway.exporter.launcher.entering import entered
from headway.exporter.launcher.observer import Observer
from headway.exporter.launcher.ranks import MARK
from headway.exporter.launcher.shipping_thread import ShippingThread
from headway.exporter.spool_layout import spool_folder
from headway.settings import AgentSettings

LOG = "run.log"
"""File in the folder of the spools: a command's own output stays as it is."""
_LOG_SIZE = 1024**2
_LONGEST_DELAY = 1.8
"""Seconds by which this process ends later than its command where the collector takes nothing."""
_LAST_LOOK = 1.0
"""Seconds within which the observer tells what is left to tell."""


def main(settings: AgentSettings, command: Sequence[str]) -> int:
    """Run a command under the agent; return its exit status as a shell gives it.

    127 stands for a command that is not there, 126 for one that cannot be executed.
    """
    streams = open_streams()
    folder = spool_folder(settings.spool).absolute()
    try:
        with _log_file(folder):
            return _observed(settings, folder, command, streams)
    except _UnusableError as error:
        print(
            f"headway run: cannot use the spool folder {str(folder)!r}: {error}; nothing is "
            "recorded; name another with --spool or HEADWAY_SPOOL",
            file=sys.stderr,
        )
    except StartError as error:
        return _refused(error)
    try:
        return Child(command, os.environ, streams, _ignore).wait(_ignore)
    except StartError as error:
        return _refused(error)


def _observed(
    settings: AgentSettings, folder: Path, command: Sequence[str], streams: Sequence[int]
) -> int:
    mark = uuid.uuid4().hex
    environment = {**os.environ, "HEADWAY_SPOOL": str(folder), MARK: mark}
    channel = Channel()
    observer = Observer(folder, mark, environment, channel)
    shipping = ShippingThread(settings, folder, observer.ranks)
    shipping.claim()
    try:
        inside = entered(command, channel.writing_end)
        child = Child(inside or command, environment, streams, observer.hear)
    except StartError:
        shipping.release()
        raise
    channel.started()
    observer.start()
    shipping.start()
    status = child.wait(observer.signalled)
    deadline = time.monotonic() + _LONGEST_DELAY
    observer.finish(_LAST_LOOK)
    if not shipping.finish(deadline, pause):
        # The thread may be in the middle of a request; what it left unsaid is in the spools.
        os._exit(status)
    return status


def _refused(error: StartError) -> int:
    print(f"headway run: {error}", file=sys.stderr)
    return error.status


def _ignore(*_: object) -> None:
    """Take what nobody wants to know."""


class _UnusableError(Exception):
    """The folder of the spools cannot be used."""


@contextlib.contextmanager
def _log_file(folder: Path) -> Iterator[None]:
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
        logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
