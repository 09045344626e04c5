"""Evidence of kills for lack of memory, from control groups of both versions and the kernel."""

from pathlib import Path

import pytest

from headway.exporter.oom import OomEvidence, kill_counter, kills
from headway.kernel_log.oom import OomKill

SECOND = 10**9
V2 = "low 0\nhigh 3\nmax 8\noom 2\noom_kill {count}\noom_group_kill 0\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n"


def count(path: Path, content: str, value: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content.format(count=value))
    return path


def process(proc: Path, groups: str) -> None:
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cgroup").write_text(groups)


@pytest.mark.parametrize(
    ("groups", "where", "content"),
    [
        ("0::/job/step\n", "job/step/memory.events", V2),
        ("0::/job/gone\n", "job/memory.events", V2),  # the step's own group is gone
        ("0::/\n", "memory.events", V2),  # a container sees its group as the root
        ("0::/../../other\n", "memory.events", V2),
        ("9:name=systemd:/\n4:cpu,memory:/job\n0::/\n", "memory/job/memory.oom_control", V1),
        ("4:memory:/docker/abc\n", "memory/memory.oom_control", V1),  # not mounted from the host
    ],
)
def test_the_innermost_group_that_counts_is_found(
    tmp_path: Path, groups: str, where: str, content: str
) -> None:
    process(tmp_path / "proc", groups)
    path = count(tmp_path / "cgroup" / where, content, 4)

    found = kill_counter(7, tmp_path / "proc", tmp_path / "cgroup")

    assert found == path
    assert kills(path) == 4


@pytest.mark.parametrize("groups", ["", "nonsense\n", "0::/job\n", "4:memory:/job\n"])
def test_a_process_without_a_counter_has_none(tmp_path: Path, groups: str) -> None:
    process(tmp_path / "proc", groups)
    assert kill_counter(7, tmp_path / "proc", tmp_path / "cgroup") is None
    assert kill_counter(8, tmp_path / "proc", tmp_path / "cgroup") is None


def test_old_kernels_that_do_not_count_have_no_counter(tmp_path: Path) -> None:
    process(tmp_path / "proc", "4:memory:/job\n")
    path = tmp_path / "cgroup" / "memory" / "job" / "memory.oom_control"
    count(path, "oom_kill_disable 0\nunder_oom 0\n", 0)
    assert kill_counter(7, tmp_path / "proc", tmp_path / "cgroup") is None


def test_a_rise_explains_one_death_near_it(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 1)
    evidence = OomEvidence()
    evidence.watch(7, path)
    assert not evidence.explains(7, path, 10 * SECOND)

    count(path, V2, 2)
    evidence.look(10 * SECOND)

    assert not evidence.explains(6, path, 100 * SECOND)
    assert evidence.explains(7, path, 11 * SECOND)
    assert not evidence.explains(8, path, 11 * SECOND)


def test_two_kills_at_once_explain_two_deaths(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    evidence.watch(7, path)
    count(path, V2, 2)
    evidence.look(10 * SECOND)

    assert [evidence.explains(pid, path, 10 * SECOND) for pid in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("first", [7, 8])
def test_of_two_deaths_at_once_a_counter_that_rose_by_one_explains_none(
    tmp_path: Path, first: int
) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    for process_id in (7, 8):
        evidence.watch(process_id, path)
    evidence.look(9 * SECOND)
    for process_id in (7, 8):
        evidence.died(process_id, path, 10 * SECOND + process_id)
    count(path, V2, 1)
    evidence.look(11 * SECOND)
    asked = (first, 15 - first)
    assert [evidence.explains(pid, path, 10 * SECOND + pid) for pid in asked] == [False, False]


def test_a_death_before_the_last_look_that_saw_no_kill_is_no_rival(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    for process_id in (7, 8):
        evidence.watch(process_id, path)
    evidence.died(7, path, 9 * SECOND)
    evidence.look(10 * SECOND)
    evidence.died(8, path, 10 * SECOND + 1)
    count(path, V2, 1)
    evidence.look(11 * SECOND)
    assert not evidence.explains(7, path, 9 * SECOND)
    assert evidence.explains(8, path, 10 * SECOND + 1)


def test_of_two_deaths_at_once_the_one_that_the_kernel_names_leaves_the_other_unknown(
    tmp_path: Path,
) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    for process_id in (7, 8):
        evidence.watch(process_id, path)
        evidence.died(process_id, path, 10 * SECOND)
    count(path, V2, 1)
    evidence.look(10 * SECOND)
    evidence.logged(OomKill(process_id=8, name="python3"), 10 * SECOND)
    assert not evidence.explains(7, path, 10 * SECOND)
    assert evidence.explains(8, path, 10 * SECOND)


def test_what_was_counted_before_explains_nothing(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 5)
    evidence = OomEvidence()
    evidence.watch(7, path)
    evidence.look(SECOND)
    assert not evidence.explains(7, path, SECOND)


def test_the_kernel_names_the_victim_and_nobody_else(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    evidence.watch(7, path)
    count(path, V2, 1)
    evidence.look(10 * SECOND)
    evidence.watch(8, path)
    evidence.logged(OomKill(process_id=7, name="python3"), 10 * SECOND)

    assert not evidence.explains(8, None, 10 * SECOND)
    assert evidence.explains(7, path, 10 * SECOND)
    assert not evidence.explains(8, path, 10 * SECOND), "the counter's rise was that of process 7"


def test_a_process_id_of_long_ago_is_another_process() -> None:
    evidence = OomEvidence()
    evidence.logged(OomKill(process_id=7, name="python3"), 10 * SECOND)
    assert not evidence.explains(7, None, 1000 * SECOND)


def test_a_counter_that_went_away_is_no_error(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    evidence.watch(7, path)
    path.unlink()
    evidence.look(SECOND)
    assert not evidence.explains(7, path, SECOND)


def test_a_victim_that_is_no_rank_takes_nothing_from_the_counter(tmp_path: Path) -> None:
    path = count(tmp_path / "memory.events", V2, 0)
    evidence = OomEvidence()
    evidence.watch(7, path)
    evidence.logged(OomKill(process_id=31007, name="python3"), 10 * SECOND)
    count(path, V2, 1)
    evidence.look(10 * SECOND)
    assert evidence.explains(7, path, 10 * SECOND), "in a container the kernel's ids are others"
