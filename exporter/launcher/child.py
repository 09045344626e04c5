"""Runs the command as if nobody stood in between: its streams, its signals, its exit status.

The command stays in this process's group, so that a terminal's Ctrl-C reaches it directly; what
somebody sent to this process alone is passed on. Signals are taken with `sigwaitinfo` by the
main thread, because only that tells who sent one; every other thread has them blocked.
"""

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from headway.exporter.launcher.relay import Relay

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_OWN = {
    "SIGKILL", "SIGSTOP", "SIGCHLD", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGPROF",
    "SIGVTALRM", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS",
    "SIGXCPU", "SIGXFSZ", "SIGSTKFLT",
}  # fmt: skip
"""Signals that mean this process itself, or that both get anyway when they stop."""
PASSED_ON = frozenset(
    number
    for number in signal.valid_signals()
    if not isinstance(number, signal.Signals) or number.name not in _OWN
)
"""Signals that are passed on to the command."""
_WAITED = PASSED_ON | {signal.SIGCHLD}
_BY_KERNEL = 0
"""Signals with a higher code come from the kernel, such as those of a terminal's keys."""


class StartError(Exception):
    """The command cannot be started; `status` is the exit status that a shell would give."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def hold_signals() -> set[int]:
    """Keep the signals for `Child.wait`; return which were kept back before, as the command's are.

    To be called before a library is loaded that starts threads of its own, as numpy does: one that
    does not block them takes them from whoever waits, and SIGTERM would end this process.
    """
    # A parent may ignore it, which is inherited; then no child's end could be learned.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)


class Child:
    """The running command."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mask: set[int],
        streams: Sequence[int],
        told: Callable[[str], None],
        heard: Callable[[bytes], None] | None = None,
    ) -> None:
        """Start it with what `hold_signals` and `open_streams` returned.

        `told` gets each line that may be a launcher's, `heard` a copy of all that it writes.

        Raises:
            StartError: there is no such command, or it cannot be executed.
        """
        if len(streams) == 2 and os.path.sameopenfile(1, 2):
            shared = Relay(1, told, heard)
            relays = {1: shared, 2: shared}
        else:
            relays = {number: Relay(number, told, heard) for number in streams}
        self._relays = list(dict.fromkeys(relays.values()))
        actions = [(os.POSIX_SPAWN_DUP2, relay.end, to) for to, relay in relays.items()]
        try:
            self.process_id = _spawn(command, environment, actions, mask)
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise _not_started(command[0], error) from error
        self.code: int | None = None
        """How it ended, negative for a signal."""
        for relay in self._relays:
            relay.started()

    def wait(self, signalled: Callable[[int, bool], None]) -> int:
        """Pass signals on until the command ends; return how, negative for a signal.

        `signalled` is told each of them, and whether the terminal sent it.
        """
        while self.code is None:
            info = signal.sigwaitinfo(_WAITED)
            self._reap()
            if info.si_signo == signal.SIGCHLD or self.code is not None:
                continue
            by_terminal = info.si_code > _BY_KERNEL
            if info.si_signo == signal.SIGWINCH:
                for relay in self._relays:
                    relay.resize()
            elif by_terminal:
                signalled(info.si_signo, True)
                continue  # the command is in the same group and got it, too
            else:
                signalled(info.si_signo, False)
            os.kill(self.process_id, info.si_signo)
        for relay in self._relays:
            relay.finish()
        return self.code

    def _reap(self) -> None:
        ended, status = os.waitpid(self.process_id, os.WNOHANG)
        if ended:
            self.code = os.waitstatus_to_exitcode(status)


def exit_status(code: int) -> int:
    """Return the exit status with which a shell tells how a command ended."""
    return 128 - code if code < 0 else code


def open_streams() -> list[int]:
    """Return which of standard output and standard error are open.

    A closed one stays closed for the command; here its number is taken, or the next file that is
    opened would be this process's output.
    """
    found = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        else:
            found.append(number)
    return [number for number in found if number != 0]


def pause(seconds: float) -> bool:
    """Wait; return at once, and True, where somebody wants this process to end.

    For the time after the command's end.
    """
    deadline = time.monotonic() + seconds
    ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
    while (left := deadline - time.monotonic()) > 0:
        info = signal.sigtimedwait(_WAITED, left)
        if info is not None and info.si_signo in ending:
            return True
    return False


def _spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    actions: Sequence[tuple[int, ...]],
    mask: set[int],
) -> int:
    if not command[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def start(name: str, arguments: list[str]) -> int:
        return os.posix_spawnp(
            name,
            arguments,
            environment,
            file_actions=actions,
            setsigmask=mask,
            # The interpreter ignores these two; a command expects their usual effect.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )

    try:
        return start(command[0], list(command))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script that does not name its interpreter is one for the shell.
        found = shutil.which(command[0]) or command[0]
        return start("sh", ["sh", found, *command[1:]])


def _not_started(name: str, error: OSError) -> StartError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return StartError(f"cannot run {name!r}: command not found", NOT_FOUND)
    return StartError(f"cannot run {name!r}: {error.strerror}", NOT_EXECUTABLE)
