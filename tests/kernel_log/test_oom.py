"""The kernel's words for a kill for lack of memory, of several of its versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.kernel_log.oom import OomKill, oom_kill

SAID = [
    # Linux 3.10
    (
        "[680111.646286] Out of memory: Kill process 12345 (python) score 900 or sacrifice child",
        OomKill(process_id=12345, name="python", limited=False),
    ),
    (
        "Memory cgroup out of memory: Kill process 2000 (python) score 1000 or sacrifice child",
        OomKill(process_id=2000, name="python", limited=True),
    ),
    # Linux 4.19 and later
    (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=pod1,mems_allowed=0,"
        "oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c1,task=pt_main_thread,pid=2000,uid=0",
        OomKill(process_id=2000, name="pt_main_thread", limited=True, cgroup="/kubepods/pod1/c1"),
    ),
    (
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,"
        "task_memcg=/system.slice/slurmd,task=python3,pid=77,uid=1000",
        OomKill(process_id=77, name="python3", limited=False, cgroup="/system.slice/slurmd"),
    ),
    # Linux 5.x and 6.x
    (
        "Out of memory: Killed process 77 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, "
        "shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0",
        OomKill(process_id=77, name="python3", limited=False),
    ),
    (
        "Memory cgroup out of memory: Killed process 2000 (a (b) c) total-vm:9kB",
        OomKill(process_id=2000, name="a (b) c", limited=True),
    ),
    (
        "Out of memory (oom_kill_allocating_task): Killed process 5 (python3) total-vm:9kB",
        OomKill(process_id=5, name="python3", limited=False),
    ),
    (
        "oom_reaper: reaped process 2000 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        OomKill(process_id=2000, name="python"),
    ),
]


@pytest.mark.parametrize(("line", "kill"), SAID)
def test_each_wording_names_the_victim(line: str, kill: OomKill) -> None:
    assert oom_kill(line) == kill


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "NVRM: Xid (PCI:0000:10:1c): 63, pid=1850, Row Remapper",
        "oom_reaper: unable to reap pid:2000 (python)",
        "Out of memory: Killed process (python3)",
    ],
)
def test_other_lines_tell_of_no_kill(line: str) -> None:
    assert oom_kill(line) is None


@given(st.sampled_from([line for line, _ in SAID]), st.integers(0, 150), st.text(max_size=5))
def test_no_damaged_line_is_an_error(line: str, place: int, text: str) -> None:
    oom_kill(line[:place] + text + line[place + len(text) :])


def test_a_line_of_any_length_is_read_in_the_same_time() -> None:
    for line, kill in SAID:
        assert oom_kill(line + " " * 100 + line * 50_000) == kill
