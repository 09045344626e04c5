"""A full disk: nothing is acknowledged that is not stored, and with room ingest goes on."""

import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from arrivals import numbers, stored, wait_until
from collector_process import CollectorProcess, collector_process
from headway import step_blocks
from headway.collector.otlp.bodies import PROTOBUF
from headway.events import Envelope, Steps
from otlp_requests import body
from records import PRODUCER, SECOND, record

pytestmark = pytest.mark.slow

HEADERS = {"content-type": PROTOBUF}
AT_ONCE = 5000
IN_THE_LOG, IN_THE_CHECKPOINT = 3, 18
"""Sizes in MB of a disk that is full while a commit is written, and in a checkpoint after it."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a file system of so many MB, or make it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = False

    def mount(size: int) -> Path:
        nonlocal mounted
        options = f"size={size}m,remount" if mounted else f"size={size}m"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted = True
        return folder

    yield mount
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def uneven_steps(first: int, last: int) -> Envelope:
    """Return steps of which no two are alike: what repeats takes next to no room in the store."""
    chance = random.Random(first)  # noqa: S311  # no secret
    packed = step_blocks.pack(
        step_blocks.Step(
            start=(number - 1) * SECOND + chance.randrange(SECOND // 4),
            duration=SECOND // 2 + chance.randrange(SECOND // 4),
            loss=chance.random(),
            samples=number,
        )
        for number in range(first, last + 1)
    )
    event = Steps(first_step=first, version=step_blocks.VERSION, packed=packed)
    return record(last, event, producer=PRODUCER, count=last - first + 1, run="llama-1")


class Sender:
    """Sends each batch of steps until it is acknowledged."""

    def __init__(self, collector: CollectorProcess, http: httpx.Client) -> None:
        self.acknowledged = 0
        self._collector = collector
        self._http = http

    def send(self) -> httpx.Response:
        first = self.acknowledged + 1
        content = body([uneven_steps(first, first + AT_ONCE - 1)])
        answer = self._http.post(
            f"{self._collector.address}/v1/logs", content=content, headers=HEADERS
        )
        if answer.status_code == 200:
            self.acknowledged += AT_ONCE
        return answer

    def ask(self, path: str) -> httpx.Response:
        return self._http.get(f"{self._collector.address}{path}")

    def is_failing(self) -> bool:
        return "headway_storage_failing 1.0" in self.ask("/metrics").text


def assert_heals(
    collector: CollectorProcess, sender: Sender, database: Path, make_room: Callable[[], None]
) -> None:
    while (answer := sender.send()).status_code == 200:
        assert sender.acknowledged < 2_000_000, "the disk never fills"
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert b"could not be stored" in answer.content
    ready = sender.ask("/readyz")
    assert ready.status_code == 503
    assert "commits fail" in ready.json()["error"]
    assert sender.is_failing()
    assert sender.ask("/healthz").status_code == 200
    assert sender.ask("/api/v1/runs/llama-1/report").status_code == 200
    make_room()
    # Without a request: behind a proxy that asks whether it is ready none would come.
    wait_until(lambda: sender.ask("/readyz").status_code == 200)
    assert not sender.is_failing()
    for _ in range(3):
        assert sender.send().status_code == 200
    report = sender.ask("/api/v1/runs/llama-1/report").json()
    assert report["steps"]["highest"] == sender.acknowledged
    assert report["steps"]["executed"] == sender.acknowledged
    collector.stop()
    assert numbers(stored(database))[PRODUCER] == list(range(1, sender.acknowledged + 1))


@pytest.mark.parametrize("size", [IN_THE_LOG, IN_THE_CHECKPOINT])
def test_a_full_file_system_stops_nothing_but_acknowledgements(
    small_disk: Callable[[int], Path], size: int
) -> None:
    database = small_disk(size) / "events.duckdb"

    def make_room() -> None:
        small_disk(300)

    with collector_process(database) as collector, httpx.Client(timeout=60) as http:
        assert_heals(collector, Sender(collector, http), database, make_room)


def test_an_injected_want_of_room_stops_nothing_but_acknowledgements(tmp_path: Path) -> None:
    """No file of the collector may grow beyond a limit, as on a disk with a quota."""
    database = tmp_path / "events.duckdb"
    with collector_process(database) as collector, httpx.Client(timeout=60) as http:
        pid = collector.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1_500_000, before[1]))

        def lift() -> None:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

        assert_heals(collector, Sender(collector, http), database, lift)


def test_a_start_on_a_full_disk_says_so_and_starts_when_there_is_room(
    small_disk: Callable[[int], Path],
) -> None:
    database = small_disk(1) / "events.duckdb"
    ballast = database.with_name("ballast")
    room = shutil.disk_usage(database.parent).free
    ballast.write_bytes(bytes(room))
    with collector_process(database) as collector:
        assert collector.address == ""
        status, errors = collector.stop()
    assert status == 2
    assert "No space left" in errors
    ballast.unlink()
    small_disk(50)
    with collector_process(database) as collector, httpx.Client(timeout=60) as http:
        assert Sender(collector, http).send().status_code == 200
        collector.stop()
