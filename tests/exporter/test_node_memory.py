"""What is recorded of a node's memory, read from files as the kernel writes them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headway.events import Event, NodeMemory
from headway.exporter.node.memory import NodeMemoryWatcher, read

SECOND = 10**9
TOTAL = 1_000_000
"""KiB installed."""


class Kept:
    """Keeps what a watcher records."""

    def __init__(self) -> None:
        self.events: list[tuple[int | None, NodeMemory]] = []

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        assert isinstance(event, NodeMemory)
        self.events.append((monotonic, event))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "pressure").mkdir()
    return tmp_path


def node(proc: Path, available: int, *, avg10: float = 0.0, kills: int = 0) -> None:
    """Write what a kernel 5.15 would say."""
    (proc / "meminfo").write_text(
        f"MemTotal:        {TOTAL} kB\nMemFree:          12345 kB\n"
        f"MemAvailable:    {available} kB\nHugePages_Total:       0\n"
    )
    (proc / "pressure" / "memory").write_text(
        f"some avg10={avg10:.2f} avg60=0.10 avg300=0.02 total=2994153\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1062610\n"
    )
    (proc / "vmstat").write_text(f"nr_free_pages 1\noom_kill {kills}\nnuma_hit 7\n")


@pytest.fixture
def watch(proc: Path) -> Callable[[], Kept]:
    """Return what watches one second further with each call."""
    kept, clock = Kept(), iter(range(0, 10_000 * SECOND, SECOND))
    watcher = NodeMemoryWatcher(kept, proc=proc, monotonic=lambda: next(clock))

    def step() -> Kept:
        watcher.poll()
        return kept

    return step


def test_a_node_says_what_is_available_how_much_it_waits_and_how_often_it_killed(
    proc: Path,
) -> None:
    node(proc, 500_000, avg10=12.5, kills=3)
    assert read(proc) == NodeMemory(
        available=500_000 * 1024, total=TOTAL * 1024, pressure=0.125, oom_kills=3
    )


def test_what_an_older_kernel_lacks_is_unknown(proc: Path) -> None:
    node(proc, 500_000)
    (proc / "pressure" / "memory").unlink()
    (proc / "vmstat").write_text("nr_free_pages 1\n")
    assert read(proc) == NodeMemory(available=500_000 * 1024, total=TOTAL * 1024)


def test_without_a_word_about_available_memory_nothing_is_recorded(
    proc: Path, watch: Callable[[], Kept]
) -> None:
    (proc / "meminfo").write_text("MemTotal: 5 kB\n")
    assert watch().events == []


def test_small_changes_are_not_worth_a_word_until_they_add_up(
    proc: Path, watch: Callable[[], Kept]
) -> None:
    for available in (500_000, 495_000, 490_000, 485_000, 479_000, 480_000):
        node(proc, available)
        watch()
    seen = [(time, event.available // 1024) for time, event in watch().events]
    assert seen == [(0, 500_000), (4 * SECOND, 479_000)]


@pytest.mark.parametrize("change", [{"avg10": 5.0}, {"kills": 1}])
def test_pressure_and_a_kill_are_told_at_once(
    proc: Path, watch: Callable[[], Kept], change: dict[str, int]
) -> None:
    node(proc, 500_000)
    watch()
    node(proc, 500_000, **change)
    assert [time for time, _ in watch().events] == [0, SECOND]
    assert len(watch().events) == 2


def test_a_quiet_node_speaks_every_five_minutes(proc: Path, watch: Callable[[], Kept]) -> None:
    node(proc, 500_000)
    for _ in range(601):
        kept = watch()
    assert [time for time, _ in kept.events] == [0, 300 * SECOND, 600 * SECOND]


def test_this_node_can_be_read() -> None:
    seen = read(Path("/proc"))
    assert seen is not None
    assert seen.total is not None
    assert 0 < seen.available <= seen.total
