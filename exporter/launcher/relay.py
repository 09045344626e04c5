"""Passes on what the command writes, byte for byte, and lets a reader see a copy of its lines.

The command gets a pseudo-terminal where this process has a terminal, in raw mode so that the real
terminal alone translates anything, and a pipe elsewhere; both streams share one where they are the
same file, so that their order stays.
"""

import fcntl
import logging
import os
import select
import struct
import termios
import threading
from collections.abc import Callable

from headway.launcher_log.lines import LONGEST, MARKS

_log = logging.getLogger(__name__)

_CHUNK = 64 * 1024
_QUIET = 100
"""Milliseconds without output after the command's end that mean that others hold its streams."""
_LATEST = 10
"""Rounds for which a stream that others keep busy is read after the command's end."""
_WINDOW = struct.Struct("HHHH")


class Relay:
    """One stream of the command: `target` is the descriptor of ours that it goes to.

    `told` gets each line that may be a launcher's.
    """

    def __init__(
        self,
        target: int,
        told: Callable[[str], None],
        heard: Callable[[bytes], None] | None = None,
    ) -> None:
        """Open the pipe or pseudo-terminal; `heard` gets a copy of all that passes, and is quick.

        Raises:
            OSError: there are no descriptors or terminals left.
        """
        self._target = target
        self._lines = Lines(told)
        self._heard = heard
        self._terminal = os.isatty(target)
        self._source, self.end = _terminal(target) if self._terminal else os.pipe()
        """`end` is what the command writes to; `started` closes it here."""
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, name="headway relay", daemon=True)
        self._over = threading.Event()

    def started(self) -> None:
        """Begin to pass on, now that the command holds its end."""
        os.close(self.end)
        self._thread.start()

    def resize(self) -> None:
        """Give the pseudo-terminal the size of the real one."""
        if self._terminal:
            _copy_size(self._target, self._source)

    def finish(self) -> None:
        """Wait until all that the ended command wrote is passed on.

        Where it left processes behind that hold the stream, another process goes on passing on
        for them, as they would go on writing had nobody stood between.
        """
        os.close(self._woken)
        self._thread.join()
        os.close(self._wake)
        if self._over.is_set():
            return
        null = os.open(os.devnull, os.O_WRONLY)
        actions = [
            (os.POSIX_SPAWN_DUP2, self._source, 0),
            (os.POSIX_SPAWN_DUP2, self._target, 1),
            (os.POSIX_SPAWN_DUP2, null, 2),
        ]
        try:
            os.posix_spawnp("cat", ["cat"], os.environ, file_actions=actions, setsigmask=())
        except OSError:
            pass  # nobody is left to pass on, as if the terminal were closed
        finally:
            os.close(null)
            os.close(self._source)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        patience = None
        while True:
            ready = dict(poll.poll(None if patience is None else _QUIET))
            if self._source in ready:
                if not self._pass_on():
                    os.close(self._source)
                    self._over.set()
                    return
            elif patience is not None:
                return
            if self._wake in ready:
                poll.unregister(self._wake)
                patience = _LATEST
            elif patience is not None:
                patience -= 1
                if not patience:
                    return

    def _pass_on(self) -> bool:
        """Pass on what is there; return False at the end, or when nobody reads any more."""
        try:
            chunk = os.read(self._source, _CHUNK)
        except OSError:
            return False  # the end of a pseudo-terminal
        if not chunk:
            self._lines.end()
            return False
        self._lines.add(chunk)
        if self._heard is not None:
            self._heard(chunk)
        return write_all(self._target, chunk)


class Lines:
    """Cuts what was written into lines, and tells those in which a launcher may speak."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._rest = b""
        self._skipping = False

    def add(self, chunk: bytes) -> None:
        """Take what was written next; never raises."""
        # A progress bar goes back to the start of its line and never ends it.
        chunk = chunk.replace(b"\r", b"\n")
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            whole = self._rest + head
            self._rest = b""
            if self._skipping:
                self._skipping = False
                whole = whole.partition(b"\n")[2]
            if MARKS.search(whole):
                for line in whole.split(b"\n"):
                    self._tell(line)
        # Of a line without an end the beginning is enough.
        if not self._skipping:
            self._rest += tail
            if len(self._rest) > _CHUNK:
                self._tell(self._rest)
                self._rest, self._skipping = b"", True

    def end(self) -> None:
        """Take the last line, which may lack its end."""
        self._tell(self._rest)
        self._rest = b""

    def _tell(self, line: bytes) -> None:
        if MARKS.search(line):
            try:
                self._told(line[:LONGEST].decode("utf-8", "replace"))
            except Exception:
                _log.exception("a line of the command could not be read: %r", line[:LONGEST])


def write_all(target: int, chunk: bytes) -> bool:
    """Write all of it, however long the reader takes; return False where it is gone."""
    view = memoryview(chunk)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            # Others that share our terminal or pipe may have made it non-blocking.
            waiting = select.poll()
            waiting.register(target, select.POLLOUT)
            waiting.poll()
        except OSError:
            return False
    return True


def _terminal(like: int) -> tuple[int, int]:
    """Open a pseudo-terminal with the size and settings of a terminal, in raw mode."""
    master, slave = os.openpty()
    settings = termios.tcgetattr(like)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    _copy_size(like, master)
    return master, slave


def _copy_size(source: int, target: int) -> None:
    try:
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(_WINDOW.size))
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)
    except OSError:
        pass  # no size is known; the command has none either
