"""The agent's reader of the kernel's log: every source, rotation, restarts and lost lines."""

import errno
import os
import stat
from collections import deque
from pathlib import Path

import pytest

from headway.events import Dropped, GpuFault, GpuXid, Note
from headway.exporter.kernel import choices as kernel_choices
from headway.exporter.kernel import log as kernel_log
from headway.exporter.kernel.sources import KmsgSource, Source
from headway.exporter.node.witness import Witness
from headway.exporter.spooling.layout import Position
from headway.exporter.spooling.reader import SpoolReader, spools
from kernel_watch import BOOT, SECOND, Watch, counts


def xid(code: int, device: str = "0000:01:00", words: str = "Ch 1") -> str:
    return f"NVRM: Xid (PCI:{device}): {code}, pid=9, name=a, {words}"


def iso(seconds: float) -> str:
    """Return the stamp of a syslog line so many seconds after the boot."""
    from datetime import UTC, datetime, timedelta

    moment = datetime.fromtimestamp(BOOT // SECOND, UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="microseconds")


def line(seconds: float, code: int, device: str = "0000:01:00") -> str:
    return f"{iso(seconds)} node-1 kernel: {xid(code, device)}\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kern.log"
    path.touch()
    return path


@pytest.fixture
def watch(tmp_path: Path, log: Path) -> Watch:
    return Watch(folder=tmp_path / "state", choice=str(log))


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_fault_is_recorded_with_its_time_class_policy_and_line(watch: Watch, log: Path) -> None:
    watch.poll()
    append(log, line(1001.5, 79))
    watch.poll(times=4)

    ((event, at),) = [each for each in watch.told if isinstance(each[0], GpuXid)]
    assert at == 1_001_500_000_000
    assert isinstance(event, GpuXid)
    assert (event.code, event.classification, event.policy) == (79, "reboot", "headway 2026.11")
    assert event.line == line(1001.5, 79).rstrip()


@pytest.mark.slow
def test_a_storm_is_one_fault_and_its_late_lines_are_a_sentence(watch: Watch, log: Path) -> None:
    watch.poll()
    for second in range(20):
        append(log, "".join(line(1001 + second + n / 1000, 45) for n in range(500)))
        watch.poll()
    watch.poll(times=20)

    fault, note = watch.faults
    assert isinstance(fault, GpuXid)
    assert isinstance(note, Note)
    assert fault.repeats is not None
    assert note.text.startswith(f"{10_000 - fault.repeats} further lines belong to: ")


def test_a_line_without_any_stamp_was_written_since_the_last_look(watch: Watch, log: Path) -> None:
    watch.poll()
    append(log, xid(79) + "\n")
    watch.poll(times=4)

    ((_, at),) = [each for each in watch.told if isinstance(each[0], GpuXid)]
    assert at == 1_002 * SECOND


def test_an_old_line_without_any_stamp_is_left_out(watch: Watch, log: Path) -> None:
    append(log, xid(79) + "\n")
    watch.poll(times=5)

    assert watch.faults == []


def test_a_line_of_an_earlier_boot_is_recorded_by_the_wall_clock(watch: Watch, log: Path) -> None:
    append(log, line(-500, 79))
    watch.poll(times=5)

    ((event, wall),) = watch.earlier
    assert isinstance(event, GpuXid)
    assert wall == BOOT - 500 * SECOND
    assert watch.faults == []


def test_a_name_that_is_no_file_is_refused_in_words(watch: Watch, log: Path) -> None:
    for make, words in ((log.mkdir, "Is a directory"), (lambda: os.mkfifo(log), "Illegal seek")):
        log.unlink() if log.is_file() else None
        make()
        watch.poll(seconds=61)
        assert watch.health[-1] == ("disabled", f"{log}: {words}")
        log.rmdir() if log.is_dir() else log.unlink()


def test_half_a_line_waits_for_its_other_half(watch: Watch, log: Path) -> None:
    watch.poll()
    whole = line(1001, 79)
    append(log, whole[:40])
    watch.poll(times=4)
    append(log, whole[40:])
    watch.poll(times=4)

    assert counts(watch.faults) == {"0000:01:00 79": 1}


@pytest.mark.parametrize("way", ["rename", "empty", "empty and refill"])
def test_rotation_loses_and_doubles_nothing(watch: Watch, log: Path, way: str) -> None:
    watch.poll()
    append(log, "a line of something else, longer than the next file will be at first\n" * 3)
    append(log, line(1001, 31, "0000:01:00"))
    watch.poll()
    append(log, line(1002, 31, "0000:02:00"))  # written after the last look, before the rotation
    old = log.with_name("kern.log.1")
    if way == "rename":
        log.rename(old)
        append(old, line(1003, 31, "0000:03:00"))  # the daemon still has the old file open
        watch.poll()
        log.touch()
    else:
        old.write_bytes(log.read_bytes())
        os.truncate(log, 0)
        append(log, line(1003, 31, "0000:03:00"))
    if way == "empty and refill":
        append(log, "more than the old file held\n" * 100)
    watch.poll(times=2)
    append(log, line(1004, 31, "0000:04:00"))
    watch.poll(times=6)

    assert counts(watch.faults) == {f"0000:0{number}:00 31": 1 for number in range(1, 5)}
    assert watch.health == [("healthy", f"reads {log}")], "rotation is no trouble"


def test_lines_that_rotation_took_away_are_said_to_be_missing(watch: Watch, log: Path) -> None:
    append(log, line(1001, 31))
    watch.poll()
    os.truncate(log, 0)
    append(log, "short\n")
    watch.poll(times=5)

    assert [event.text for event in watch.faults if isinstance(event, Note)] == [
        f"{log} was emptied before it was read to its end"
    ]


def test_a_restart_at_any_moment_tells_each_fault_once(watch: Watch, log: Path) -> None:
    for number in range(1, 9):
        append(log, line(1000 + number, 31, f"0000:0{number}:00"))
        watch.poll()
        watch.watcher = None  # killed: no farewell
    watch.poll(times=6)

    assert counts(watch.faults) == {f"0000:0{number}:00 31": 1 for number in range(1, 9)}


def test_rotation_while_nobody_read_loses_nothing(watch: Watch, log: Path) -> None:
    append(log, line(1001, 31, "0000:01:00"))
    watch.poll(times=4)
    watch.stop()
    append(log, line(1010, 31, "0000:02:00"))
    log.rename(log.with_name("kern.log-20260908"))
    log.write_text(line(1020, 31, "0000:03:00"), encoding="utf-8")
    watch.now += 60 * SECOND
    watch.poll(times=6)

    assert counts(watch.faults) == {f"0000:0{number}:00 31": 1 for number in range(1, 4)}


def test_what_waited_when_the_node_went_down_is_told_after_the_boot(
    watch: Watch, log: Path
) -> None:
    watch.poll()
    append(log, line(1001, 79))
    watch.poll()
    watch.watcher = None
    watch.boot_id, watch.boot, watch.now = "another", BOOT + 5_000 * SECOND, 10 * SECOND
    append(log, line(5_011, 79))
    watch.poll(times=5)

    assert [wall for _, wall in watch.earlier] == [BOOT + 1_001 * SECOND]
    assert counts(watch.faults) == {"0000:01:00 79": 1}


def test_a_flood_is_read_in_pieces_and_completely(watch: Watch, log: Path) -> None:
    watch.poll()
    filler = "x" * 1000 + "\n"
    append(log, filler * 3_000 + line(1001, 79) + filler * 500)
    watch.poll()
    after_one = list(watch.faults)
    watch.poll(times=8)

    assert after_one == []
    assert counts(watch.faults) == {"0000:01:00 79": 1}


def test_a_damaged_memory_of_the_position_is_no_end(watch: Watch, log: Path) -> None:
    watch.folder.mkdir()
    (watch.folder / "kernel_log.json").write_text('{"position": 7', encoding="utf-8")
    watch.poll()
    append(log, line(1001, 79))
    watch.poll(times=4)

    assert counts(watch.faults) == {"0000:01:00 79": 1}


def test_a_file_that_is_not_there_yet_is_read_when_it_comes(watch: Watch, log: Path) -> None:
    log.unlink()
    watch.poll(times=3)
    said_before = list(watch.health)
    log.write_text(line(1004, 79), encoding="utf-8")
    watch.poll(times=5)

    assert said_before == [("disabled", f"{log}: there is no such file yet")]
    assert counts(watch.faults) == {"0000:01:00 79": 1}
    assert watch.health[1:] == [("healthy", f"reads {log}")]


def test_no_permission_is_said_once_in_words(
    watch: Watch, log: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str, position: object) -> Source:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    monkeypatch.setattr(kernel_log, "open_source", refused)
    watch.poll(seconds=70, times=5)

    assert watch.health == [("disabled", f"{log}: Permission denied")]
    assert caplog.text.count("GPU faults in the kernel's log are not seen") == 1


def test_a_process_killed_for_memory_is_no_gpu_fault(watch: Watch, log: Path) -> None:
    watch.poll()
    append(
        log,
        f"{iso(1001)} node-1 kernel: Out of memory: Killed process 4242 (python3) total-vm:9kB, "
        "anon-rss:8kB\n",
    )
    watch.poll(times=5)

    assert watch.faults == []
    ((kill, at),) = watch.killed
    assert (kill.process_id, at) == (4242, 1001 * SECOND)


class Kernel:
    """A kernel's buffer that holds so many records; what is overwritten raises EPIPE once."""

    def __init__(self, size: int = 100) -> None:
        self.records: deque[bytes] = deque(maxlen=size)
        self.next = 0
        self._read = 0

    def write(self, seconds: float, text: str, priority: int = 3) -> None:
        self.records.append(f"{priority},{self.next},{round(seconds * 1e6)},-;{text}\n".encode())
        self.next += 1

    def open(self) -> None:
        self._read = self.next - len(self.records)

    def read(self, descriptor: int, amount: int) -> bytes:
        oldest = self.next - len(self.records)
        if self._read < oldest:
            self._read = oldest
            raise BrokenPipeError(errno.EPIPE, "overrun")
        if self._read == self.next:
            raise BlockingIOError(errno.EAGAIN, "nothing yet")
        self._read += 1
        return self.records[self._read - 1 - oldest]


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def kmsg(watch: Watch, kernel: Kernel, log: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    def opened(name: str, position: dict[str, int]) -> KmsgSource:
        kernel.open()
        source = KmsgSource(position, path=log, read=kernel.read)
        source.name = name
        return source

    monkeypatch.setattr(kernel_log, "open_source", opened)
    watch.choice = "kmsg"
    return watch


def test_the_kernels_buffer_is_read_from_what_it_still_holds(kmsg: Watch, kernel: Kernel) -> None:
    kernel.write(12.5, xid(79))
    kernel.write(990, "usb 1-1: new device")
    kernel.write(995, xid(48), priority=12)  # a program wrote it
    kmsg.poll(times=4)

    assert [(event.code, at) for event, at in kmsg.told if isinstance(event, GpuXid)] == [
        (79, 12_500_000_000)
    ]
    assert kmsg.health == [("healthy", "reads /dev/kmsg")]


def test_overwritten_records_are_counted_from_their_numbers(kmsg: Watch, kernel: Kernel) -> None:
    kernel.write(999, xid(31))
    kmsg.poll()
    for number in range(250):
        kernel.write(1001 + number / 1000, xid(45))
    kmsg.poll(times=4)

    assert [event.count for event in kmsg.faults if isinstance(event, Dropped)] == [150]
    assert counts([each for each in kmsg.faults if isinstance(each, GpuXid)]) == {
        "0000:01:00 31": 1,
        "0000:01:00 45": 100,
    }


def test_a_restart_goes_on_behind_the_last_record(kmsg: Watch, kernel: Kernel) -> None:
    for number in range(1, 9):
        kernel.write(1000 + number, xid(31, f"0000:0{number}:00"))
        kmsg.poll()
        kmsg.watcher = None
    kmsg.poll(times=5)

    assert counts(kmsg.faults) == {f"0000:0{number}:00 31": 1 for number in range(1, 9)}


def test_records_overwritten_while_nobody_read_are_counted_too(kmsg: Watch, kernel: Kernel) -> None:
    kernel.write(999, "first")
    kmsg.poll()
    kmsg.stop()
    for number in range(120):
        kernel.write(1002, f"line {number}")
    kmsg.poll()

    assert [event.count for event in kmsg.faults if isinstance(event, Dropped)] == [20]


def test_after_a_boot_the_numbers_begin_again(kmsg: Watch, kernel: Kernel) -> None:
    for _ in range(50):
        kernel.write(999, "x")
    kmsg.poll(times=12)
    kmsg.stop()
    kernel.__init__()  # type: ignore[misc]  # the same device of the next boot
    kernel.write(3, xid(79))
    kmsg.boot_id, kmsg.now = "another", 10 * SECOND
    kmsg.poll(times=4)

    assert counts(kmsg.faults) == {"0000:01:00 79": 1}


def test_the_kernels_clock_is_corrected_where_it_drifted_away(kmsg: Watch, kernel: Kernel) -> None:
    drift = 20.0  # seconds by which the kernel's clock is behind, after weeks without correction
    kmsg.poll()
    kernel.write(1001.5 - drift, xid(79, "0000:01:00"))
    kmsg.poll()
    kernel.write(1002.25 - drift, xid(79, "0000:02:00"))
    kmsg.poll(times=5)

    times = [at / SECOND for event, at in kmsg.told if isinstance(event, GpuXid)]
    assert times == [1001, 1002]  # 1001.5 and 1002.25, true to the distance of two looks


def test_three_lines_of_one_record_are_one_fault_of_their_gpu(kmsg: Watch, kernel: Kernel) -> None:
    kernel.write(
        12.5,
        "NVRM: The NVIDIA GPU 0000:cb:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system "
        "has\\x0aNVRM: fallen off the bus and is not responding to commands.",
    )
    kmsg.poll(times=4)

    (fault,) = kmsg.faults
    assert isinstance(fault, GpuFault)
    assert (fault.kind, fault.device, fault.classification) == (
        "fallen_off_bus",
        "0000:cb:00",
        "reboot",
    )


def test_a_real_device_that_gives_a_record_a_read_is_read() -> None:
    path = Path("/dev/kmsg")
    if not os.access(path, os.R_OK) or not stat.S_ISCHR(path.stat().st_mode):
        pytest.skip("this machine does not let its kernel's log be read")
    source = KmsgSource({}, path=path)

    taken = source.read(0)
    position = source.position()
    source.close()

    assert taken.missed == 0
    assert position["sequence"] >= 0


def test_every_choice_names_its_log() -> None:
    assert kernel_choices.choices("kmsg") == ["/dev/kmsg"]
    assert kernel_choices.choices("journal") == ["journal"]
    assert kernel_choices.choices("/a/log") == ["/a/log"]
    assert kernel_choices.choices("auto")[:2] == ["/dev/kmsg", "journal"]


def test_a_fault_of_an_earlier_boot_lies_in_the_spool_at_its_wall_clock_time(
    tmp_path: Path,
) -> None:
    witness = Witness(tmp_path, os.getpid(), "this boot")
    fault = GpuXid(code=79, device="0000:01:00")

    witness.earlier_event(fault, BOOT)
    witness.earlier_event(fault, BOOT + SECOND)
    witness.node_event(fault)
    witness.close()

    readers = [SpoolReader(folder) for folder in spools(tmp_path)]
    found = [each for reader in readers for each in reader.read(Position(), 100).envelopes]
    earlier = [each for each in found if each.boot_id is None]
    assert [each.anchor + each.monotonic for each in earlier] == [BOOT, BOOT + SECOND]
    assert [each.boot_id for each in found if each not in earlier] == ["this boot"]
    assert {(each.run, each.event) for each in found} == {(None, fault)}
