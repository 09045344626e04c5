"""Network adapters in a sysfs of the test: which counters count, and when a link went down."""

import ctypes
import struct
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from gpu_watch import Recorded
from headway.events import Event, Health, NicSample
from headway.exporter.node.errands import Errand
from headway.exporter.node.ethtool import Ioctl, statistics
from headway.exporter.node.nics import NicFindings, NicWatcher, read


class Sysfs:
    """The part of /sys that tells about adapters."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.findings = NicFindings()
        self.own: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """What the driver of each interface counts by itself."""

    def port(self, adapter: str, number: int, state: str = "4: ACTIVE", **counters: int) -> None:
        folder = self.root / f"class/infiniband/{adapter}/ports/{number}"
        self.write(folder / "state", state)
        for name, value in counters.items():
            kind = "hw_counters" if name.endswith("_err") or "_of_" in name else "counters"
            self.write(folder / kind / name, str(value))

    def interface(
        self, name: str, state: str = "up", downs: int = 0, device: bool = True, **counters: int
    ) -> None:
        folder = self.root / f"class/net/{name}"
        self.write(folder / "operstate", state)
        self.write(folder / "carrier_down_count", str(downs))
        for counter, value in counters.items():
            self.write(folder / f"statistics/{counter}", str(value))
        if device:
            self.write(folder / "device/vendor", "0x15b3")

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def look(self) -> list[Event]:
        return self.findings.take(read(self.root, self.own.__getitem__))


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_every_port_of_an_adapter_is_told_once(sysfs: Sysfs) -> None:
    sysfs.port("mlx5_0", 1, symbol_error=7)
    sysfs.port("mlx5_1", 1, "1: DOWN")
    sysfs.interface("eth0", rx_errors=3)
    sysfs.interface("docker0", device=False)
    assert sysfs.look() == [
        NicSample(device="eth0", state="up", up=True),
        NicSample(device="mlx5_0", port=1, state="active", up=True),
        NicSample(device="mlx5_1", port=1, state="down", up=False),
    ]
    assert sysfs.look() == []


def test_only_errors_that_rose_are_told_with_their_rise(sysfs: Sysfs) -> None:
    sysfs.port("mlx5_0", 1, symbol_error=7, port_rcv_data=100, packet_seq_err=0, out_of_buffer=5)
    sysfs.interface("eth0", rx_errors=3, tx_bytes=10)
    sysfs.look()
    sysfs.port("mlx5_0", 1, symbol_error=9, port_rcv_data=900, packet_seq_err=4, out_of_buffer=5)
    sysfs.interface("eth0", rx_errors=3, tx_bytes=99)
    rises = {"symbol_error": 2, "packet_seq_err": 4}
    assert sysfs.look() == [
        NicSample(device="mlx5_0", port=1, state="active", up=True, link_downs=0, counters=rises)
    ]


def test_a_counter_that_was_reset_counts_from_its_new_value(sysfs: Sysfs) -> None:
    sysfs.interface("eth0", rx_errors=30)
    sysfs.look()
    sysfs.interface("eth0", rx_errors=2)
    assert sysfs.look() == []
    sysfs.interface("eth0", rx_errors=5)
    (sample,) = sysfs.look()
    assert isinstance(sample, NicSample)
    assert sample.counters == {"rx_errors": 3}


def test_a_link_that_goes_down_and_comes_back_is_unhealthy_in_between(sysfs: Sysfs) -> None:
    sysfs.port("mlx5_0", 1)
    sysfs.look()
    sysfs.port("mlx5_0", 1, "1: DOWN")
    sample, down = sysfs.look()
    assert sample == NicSample(device="mlx5_0", port=1, state="down", up=False, link_downs=1)
    detail = "link downs: 1; now the link is down"
    assert down == Health(check="nic mlx5_0 port 1", state="unhealthy", detail=detail)
    assert sysfs.look() == []
    sysfs.port("mlx5_0", 1)
    assert sysfs.look()[-1] == Health(check="nic mlx5_0 port 1", state="healthy")


@pytest.mark.parametrize("kind", ["port", "interface"])
def test_a_link_that_flapped_between_two_looks_is_found_by_its_counter(
    sysfs: Sysfs, kind: str
) -> None:
    def told(times: int) -> None:
        if kind == "port":
            sysfs.port("mlx5_0", 1, link_downed=times)
        else:
            sysfs.interface("eth0", downs=times)

    told(4)
    sysfs.look()
    told(6)
    sample, health = sysfs.look()
    assert isinstance(sample, NicSample)
    assert (sample.up, sample.link_downs) == (True, 2)
    assert isinstance(health, Health)
    assert (health.state, health.detail) == ("unhealthy", "link downs: 2; now the link is up again")
    (calm,) = sysfs.look()
    assert isinstance(calm, Health)
    assert calm.state == "healthy"


def test_what_the_driver_counts_by_itself_counts_too(sysfs: Sysfs) -> None:
    sysfs.interface("eth0", rx_errors=3)
    sysfs.own["eth0"] = {"rx_crc_errors_phy": 5, "rx_bytes_phy": 10, "link_down_events_phy": 1}
    sysfs.own["eth0"]["rx12_wqe_err"] = 0  # one queue's share of the total
    sysfs.look()
    sysfs.own["eth0"] = {
        "rx_crc_errors_phy": 7,
        "rx_bytes_phy": 99,
        "link_down_events_phy": 3,
        "rx12_wqe_err": 1,
    }
    sample, health = sysfs.look()
    assert isinstance(sample, NicSample)
    assert sample.counters == {"rx_crc_errors_phy": 2, "link_down_events_phy": 2}
    assert sample.link_downs == 2
    assert isinstance(health, Health)
    assert health.state == "unhealthy"


def driver(statistics: dict[str, int]) -> Ioctl:
    """Return what the kernel does to a buffer for a driver with these statistics."""

    def ioctl(interface: bytes, buffer: ctypes.Array[ctypes.c_char]) -> None:
        assert interface == b"eth0"
        (command,) = struct.unpack_from("=I", buffer)
        if command == 0x03:
            struct.pack_into("=I", buffer, 180, len(statistics))
        elif command == 0x1B:
            assert struct.unpack_from("=II", buffer, 4) == (1, len(statistics))
            names = [name.encode().ljust(32, b"\0") for name in statistics]
            struct.pack_into(f"={32 * len(names)}s", buffer, 12, b"".join(names))
        else:
            struct.pack_into(f"={len(statistics)}Q", buffer, 8, *statistics.values())

    return ioctl


@pytest.mark.parametrize(
    "known", [{}, {"rx_crc_errors_phy": 2**40, "a_name_of_thirty-two_characters_": 1}]
)
def test_a_drivers_statistics_are_read_by_name(known: dict[str, int]) -> None:
    assert statistics("eth0", driver(known)) == known


def test_an_interface_without_statistics_of_its_own_has_none() -> None:
    assert statistics("no-such-interface") == {}
    assert statistics("lo") == {}


def test_an_adapter_that_disappears_is_down(sysfs: Sysfs, tmp_path: Path) -> None:
    sysfs.interface("eth0")
    sysfs.look()
    (tmp_path / "class/net/eth0").rename(tmp_path / "gone")
    sample, health = sysfs.look()
    assert sample == NicSample(device="eth0", state="gone", up=False, link_downs=1)
    assert isinstance(health, Health)
    assert health.state == "unhealthy"
    assert sysfs.look() == []


def test_counters_that_cannot_be_read_and_a_machine_without_adapters(sysfs: Sysfs) -> None:
    assert sysfs.look() == []
    sysfs.port("mlx5_0", 1, symbol_error=1)
    sysfs.write(sysfs.root / "class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "N/A")
    ports = read(sysfs.root)
    assert ports["mlx5_0", 1].counters == {"symbol_error": 1}


def test_the_watcher_records_what_changed(sysfs: Sysfs) -> None:
    recorded = Recorded()
    sysfs.interface("eth0")
    watcher = NicWatcher(recorded, interval=0.0, root=sysfs.root)
    deadline = time.monotonic() + 30
    while not recorded.events:
        assert time.monotonic() < deadline
        watcher.poll()
    watcher.close()
    assert recorded.events == [NicSample(device="eth0", state="up", up=True)]
    assert None not in recorded.times


def test_this_machines_adapters_can_be_read() -> None:
    assert all(isinstance(name, str) for name, _ in read())


def test_a_job_that_never_comes_back_holds_up_nothing_and_is_not_sent_again() -> None:
    held = threading.Event()
    sent = []

    def job() -> int:
        sent.append(1)
        held.wait()
        return 1

    errand = Errand(job, 0.0, name="held")
    assert [errand.poll() for _ in range(100)] == [[]] * 100
    errand.close(0.0)
    assert len(sent) == 1
    held.set()
    errand.close(30.0)
    ((_, result),) = errand.poll()
    assert result == 1
    errand.close(30.0)


def test_a_job_that_fails_is_told_once_and_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    sent = []

    def job() -> int:
        sent.append(1)
        raise OSError("gone")

    errand = Errand(job, 0.0, name="failing")
    deadline = time.monotonic() + 30
    while len(sent) < 3:
        assert time.monotonic() < deadline
        errand.poll()
    errand.close(30.0)
    assert len([record for record in caplog.records if "failing" in record.message]) == 1
