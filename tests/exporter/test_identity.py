"""Who a process is, from what launchers, schedulers and the kernel say about it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headway.exporter import identity
from headway.exporter.identity import Ranks
from recording import environment


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Ranks(rank=0, local_rank=None, world_size=None)),
        (
            {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_PROCID": "0"},
            Ranks(rank=5, local_rank=1, world_size=8),
        ),
        (
            {"SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_NTASKS": "4"},
            Ranks(rank=3, local_rank=3, world_size=4),
        ),
        ({"RANK": "first", "SLURM_PROCID": ""}, Ranks(rank=0, local_rank=None, world_size=None)),
    ],
)
def test_ranks_come_from_the_launcher_else_from_slurm(
    variables: dict[str, str], expected: Ranks
) -> None:
    assert identity.ranks(variables) == expected


def test_torchelastic_counts_are_the_round_only_where_nvrx_names_no_cycle(tmp_path: Path) -> None:
    variables = {"TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_RESTART_COUNT": "2"}
    launch = identity.launch(variables)
    assert (launch.layer, launch.launcher_round, launch.torchelastic_restarts) == (
        "launcher",
        2,
        2,
    )
    cycle = tmp_path / "cycle_info.current"
    variables["NVRX_CURRENT_CYCLE_INFO"] = str(cycle)
    assert identity.launch(variables).launcher_round == 2
    cycle.write_text("not JSON")
    assert identity.launch(variables).launcher_round == 2
    cycle.write_text(json.dumps({"cycle_number": 5}))
    launch = identity.launch(variables)
    assert (launch.launcher_round, launch.torchelastic_restarts) == (5, 2)


@pytest.mark.parametrize(
    ("variables", "scheduler"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, "slurm"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "SLURM_JOB_ID": "7"}, "slurm"),
    ],
)
def test_the_scheduler_is_the_one_whose_variables_are_set(
    variables: dict[str, str], scheduler: str | None
) -> None:
    assert identity.launch(variables).scheduler == scheduler


@pytest.mark.parametrize("visible", [None, "", "2,3"])
def test_visible_devices_are_told_as_they_are(visible: str | None) -> None:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert identity.launch(variables).visible_devices == visible


def test_a_slurm_job_is_its_array_task() -> None:
    launch = identity.launch(
        {
            "SLURM_JOB_ID": "99",
            "SLURM_ARRAY_JOB_ID": "90",
            "SLURM_ARRAY_TASK_ID": "4",
            "SLURM_RESTART_COUNT": "1",
        }
    )
    assert (launch.layer, launch.scheduler_job, launch.slurm_restarts) == ("scheduler", "90_4", 1)


def test_the_run_id_is_the_first_that_is_known(tmp_path: Path) -> None:
    def run_id(variables: dict[str, str], **given: Any) -> tuple[str, bool]:
        options = {"configured": None, "checkpoints": None, **given}
        return identity.run_id(launch=identity.launch(variables), **options)

    slurm = {"SLURM_JOB_ID": "99"}
    assert run_id(slurm, configured="mine", checkpoints=tmp_path) == ("mine", False)
    stored, new = run_id(slurm, checkpoints=tmp_path / "checkpoints")
    assert new
    assert stored != "99"
    assert run_id(slurm) == ("99", False)
    assert run_id({"TORCHELASTIC_RUN_ID": "job"}) == ("job", False)
    made, new = run_id({"TORCHELASTIC_RUN_ID": "none"})
    assert new
    assert made == run_id({"TORCHELASTIC_RUN_ID": "none"})[0]


ALONE = identity.launch({})


def test_the_run_id_beside_the_checkpoints_lasts(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "checkpoints"
    first, new = identity.run_id(None, folder, ALONE)
    assert new
    assert identity.run_id(None, folder, ALONE) == (first, False)
    assert [path.name for path in folder.iterdir()] == [identity.RUN_ID_FILE]
    (folder / identity.RUN_ID_FILE).write_text("\n")
    with pytest.raises(ValueError, match="is empty; delete it or write the run's id"):
        identity.run_id(None, folder, ALONE)


def test_ranks_agree_on_the_run_id_where_files_cannot_have_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    first, new = identity.run_id(None, tmp_path, ALONE)
    assert new
    assert first == identity.run_id(None, None, ALONE)[0]  # what any rank would write
    assert identity.run_id(None, tmp_path, identity.launch({"SLURM_JOB_ID": "9"})) == (first, False)
    assert [path.name for path in tmp_path.iterdir()] == [identity.RUN_ID_FILE]


@pytest.mark.slow
def test_ranks_that_start_together_agree_on_the_run_id(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom headway.exporter import identity\n"
        "sys.stdin.read()\n"
        "print(*identity.run_id(None, Path(sys.argv[1]), identity.launch({})))\n"
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "checkpoints")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        )
        for _ in range(4)
    ]
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.close()
        rank.stdin = None
    answers = [rank.communicate(timeout=60)[0].decode().split() for rank in ranks]
    assert len({run for run, _ in answers}) == 1
    assert sum(new == "True" for _, new in answers) == 1


def test_attempts_differ_by_each_of_their_parts() -> None:
    base = identity.attempt_id("run", "job", 1, 1)
    assert len(base) == 16
    others = {
        identity.attempt_id("run2", "job", 1, 1),
        identity.attempt_id("run", "job2", 1, 1),
        identity.attempt_id("run", "job", 2, 1),
        identity.attempt_id("run", "job", 1, 2),
    }
    assert len(others | {base}) == 5
    assert identity.attempt_id("run", None, None, None) == identity.attempt_id("run", None, 0, 0)


def test_launches_by_hand_differ_by_launcher_and_ranks_of_one_agree() -> None:
    one_node = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": "0"}
    assert identity.launch(one_node).group == identity.launch({**one_node, "RANK": "1"}).group
    nodes = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert identity.launch(nodes).group != identity.launch({**nodes, "MASTER_PORT": "2"}).group


def groups_of_two_processes(variables: dict[str, str], options: str = "") -> set[str]:
    """Return the groups of two processes that this one starts one after the other."""
    program = (
        "from headway.exporter import identity\n"
        f"print(identity.launch({variables!r}{options}).group)\n"
    )
    return {
        subprocess.check_output([sys.executable, "-c", program], env=environment()).decode()
        for _ in range(2)
    }


@pytest.mark.slow
def test_two_programs_started_by_hand_from_one_shell_are_two_launches() -> None:
    assert len(groups_of_two_processes({})) == 2
    assert len(groups_of_two_processes({"RANK": "0", "WORLD_SIZE": "1"})) == 2


@pytest.mark.slow
def test_ranks_that_share_a_parent_are_one_launch() -> None:
    assert len(groups_of_two_processes({"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"})) == 1
    assert len(groups_of_two_processes({"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "1"})) == 1
    assert len(groups_of_two_processes({}, ", of_many=True")) == 1


def test_ranks_of_several_nodes_agree_though_nobody_counts_those_of_a_node() -> None:
    pod = {"WORLD_SIZE": "2", "MASTER_ADDR": "llama-master-0", "MASTER_PORT": "23456"}
    assert identity.launch(pod).group == "/llama-master-0/23456"


def test_each_training_of_a_program_that_trains_again_is_a_launch() -> None:
    assert identity.launch({}).group != identity.launch({}, earlier=1).group


def test_the_anchor_is_taken_where_nobody_interrupted_the_two_clocks() -> None:
    # The process is put aside between the clocks, but not in the second pair of readings.
    monotonic = iter([0, 90, 100, 102, 200, 260])
    wall = iter([1080, 1101, 1210])
    anchor = identity.clock_anchor(monotonic.__next__, wall.__next__, samples=3)
    assert anchor == 1000


def test_a_process_started_before_now_and_after_its_parent() -> None:
    before = time.monotonic_ns()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = identity.process_started(child.pid)
        own = identity.process_started()
        assert child.stdin is not None
        child.stdin.close()
    assert started is not None
    assert own is not None
    assert own < before - 10_000_000 < started <= time.monotonic_ns()


def test_what_the_kernel_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert identity.process_started(1, tmp_path) is None
    assert identity.boot_id(tmp_path / "boot_id") is None
    stat = tmp_path / "1" / "stat"
    stat.parent.mkdir()
    stat.write_text("1 (a) b) S 1")
    assert identity.process_started(1, tmp_path) is None
    stat.write_text("1 (a) b) S " + " ".join("0" for _ in range(30)))
    started = identity.process_started(1, tmp_path)  # with the boot, as far as clocks agree
    assert started is not None
    assert started < 1_000_000


def test_the_node_is_named_as_the_scheduler_names_it() -> None:
    assert identity.node({"SLURMD_NODENAME": "n7", "NODE_NAME": "k1"}) == "n7"
    assert identity.node({"NODE_NAME": "k1"}) == "k1"
    assert identity.node({}) == os.uname().nodename
