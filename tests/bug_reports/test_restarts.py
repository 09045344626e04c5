"""Restarts that other tools counted wrong, did not see or called by another name."""

from headway.incidents import incidents, stragglers
from headway.ledger import ledger
from reckoning import told
from timeline import SECOND, at, timeline


# A1: pytorch/pytorch#60910
def test_a_program_that_fails_at_startup_is_started_again_and_again():
    starts = "".join(
        f"""
        {900 * number}        attempt {name} launcher world=1
        {900 * number + 700}  exit code=1
        """
        for number, name in enumerate("ABCD")
    )
    found = told(starts, 3600)
    assert (found["attempts"], found["failed_starts"]) == (4, 4)
    assert found["restarts"] == {"launcher": {"startup_failure": 3}}
    assert found["categories"]["productive"] == 0
    assert [one["outcome"] for one in found["attempt_list"]] == ["no_step"] * 4
    # the loop counts attempts without progress, not restarts of any kind
    assert found["attempts_without_durable_step"] == 4
    assert [loop["attempts"] for loop in found["loops"]] == [4]


# A3: pytorch/pytorch#108158
def test_restart_counts_that_differ_between_nodes_make_one_attempt():
    found = told(
        """
        0       attempt A launcher world=8 rank=0..7
        0-10    steps 1-10 rank=0..7
        11      exit rank=5 signal=9
        12      exit rank=0..7 signal=15 by=launcher
        20      attempt B launcher world=8 rank=0..3 restarts=0
        20      attempt B launcher world=8 rank=4..7 restarts=1
        25-40   steps 11-25 rank=0..7
        """,
        40,
    )
    assert found["attempts"] == 2
    assert found["restarts"] == {"launcher": {"killed": 1}}


# A5: pytorch/pytorch#68014
def test_three_elastic_restarts_are_one_run_whose_steps_are_not_summed():
    found = told(
        """
        0        attempt A launcher world=1
        0-100    steps 1-100
        101      exit signal=9
        110      attempt B launcher world=1
        110-210  steps 1-100
        211      exit signal=9
        220      attempt C launcher world=1
        220-420  steps 1-200
        """,
        420,
    )
    assert found["attempts"] == 3
    assert found["steps"] == {
        "highest": 200,
        "executed": 400,
        "surviving": 200,
        "rework": 200,
        "target": None,
    }


# A6: NVIDIA-NeMo/Megatron-Bridge#5755
def test_restarts_inside_one_process_are_attempts_too():
    text = "0 attempt A0 in_process world=1 pid=7\n0-10 steps 1-10\n" + "".join(
        f"""
        {10 * n}.5  fault exception exception=ValueError
        {10 * n}.6  ended
        {10 * n + 1} attempt A{n} in_process world=1 pid=7
        {10 * n + 1} resumed 10
        """
        for n in range(1, 6)
    )
    found = told(text, 55)
    assert found["attempts"] == 6
    assert found["restarts"] == {"in_process": {"exception": 5}}
    assert found["attempts_without_durable_step"] == 6
    (one,) = found["incidents"]
    assert (one["state"], one["persistent"]["signature"]) == ("open", 5)


# A12: NVIDIA-NeMo/Speech#6734
def test_a_resumed_job_that_stops_at_once_is_no_success():
    found = told(
        """
        0      attempt A launcher world=1
        0-10   steps 1-10
        10     scheduled c10
        11     finalized c10
        12     exit code=0
        20     attempt B launcher world=1
        21     resumed 10 from=c10
        22     exit code=0
        """,
        30,
    )
    assert [one["outcome"] for one in found["attempt_list"]] == ["progressed", "no_step"]
    assert found["failed_starts"] == 1
    assert found["incidents"][0]["outcome"] == "open"


# A18: AI-Hypercomputer/maxtext#4124
def test_an_out_of_memory_that_a_program_calls_a_preemption_is_an_out_of_memory():
    found = told(
        """
        0      attempt A launcher world=2 rank=0..1
        0-10   steps 1-10 rank=0..1
        11     fault exception rank=0 exception=RuntimeError message="Job is preempted"
        11     stop preemption rank=0
        12     exit rank=1 code=137
        12.5   fault host_oom rank=1
        13     exit rank=0 code=1
        """,
        13,
    )
    (one,) = found["incidents"]
    assert (one["cause"], one["suspect_rank"]) == ("host_oom", 1)


# A23: Lightning-AI/pytorch-lightning#20542
def test_a_time_limit_is_no_crash_and_steps_after_the_signal_count():
    found = told(
        """
        0       attempt A scheduler world=1
        0-100   steps 1-100
        100     stop time_limit
        100-102 steps 101-102
        104     exit signal=9 by=scheduler
        """,
        110,
    )
    (one,) = found["incidents"]
    assert (one["cause"], one["suspect_rank"]) == ("time_limit", None)
    assert found["steps"]["highest"] == 102
    assert found["categories"]["productive"] == 102 * SECOND


# A24: Lightning-AI/pytorch-lightning#15022
def test_a_requeue_of_one_task_of_a_job_array_opens_no_attempt_on_the_others():
    first = "0 attempt 90_1 scheduler world=1\n0-100 steps 1-100"
    third = "0 attempt 90_3 scheduler world=1\n0-50 steps 1-50\n51 exit signal=9 by=scheduler\n"
    again = "60 attempt 90_3r scheduler world=1\n60-100 steps 51-90"
    runs = {
        name: ledger(timeline(text, name), at(100))
        for name, text in (("task-1", first), ("task-3", third + again))
    }
    assert [len(runs[name].attempts) for name in ("task-1", "task-3")] == [1, 2]
    assert incidents(runs["task-1"]) == []
    assert stragglers(runs["task-3"]) == []


def restarts(starts: list[float], last: float, saves: bool = False) -> str:
    """Return a run whose attempts begin at these minutes, each killed half a minute later."""
    text = ""
    for number, minute in enumerate(starts):
        begin, step = 60 * minute, 10 * number
        text += f"""
        {begin}       attempt A{number} launcher world=1
        {begin}-{begin + 20}  steps {step + 1}-{step + 10}
        """
        if saves:
            text += f"{begin + 21} scheduled c{step + 10}\n{begin + 22} finalized c{step + 10}\n"
        if number < len(starts) - 1:
            text += f"{begin + 30} exit signal=9\n"
    begin = 60 * starts[-1] + 20
    return text + f"{begin}-{60 * last} steps {10 * len(starts) + 1}-{10 * len(starts) + 100}\n"


# A29: kubernetes-sigs/kubernetes-mixin#348
def test_two_quick_restarts_are_no_loop_five_are_one_and_saved_progress_is_none():
    recovered = restarts([0, 1, 2], 60, saves=True)
    assert told(recovered, 3600)["loops"] == []
    (loop,) = told(restarts([0, 3, 6, 9, 12, 15], 20), 1200)["loops"]
    assert (loop["attempts"], loop["end"]) == (6, None)
    # Further and further apart, around the edge of any window: one loop, and not one per restart.
    flapping = restarts([0, 14, 29, 45, 62, 80], 90)
    assert [loop["attempts"] for loop in told(flapping, 5400)["loops"]] == [6]
    assert told(restarts([0, 14, 29, 45, 62, 80], 90, saves=True), 5400)["loops"] == []
