"""What launchers print, in the wording of every version; and that no line can break the reading."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.launcher_log import lines
from headway.launcher_log.lines import parse
from headway.launcher_log.statements import (
    Cancelled,
    Closing,
    Exhausted,
    FailureDetected,
    Nested,
    OomNoted,
    PhaseSaid,
    RankFailed,
    Restarting,
    Said,
    Stopping,
    TableExit,
    TableRank,
    TasksEnded,
    TimedOut,
)

SECOND = 10**9
ELASTIC = "torch.distributed.elastic"
TIMER = "[2026-11-29 14:38:34,789] [WARNING] [RankMonServer4711@node-a:3]"
CYCLE = "2026-11-29 14:38:34,790 [INFO] [node-a] [workload:?(?) infra:?(?)] profiling.py:90  "


SAID = [
    # torch 1.9 and 1.10
    (
        f"ERROR:{ELASTIC}.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 20277) "
        "of binary: python",
        RankFailed(exit_code=-9, local_rank=1, process_id=20277),
    ),
    (
        f"INFO:{ELASTIC}.agent.server.api:[default] Worker group FAILED. 3/3 attempts left; "
        "will restart worker group",
        Restarting(state="FAILED", remaining=2, limit=3),
    ),
    (
        f"INFO:{ELASTIC}.agent.server.api:[default] Stopping worker group",
        PhaseSaid(phase="stop_workers", state="began"),
    ),
    (
        "[INFO] 2021-09-14 14:02:15,547 api: [default] Rendezvous'ing worker group",
        PhaseSaid(phase="rendezvous", state="began"),
    ),
    (
        f"INFO:{ELASTIC}.agent.server.api:[default] Rendezvous complete for workers. Result:",
        PhaseSaid(phase="rendezvous", state="ended"),
    ),
    (
        f"INFO:{ELASTIC}.agent.server.api:[default] Starting worker group",
        PhaseSaid(phase="spawn", state="began"),
    ),
    ("  rank: 0 (local_rank: 0)", TableRank(rank=0, local_rank=0)),
    ("  exitcode: 1 (pid: 102930)", TableExit(exit_code=1, process_id=102930)),
    # torch 1.12
    (
        f"WARNING:{ELASTIC}.multiprocessing.api:Sending process 42 closing signal SIGTERM",
        Closing(process_id=42, signal="SIGTERM"),
    ),
    (
        f"WARNING:{ELASTIC}.multiprocessing.api:Unable to shutdown process 42 via "
        "Signals.SIGTERM, forcefully exitting via Signals.SIGKILL",
        Closing(process_id=42, signal="SIGKILL"),
    ),
    (
        f"WARNING:{ELASTIC}.agent.server.api:Received Signals.SIGINT death signal, shutting "
        "down workers",
        Stopping(signal="SIGINT"),
    ),
    (
        f"INFO:{ELASTIC}.agent.server.api:[default] Detected 1 new nodes from group_rank=0; "
        "will restart worker group",
        Restarting(state=None, remaining=None, limit=None),
    ),
    # torch 2.0
    (
        "[2024-03-20 20:31:29,269] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
        "(exitcode: 1) local_rank: 0 (pid: 102930) of binary: /opt/conda/bin/python",
        RankFailed(exit_code=1, local_rank=0, process_id=102930),
    ),
    ("  rank      : 2 (local_rank: 1)", TableRank(rank=2, local_rank=1)),
    ("  exitcode  : -9 (pid: 208585)", TableExit(exit_code=-9, process_id=208585)),
    ("  exitcode  : -6 (pid: 208586) (SIGABRT)", TableExit(exit_code=-6, process_id=208586)),
    # torch 2.4
    (
        "W0409 07:28:49.530000 1359 torch/distributed/elastic/agent/server/api.py:719] Received "
        "15 death signal, shutting down workers",
        Stopping(signal="SIGTERM"),
    ),
    (
        "E0813 08:21:22.980000 1245483 torch/distributed/elastic/multiprocessing/api.py:984] "
        "failed (exitcode: -6) local_rank: 6 (pid: 1246013) of binary: python3",
        RankFailed(exit_code=-6, local_rank=6, process_id=1246013),
    ),
    (
        "W0409 07:28:49.531000 1359 torch/distributed/elastic/multiprocessing/api.py:897] Sending "
        "process 1365 closing signal SIGTERM",
        Closing(process_id=1365, signal="SIGTERM"),
    ),
    # torch 2.13
    (
        "W1129 19:37:24.076000 11840 torch/distributed/elastic/multiprocessing/api.py:871] "
        "Closing process 77 via signal SIGINT",
        Closing(process_id=77, signal="SIGINT"),
    ),
    (
        "W1129 19:37:24.076000 11840 torch/distributed/elastic/multiprocessing/api.py:1047] "
        "Unable to shutdown process 77 via 15, forcefully exiting via 9",
        Closing(process_id=77, signal="SIGKILL"),
    ),
    # NVRx 0.4.1
    (
        "[2026-11-29 14:38:34,789] [ERROR] [ft_launcher4710@node-a] failed (exitcode: -9) "
        "local_rank: 1 (pid: 4712) of binary: /usr/bin/python3",
        RankFailed(exit_code=-9, local_rank=1, process_id=4712),
    ),
    (
        "[2026-11-29 14:38:34,789] [INFO] [ft_launcher4710@node-a] [default] Worker group "
        "UNHEALTHY. 1/5 attempts left; will restart worker group",
        Restarting(state="UNHEALTHY", remaining=0, limit=5),
    ),
    (
        "[2026-11-29 14:38:34,789] [INFO] [ft_launcher4710@node-a] 2/3 restart attempts left; "
        "restarting worker group...",
        Restarting(state=None, remaining=1, limit=3),
    ),
    (
        "[2026-11-29 14:38:34,789] [INFO] [ft_launcher4710@node-a] 0/3 restart attempts left. "
        "Exiting...",
        Exhausted(limit=3),
    ),
    (
        "[2026-11-29 14:38:34,789] [INFO] [ft_launcher4710@node-a] Stopping workers... "
        "Timeout = 30 sec.",
        PhaseSaid(phase="stop_workers", state="began"),
    ),
    (
        f"{TIMER} Did not get initial heartbeat. Waited 60.00 seconds.",
        TimedOut(
            kind="heartbeat_timeout",
            rank=3,
            waited=60 * SECOND,
            timeout=60 * SECOND,
            section=None,
            message="Did not get initial heartbeat. Waited 60.00 seconds.",
        ),
    ),
    (
        f"{TIMER} Section 'step' has been open for 6.22 seconds. Timeout is 6.00 seconds.",
        TimedOut(
            kind="section_timeout",
            rank=3,
            waited=6_220_000_000,
            timeout=6 * SECOND,
            section="step",
            message="Section 'step' has been open for 6.22 seconds. Timeout is 6.00 seconds.",
        ),
    ),
    (
        f"{TIMER} Was out of section for 20.50 seconds. Timeout is 20.00 seconds.",
        TimedOut(
            kind="section_timeout",
            rank=3,
            waited=20_500_000_000,
            timeout=20 * SECOND,
            section=None,
            message="Was out of section for 20.50 seconds. Timeout is 20.00 seconds.",
        ),
    ),
    (
        "[2026-11-29 14:38:34,789] [ALWAYS] [RankMonServer.Restarter] [NestedRestarter] "
        "name=[InJob] state=handling stage=starting",
        Nested(layer="InJob", state="handling", stage="starting"),
    ),
    (
        "[NestedRestarter] name=[InProcess] state=finalized",
        Nested(layer="InProcess", state="finalized", stage=None),
    ),
    # NVRx 0.6 and 0.7
    (
        "2026-11-29 14:38:34,789 [WARNING] [node-a] [workload:5(1) infra:0(0)] "
        "rank_monitor_server.py:402 [Cycle 2] Did not get subsequent heartbeat. Waited 15.00 "
        "seconds.",
        TimedOut(
            kind="heartbeat_timeout",
            rank=5,
            local_rank=1,
            waited=15 * SECOND,
            timeout=15 * SECOND,
            section=None,
            message="Did not get subsequent heartbeat. Waited 15.00 seconds.",
        ),
    ),
    (
        "2026-11-29 20:07:23,848 [WARNING] [vm] [workload:?(1) infra:?(?)] "
        "rank_monitor_server.py:497 [Cycle 1] Did not get subsequent heartbeat. Waited 3.00 "
        "seconds.",
        TimedOut(
            kind="heartbeat_timeout",
            rank=None,
            local_rank=1,
            waited=3 * SECOND,
            timeout=3 * SECOND,
            section=None,
            message="Did not get subsequent heartbeat. Waited 3.00 seconds.",
        ),
    ),
    (
        f"{CYCLE} - Cycle: 1 Event: failure_detected Node: node-a_pid_0 Rank: 0 Time: "
        "2026-11-29 14:38:34.789 UTC",
        FailureDetected(cycle=1, wall=1795963114_789_000_000),
    ),
    (
        f"{CYCLE} - Cycle: 1 Event: worker_start_completed Node: node-a_pid_0 Rank: None Time: "
        "2026-11-29 14:38:35.000 UTC",
        PhaseSaid(phase="spawn", state="ended", wall=1795963115 * SECOND, cycle=1),
    ),
    (
        f"{CYCLE} - Cycle: 0 Event: health_check_completed Node: n Rank: 0 Time: "
        "2026-11-29 14:38:35 UTC",
        PhaseSaid(phase="health_check", state="ended", wall=1795963115 * SECOND, cycle=0),
    ),
    (
        "Progress tracker detected no progress across restarts. No more restarts will be "
        "attempted.",
        Exhausted(limit=None),
    ),
    # Slurm
    (
        "srun: error: node-a: task 3: Exited with exit code 1",
        TasksEnded(node="node-a", tasks=(3,), exit_code=1),
    ),
    (
        "srun: error: node-a: tasks 0-2,7: Killed",
        TasksEnded(node="node-a", tasks=(0, 1, 2, 7), exit_code=-9),
    ),
    (
        "srun: error: node-a: tasks 3-4: Out Of Memory",
        TasksEnded(node="node-a", tasks=(3, 4), exit_code=-9, out_of_memory=True),
    ),
    (
        "srun: error: node-b: task 1: Segmentation fault (core dumped)",
        TasksEnded(node="node-b", tasks=(1,), exit_code=-11),
    ),
    (
        "slurmstepd: error: *** STEP 55595933.0 ON node-a CANCELLED AT 2025-01-10T15:27:25 DUE "
        "TO TIME LIMIT ***",
        Cancelled(reason="time_limit"),
    ),
    (
        "slurmstepd: error: *** JOB 3.0 ON node-a CANCELLED AT 2023-03-06T03:17:51 DUE TO NODE "
        "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        Cancelled(reason="node_failure"),
    ),
    (
        "48: Feb 16 11:46:12.517314 slurmstepd: error: Detected 6 oom_kill events in "
        "StepId=1742530.0. Some of the step tasks have been OOM Killed.",
        OomNoted(kills=6),
    ),
]


@pytest.mark.parametrize(("line", "said"), SAID)
def test_each_wording_is_understood(line: str, said: Said) -> None:
    assert parse(line) == said


@pytest.mark.parametrize(
    "line",
    [
        "",
        "2022-08-09 12:50:19,608 - mmdet - INFO - Epoch [1][1812/1950]	lr: 1.000e-04, loss: 0.7",
        "the rank failed (exitcode: none) local_rank: 0 (pid: 1)",
        "slurmstepd: error: *** JOB 524549 ON node-a CANCELLED AT 2024-10-09T23:25:32 ***",
        "slurmstepd: error: *** JOB 7 ON node-a CANCELLED AT 2024-10-09T23:25:32 DUE TO JOB "
        "REQUEUE ***",
        "srun: error: node-a: tasks 0-99999999: Killed",
        "srun: error: node-a: tasks 5-: Killed",
        "srun: error: node-a: tasks 5-6-7: Killed",
        "srun: error: Node failure on node-b",
        "  - Cycle: 1 Event: attribution_get_started Node: n Rank: 0 Time: 2026-11-29 14:38:35 UTC",
        "rank      : 2",
    ],
)
def test_other_lines_say_nothing(line: str) -> None:
    assert parse(line) is None


def test_a_time_that_cannot_be_is_none() -> None:
    line = (
        f"{CYCLE} - Cycle: 1 Event: failure_detected Node: n Rank: 0 Time: 2026-13-29 14:38:34 UTC"
    )
    assert parse(line) == FailureDetected(cycle=1, wall=None)


@given(st.text(max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    parse(text)


@pytest.mark.slow
@given(
    st.sampled_from([line for line, _ in SAID]),
    st.lists(st.tuples(st.integers(0, 250), st.text(max_size=5)), max_size=6),
)
def test_no_damaged_line_is_an_error(line: str, damage: list[tuple[int, str]]) -> None:
    for place, text in damage:
        line = line[:place] + text + line[place + len(text) :]
    parse(line)


@pytest.mark.parametrize(("line", "said"), SAID)
def test_what_says_something_is_found_among_the_bytes(line: str, said: Said) -> None:
    assert lines.MARKS.search(line.encode())


def test_a_line_of_any_length_is_read_in_the_same_time() -> None:
    # Were the reading not linear, a line of ten megabytes would never come back.
    for line, said in SAID:
        if line.startswith(" ") or isinstance(said, TableRank):
            continue
        assert parse(line + " " * 500 + line * 50_000) == said
    parse("".join(line[:40] for line, _ in SAID) * 50_000)


def test_a_published_restart_is_read_as_one() -> None:
    path = Path(__file__).parents[1] / "data" / "launcher" / "torchrun_sigkill_restart.log"
    said = [parse(line) for line in path.read_text().splitlines()]
    assert [item for item in said if item is not None] == [
        RankFailed(exit_code=-9, local_rank=1, process_id=20277),
        Restarting(state="FAILED", remaining=2, limit=3),  # "3/3 attempts left" counts this one
        PhaseSaid(phase="stop_workers", state="began"),
        PhaseSaid(phase="rendezvous", state="began"),
        PhaseSaid(phase="rendezvous", state="ended"),
        PhaseSaid(phase="spawn", state="began"),
    ]
