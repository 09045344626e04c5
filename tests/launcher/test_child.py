"""A command under `headway run` sees and does what it does without."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import headway_run, launched, surroundings

PATIENCE = 30.0


class Terminal:
    """A terminal with `headway run` as its only program, as a login shell would start it."""

    def __init__(self, command: list[str]) -> None:
        self.process_id, self._master = pty.fork()
        if self.process_id == 0:
            os.execvpe(command[0], command, surroundings())  # noqa: S606
        self.shown = b""

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def await_text(self, text: bytes) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self._read(deadline), self.shown

    def end(self) -> int:
        """Wait for its end; return the exit status."""
        while self._read(time.monotonic() + PATIENCE):
            pass
        _, status = os.waitpid(self.process_id, 0)
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        os.close(self._master)

    def _read(self, deadline: float) -> bool:
        if not select.select([self._master], [], [], max(deadline - time.monotonic(), 0))[0]:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:
            return False
        self.shown += chunk
        return bool(chunk)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for item in opened:
        item.close()


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.mark.parametrize("number", [0, 255])
def test_the_exit_status_is_the_commands(tmp_path: Path, number: int) -> None:
    assert launched(tmp_path, ["sh", "-c", f"exit {number}"]).returncode == number


@pytest.mark.parametrize(
    ("program", "status"), [("exit 3", 3), ("kill -TERM $PPID; sleep 60", 143)]
)
def test_it_is_so_though_a_library_has_threads_that_could_take_the_signals(
    tmp_path: Path, program: str, status: int
) -> None:
    """Numpy, which a profile needs, starts threads of its own."""
    words = headway_run(tmp_path, ["sh", "-c", program])
    place = words.index("--")
    words[place:place] = ["--profile", "megatron"]
    ended = subprocess.run(words, env=surroundings(), timeout=120, check=False)
    assert ended.returncode == status


def test_after_a_signal_it_is_128_and_the_signal(tmp_path: Path) -> None:
    ended = launched(tmp_path, ["sh", "-c", "kill -KILL $$"])
    assert ended.returncode == 128 + signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no-such-launcher", ""])
def test_a_missing_command_is_127_and_a_sentence(tmp_path: Path, name: str) -> None:
    ended = launched(tmp_path, [name, "train.py"])
    assert ended.returncode == 127
    assert ended.stderr.decode() == f"headway run: cannot run {name!r}: command not found\n"
    assert not (tmp_path / "agent.json").exists()


def test_a_command_that_cannot_be_executed_is_126(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("data")
    ended = launched(tmp_path / "spool", [str(plain)])
    assert ended.returncode == 126
    assert b"Permission denied" in ended.stderr


@pytest.mark.slow
def test_a_script_without_an_interpreter_is_the_shells(tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert launched(tmp_path / "spool", [str(script), "a b"]).stdout == b"a b\n"


@pytest.mark.slow
def test_every_byte_of_both_streams_passes(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "block = bytes(range(256)) * 4096\n"
        "for n in range(4):\n"
        "    sys.stdout.buffer.write(block); sys.stderr.buffer.write(block[::-1])\n"
    )
    ended = launched(tmp_path, python(program))
    block = bytes(range(256)) * 4096
    assert ended.stdout == block * 4
    assert ended.stderr == block[::-1] * 4


@pytest.mark.slow
def test_streams_that_are_one_keep_their_order(tmp_path: Path) -> None:
    program = "import os\nfor n in range(500): os.write(1 + n % 2, b'%d ' % n)"
    ended = subprocess.run(
        headway_run(tmp_path, python(program)),
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
    )
    assert ended.stdout == b"".join(b"%d " % number for number in range(500))


@pytest.mark.slow
def test_standard_input_is_the_commands(tmp_path: Path) -> None:
    assert launched(tmp_path, ["cat"], input=b"\x00\xff typed").stdout == b"\x00\xff typed"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_command(tmp_path: Path) -> None:
    words = headway_run(tmp_path, ["yes"])
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGPIPE


@pytest.mark.slow
def test_a_closed_stream_stays_closed(tmp_path: Path) -> None:
    program = "import os\ntry: os.fstat(1)\nexcept OSError: os.write(2, b'closed')"
    words = headway_run(tmp_path, python(program))
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words],
        env=surroundings(),
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
    )
    assert ended.stderr == b"closed"


@pytest.mark.slow
def test_descriptors_and_variables_reach_the_command(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    program = f"import os; os.write({writing}, os.environb[b'ODD'])"
    words = headway_run(tmp_path, python(program))
    subprocess.run(
        words, env=surroundings(ODD="a\tb"), pass_fds=[writing], check=True, timeout=PATIENCE
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"a\tb"


@pytest.mark.slow
def test_no_descriptor_of_ours_reaches_the_command(tmp_path: Path) -> None:
    words = python("import os; print(*sorted(int(name) for name in os.listdir('/proc/self/fd')))")
    alone = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    assert launched(tmp_path, words).stdout == alone.stdout


@pytest.mark.slow
def test_what_the_command_leaves_behind_can_go_on_writing(tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"(while [ ! -e {go} ]; do sleep 0.05; done; echo late) & echo soon"
    words = headway_run(tmp_path / "spool", ["sh", "-c", script])
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.wait(PATIENCE) == 0
        go.touch()
        assert process.stdout is not None
        assert process.stdout.read() == b"soon\nlate\n"


COUNTS = """
import signal, sys, time
got = []
for number in map(int, sys.argv[1].split(",")):
    signal.signal(number, lambda number, frame: got.append(number) or print(number, flush=True))
print("ready", flush=True)
while len(got) < int(sys.argv[2]):
    time.sleep(0.01)
time.sleep(0.3)
print(len(got), "in all", flush=True)
"""


@pytest.mark.slow
def test_each_signal_reaches_the_command_once(tmp_path: Path) -> None:
    names = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH", "ALRM", "CONT", "RTMIN")
    numbers = [getattr(signal, f"SIG{name}") for name in names]
    listed = ",".join(str(int(number)) for number in numbers)
    words = headway_run(tmp_path, [*python(COUNTS), listed, str(len(numbers))])
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in numbers:
            process.send_signal(number)
            assert process.stdout.readline() == b"%d\n" % number
        assert process.stdout.read() == b"10 in all\n"
    assert process.returncode == 0


@pytest.mark.slow
def test_a_command_that_ends_by_a_passed_signal_ends_so(tmp_path: Path) -> None:
    words = headway_run(tmp_path, ["sh", "-c", "echo ready; exec sleep 60"])
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_signals_that_were_ignored_or_blocked_stay_so(tmp_path: Path) -> None:
    program = (
        "import signal\n"
        "print(signal.getsignal(signal.SIGHUP), sorted(signal.pthread_sigmask(0, ())))\n"
    )
    words = headway_run(tmp_path, python(program))
    ended = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words],
        env=surroundings(),
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )
    assert ended.stdout == b"1 []\n"


@pytest.mark.slow
def test_a_parent_that_does_not_ask_how_its_children_end_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    parent = python(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    words = headway_run(tmp_path, ["sh", "-c", "exit 4"])
    ignored = subprocess.run([*parent, *words], env=surroundings(), timeout=PATIENCE)
    assert ignored.returncode == 4


@pytest.mark.slow
def test_a_second_ctrl_c_reaches_the_command_and_each_of_them_once(
    tmp_path: Path, terminal: list[Terminal]
) -> None:
    opened = Terminal(headway_run(tmp_path, [*python(COUNTS), str(int(signal.SIGINT)), "2"]))
    terminal.append(opened)
    opened.await_text(b"ready")
    opened.type(b"\x03")
    opened.await_text(b"2\r\n")
    opened.type(b"\x03")
    opened.await_text(b"2 in all")
    assert opened.end() == 0


@pytest.mark.slow
def test_ctrl_c_ends_a_command_that_lets_it(tmp_path: Path, terminal: list[Terminal]) -> None:
    opened = Terminal(headway_run(tmp_path, ["sh", "-c", "echo ready; exec sleep 60"]))
    terminal.append(opened)
    opened.await_text(b"ready")
    opened.type(b"\x03")
    assert opened.end() == 128 + signal.SIGINT


@pytest.mark.slow
def test_a_terminal_stays_a_terminal_of_its_size(tmp_path: Path, terminal: list[Terminal]) -> None:
    program = (
        "import os, signal, sys\n"
        "print([os.isatty(n) for n in (0, 1, 2)])\n"
        "print('tab\\there')\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print(tuple(os.get_terminal_size(1))))\n"
        "print('ready', flush=True)\n"
        "print('got', sys.stdin.readline())\n"
    )
    opened = Terminal(headway_run(tmp_path, python(program)))
    terminal.append(opened)
    opened.await_text(b"ready\r\n")
    assert b"[True, True, True]\r\ntab\there\r\nready\r\n" in opened.shown
    opened.resize(33, 77)
    opened.await_text(b"(77, 33)")
    opened.type(b"typed\n")
    opened.await_text(b"got typed")
    assert opened.end() == 0


@pytest.mark.slow
def test_only_what_is_a_terminal_looks_like_one(tmp_path: Path, terminal: list[Terminal]) -> None:
    program = "import os; os.write(2, repr([os.isatty(n) for n in (1, 2)]).encode())"
    words = headway_run(tmp_path, python(program))
    opened = Terminal(["sh", "-c", '"$@" | cat', "sh", *words])
    terminal.append(opened)
    opened.await_text(b"[False, True]")
    assert opened.end() == 0
