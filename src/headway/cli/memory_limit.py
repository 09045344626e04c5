"""A cgroup in which a drill can let the kernel run out of memory, where this machine allows one."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

_ROOT = Path("/sys/fs/cgroup")
_ROOM = 32 * 1024**2
"""Bytes that are left to the processes of the cgroup when memory is to run out."""
_CHUNK = 4 * 1024**2
_MOST = 4 * 1024**3
_PAGE = 4096
_FIRST, _SECOND = "1000", "999"
"""The kernel's `oom_score_adj` of the process that it kills before any other, and of the next."""
_NO_CGROUP = "no process can be put under a memory limit here"


class MemoryLimit:
    """A memory cgroup (version 1 or 2) without a limit, until memory is to run out."""

    def __init__(self, name: str) -> None:
        """Create the cgroup.

        Raises:
            OSError: this machine does not let this user create one that limits memory; the
                message says what is missing.
        """
        unified = (_ROOT / "cgroup.controllers").exists()
        parent = _own_cgroup() if unified else _ROOT / "memory"
        self._limit, self._usage, self._swap = (
            ("memory.max", "memory.current", "memory.swap.max")
            if unified
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.memsw.limit_in_bytes")
        )
        self._swaps_beside = unified
        self._folder = parent / name
        try:
            self._folder.mkdir()
        except OSError as error:
            raise OSError(
                f"{_NO_CGROUP}: cannot create {self._folder}: {error.strerror}"
            ) from error
        if not os.access(self._folder / self._limit, os.W_OK):
            self.close()
            raise OSError(
                f"{_NO_CGROUP}: the memory controller is not delegated to {parent}, so that "
                f"{self._limit} is missing in it"
            )

    def entered_by(self, command: list[str]) -> list[str]:
        """Return a command that runs another one in the cgroup, with all its descendants."""
        enter = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", enter, str(self._folder / "cgroup.procs"), *command]

    def run_out(self, victim: int) -> None:
        """Let the cgroup's memory run out, so that the kernel kills the process `victim`.

        Raises:
            OSError: it lives on although there is no memory left.
        """
        _rank_for_the_kernel(victim, _FIRST)
        used = int((self._folder / self._usage).read_text(encoding="ascii"))
        limit = str(used + _ROOM)
        (self._folder / self._limit).write_text(limit, encoding="ascii")
        swap = self._folder / self._swap
        if swap.exists():
            # Version 1 limits memory and swap together, version 2 swap by itself.
            swap.write_text("0" if self._swaps_beside else limit, encoding="ascii")
        taker = [sys.executable, "-m", "headway.cli.memory_limit", str(victim)]
        subprocess.run(self.entered_by(taker), check=False)  # noqa: S603  # this very module
        if _lives(victim):
            raise OSError(f"process {victim} lives on in {self._folder} without memory")

    def close(self) -> None:
        """Remove the cgroup, once nothing lives in it."""
        deadline = time.monotonic() + 5.0
        while self._folder.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.1)


def _take(victim: int) -> None:
    """Take memory until another process in the same cgroup is gone.

    The kernel may look for more before the victim's memory is free: then it is this process's.
    """
    _rank_for_the_kernel(os.getpid(), _SECOND)
    held = []
    for _ in range(_MOST // _CHUNK):
        if not _lives(victim):
            break
        block = bytearray(_CHUNK)
        block[::_PAGE] = b"1" * (_CHUNK // _PAGE)
        held.append(block)


def _rank_for_the_kernel(process_id: int, score: str) -> None:
    Path(f"/proc/{process_id}/oom_score_adj").write_text(score, encoding="ascii")


def _lives(process_id: int) -> bool:
    try:
        return bool(psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _own_cgroup() -> Path:
    """Return the folder of this process's cgroup of version 2."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        number, _, path = line.partition("::")
        if number == "0":
            return _ROOT / path.lstrip("/")
    return _ROOT


if __name__ == "__main__":
    _take(int(sys.argv[1]))
