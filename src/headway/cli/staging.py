"""What surrounds a command that stages a run of its own: signals that end it, a folder for it."""

import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from headway.cli.refusal import Refusal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end a command through its `finally`.

    A script that starts the command with `&` hands it a SIGINT that is ignored, and yet `kill -INT`
    must end it; a SIGHUP that is ignored is the wish of `nohup`.
    """

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, leave)
    if before[signal.SIGHUP] is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """Let nothing interrupt the clean-up: an impatient second Ctrl-C would leave children."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def state_folder(command: str, keep: Path | None, *, once: bool) -> Iterator[Path]:
    """Yield the folder of a command's state, a temporary one where it is wanted `once`.

    A temporary folder is kept when something went wrong.

    Raises:
        Refusal: the folder cannot be written, or holds something.
    """
    temporary = once and keep is None
    if temporary:
        folder = Path(tempfile.mkdtemp(prefix=f"headway-{command}-"))
    else:
        default = Path(".headway") / command / time.strftime("%Y%m%dT%H%M%S")
        folder = (default if keep is None else keep).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            used = any(folder.iterdir())
        except OSError as error:
            raise Refusal(
                f"cannot use the folder {str(folder)!r}: {error.strerror}",
                "name another with --keep",
            ) from error
        if used:
            raise Refusal(f"{str(folder)!r} is not empty", "name a new folder with --keep")
    try:
        yield folder
    except BaseException:
        print(f"state and logs: {folder}", file=sys.stderr)
        raise
    if temporary:
        shutil.rmtree(folder)
    else:
        print(f"state and logs: {folder}", file=sys.stderr)
