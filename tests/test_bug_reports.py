"""Public bug reports about other tools, as runs that Headway must read right.

Each test is named after the symptom; the comment names the report. Reports about log formats are
told in events here. The reports were read as stored public threads; the tests are ours.
"""

from typing import Any

from headway.incidents import incidents, stragglers
from headway.ledger import Ledger, Timeline, ledger
from headway.report import report
from timeline import SECOND, at, timeline


def read(text: str, until: float) -> Ledger:
    return ledger(timeline(text), at(until))


def told(text: str, until: float) -> dict[str, Any]:
    """Return the report of a timeline."""
    return report(read(text, until))


def seconds(amounts: dict[str, int]) -> dict[str, float]:
    return {name: amount / SECOND for name, amount in amounts.items() if amount}


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


# A2: pytorch/pytorch#76287
def test_an_agent_that_logs_for_eight_hours_after_a_node_crashed_hides_no_hang():
    text = """
    0        attempt A launcher world=8 rank=0..7
    0-1000   steps 1-1000 rank=0..7
    """ + "\n".join(f"{1000 + 600 * n} heartbeat rank=0..3 open=step" for n in range(1, 49))
    found = told(text, 29800)
    (one,) = found["incidents"]
    assert (one["cause"], one["state"], one["suspect_node"]) == ("hang", "open", "node-b")
    assert one["opened"] == at(1000)
    assert seconds(found["categories"]) == {"productive": 1000, "stalled": 28800}


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


# A4: pytorch/pytorch#146371
def test_a_rank_that_exits_while_the_others_keep_running_is_named():
    found = told(
        """
        0      attempt A launcher world=4 rank=0..3
        0-100  steps 1-100 rank=0..3
        101    exit rank=1 code=1
        100-400 steps 101-400 rank=0
        100-400 steps 101-400 rank=2..3
        """,
        400,
    )
    (one,) = found["incidents"]
    assert (one["suspect_rank"], one["state"]) == (1, "open")
    assert one["opened"] == at(101)
    assert found["categories"]["productive"] == 400 * SECOND


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


# A7: hiyouga/LlamaFactory#2902
def test_a_collective_timeout_is_dated_by_how_long_the_watchdog_waited():
    words = '"WorkNCCL(SeqNum={}, OpType=ALLREDUCE) ran for 600000 ms"'
    found = told(
        f"""
        0      attempt A launcher world=2 rank=0..1
        0-130  steps 1-13 rank=0..1
        130    phase step rank=0..1
        740    fault collective_timeout rank=0 ran_for=600 message={words.format(1516)}
        740.5  fault collective_timeout rank=1 ran_for=600 message={words.format(1517)}
        745    exit rank=0..1 signal=6
        """,
        745,
    )
    (one,) = found["incidents"]
    assert one["cause"] == "collective_timeout"
    assert one["opened"] == at(140)
    assert (
        "ranks out of step: rank 0 at collective 1516, rank 1 at collective 1517"
        in (one["evidence"])
    )
    assert (one["suspect_rank"], one["suspect_rule"]) == (
        0,
        "at collective 1516 while a peer is at 1517",
    )
    assert found["steps"]["highest"] == 13


# A8: meta-pytorch/torchtune#2093
def test_a_timeout_while_saving_is_of_that_phase_and_the_save_is_not_durable():
    found = told(
        """
        0      attempt A launcher world=2 rank=0..1
        0-200  steps 1-200 rank=0..1
        100    scheduled c100
        110    finalized c100
        200    phase checkpoint_save rank=0..1
        201    scheduled c200
        800    fault collective_timeout rank=0..1 ran_for=600
        801    exit rank=0..1 signal=6
        810    attempt B launcher world=2 rank=0..1
        820    resumed 100 from=c100 rank=0..1
        820-1000 steps 101-280 rank=0..1
        """,
        1000,
    )
    (one,) = found["incidents"]
    assert one["cause"] == "collective_timeout"
    assert {item["phase"] for item in one["observations"] if item["kind"] != "exit"} == {
        "checkpoint_save"
    }
    assert one["rollback_steps"] == 100
    states = {save["checkpoint"]: save["state"] for save in found["checkpoints"]}
    assert states == {"c100": "verified", "c200": "scheduled"}


# A9: EleutherAI/gpt-neox#308
def test_a_loader_that_was_not_advanced_replays_data_and_that_is_told():
    found = told(
        """
        0      attempt A launcher world=1
        0-100  steps 1-100 samples=8
        100    scheduled c100
        101    finalized c100
        102    exit signal=15 by=scheduler
        110    attempt B launcher world=1
        112    resumed 100 from=c100
        112-150 steps 101-138 samples=2 seen=200
        """,
        150,
    )
    valid = found["incidents"][0]["recovery_valid"]
    assert valid["valid"] == "no"
    assert (
        "replayed data: 402 samples consumed after step 101, but 800 after step 100"
        in (valid["reason"])
    )


# A11: Red-Hat-AI-Innovation-Team/mini_trainer#79
def test_the_checkpointed_step_done_again_is_one_step_of_rework():
    found = told(
        """
        0      attempt A launcher world=1
        0-10   steps 1-10
        10     scheduled c10
        11     finalized c10
        12     exit signal=9
        20     attempt B launcher world=1
        21     resumed 10 from=c10
        21-41  steps 10-29
        """,
        41,
    )
    assert found["steps"]["rework"] == 1
    assert found["rollbacks"][0]["steps"] == 1


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


# A13: intel/ipex-llm#271
def test_an_iteration_seen_before_and_after_a_resume_is_one_step_of_progress():
    found = told(
        """
        0        attempt A launcher world=1
        0        resumed 17147
        0-2      steps 17148-17149
        3        exit signal=9
        10       attempt B launcher world=1
        11       resumed 17148
        11-12    steps 17149
        """,
        12,
    )
    assert found["steps"]["highest"] == 17149
    assert (found["steps"]["executed"], found["steps"]["surviving"]) == (3, 2)


AGAIN = """
0        attempt A launcher world=1
0-212    steps 1-212
200      scheduled c200
201      finalized c200
213      exit signal=9
220      attempt B launcher world=1
221      resumed 200 from=c200
221-321  steps 201-300
"""


# A14: allenai/tango#152
def test_both_passes_of_repeated_steps_are_kept_and_the_later_survives():
    book = read(AGAIN, 321)
    assert (book.steps.executed, book.steps.rework, book.steps.surviving) == (312, 12, 300)
    assert book.categories["rolled_back"] == 12 * SECOND
    assert book.problems == []


# A15: wandb/wandb#4482
def test_no_counter_falls_when_steps_repeat_after_a_resume():
    events = timeline(AGAIN)
    kept = Timeline("run")
    kept.add(events)
    highest = executed = 0
    for until in range(1, 322, 10):
        counts = kept.ledger(at(until)).steps
        assert counts.highest >= highest
        assert counts.executed >= executed
        highest, executed = counts.highest, counts.executed
        assert counts.surviving <= counts.highest
    assert (highest, executed) == (300, 312)


# A16: huggingface/transformers#41407
def test_the_rate_after_a_resume_is_that_of_its_own_attempt():
    book = read(AGAIN, 321)
    before, after = (account.steps for account in book.book.accounts)
    assert before is not None
    assert after is not None
    assert after.pace.step is not None
    assert before.pace.step is not None
    assert 0.5 < after.pace.step / before.pace.step < 2


# A17: apple/axlearn#783
def test_restore_and_compilation_are_in_one_category_each_and_all_sum_to_the_whole():
    book = read(
        """
        0       attempt A launcher world=1
        0-60    phase startup
        5-15    phase import
        10-40   phase checkpoint_load
        20-30   phase custom:decrypt
        40-60   phase warmup
        60-100  steps 1-40
        """,
        100,
    )
    assert sum(book.categories.values()) == book.elapsed
    assert seconds(book.categories) == {
        "productive": 40,
        "checkpoint_load": 20,
        "custom:decrypt": 10,
        "startup": 30,
    }


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


# A19: huggingface/transformers#35782
def test_an_incomplete_newest_checkpoint_counts_for_nothing():
    text = """
    0      attempt A launcher world=1
    0-250  steps 1-250
    100    scheduled c100
    105    finalized c100
    200    scheduled c200
    251    exit signal=9
    """
    before = told(text, 251)
    assert (before["checkpoint"]["checkpoint"], before["steps_at_risk"]) == ("c100", 150)
    after = told(
        text + "260 attempt B launcher world=1\n261 resumed 100 from=c100\n261-300 steps 101-139",
        300,
    )
    assert after["rollbacks"][0]["steps"] == 150


# A20: NVIDIA-NeMo/Automodel#3261
def test_a_restore_that_hangs_is_a_recovery_that_is_not_over():
    text = """
    0      attempt A launcher world=2 rank=0..1
    0-100  steps 1-100 rank=0..1
    100    phase checkpoint_save rank=0..1
    101    exit rank=1 signal=9
    102    exit rank=0 signal=15 by=launcher
    110    attempt B launcher world=2 rank=0..1
    120    phase checkpoint_load rank=0..1
    {beat} heartbeat rank=0..1 open=checkpoint_load
    """
    early, late = told(text.format(beat=130), 140), told(text.format(beat=7000), 7000)
    for found in (early, late):
        (one,) = found["incidents"]
        assert (one["state"], one["recovered"], one["rollback_steps"]) == ("open", None, None)
        assert one["open_phase"] == {"phase": "checkpoint_load", "since": at(120), "rank": 0}
    assert late["incidents"][0]["phases"]["load"] == 6880 * SECOND
    assert late["recovery"]["all"]["recovered_ns"]["count"] == 0


# A21: tdrussell/diffusion-pipe#159
def test_after_a_power_loss_the_empty_newest_checkpoints_are_revoked():
    found = told(
        """
        0      attempt A launcher world=1
        0-450  steps 1-450
        100    scheduled c100
        101    finalized c100
        200    scheduled c200
        201    finalized c200
        300    scheduled c300
        301    finalized c300
        400    scheduled c400
        401    finalized c400
        1000   attempt B launcher world=1
        1010   load_failed c400
        1011   load_failed c300
        1020   resumed 200 from=c200
        1020-1100 steps 201-280
        """,
        1100,
    )
    (one,) = found["incidents"]
    assert one["rollback_steps"] == 250
    assert found["checkpoint"]["checkpoint"] == "c200"
    states = {save["checkpoint"]: save["state"] for save in found["checkpoints"]}
    assert (states["c300"], states["c400"]) == ("revoked", "revoked")
    assert one["warnings"] == ["resumed at step 200, below checkpoint 'c400' of step 400"]


# A22: pytorch/torchtitan#1311
def test_a_checkpoint_that_is_not_found_is_a_restart_from_scratch_and_warns():
    found = told(
        """
        0      attempt A launcher world=1
        0-200  steps 1-200
        100    scheduled c100
        101    finalized c100
        201    exit signal=9
        210    attempt B launcher world=1
        215    resumed 0 requested=c100
        215-300 steps 1-85
        """,
        300,
    )
    (one,) = found["incidents"]
    assert one["rollback_steps"] == 200
    assert one["warnings"][0] == "restarted from scratch although 'c100' was asked for"


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


# Where the others of part A stand: A25 and A27, about the files of Prometheus's clients, of which
# the spools are our kind, in tests/exporter/test_agent.py and test_node_metrics.py; A26 there; A28
# in tests/exporter/test_node_counts.py and tests/collector/test_api.py; A30 in
# tests/exporter/test_recorder_processes.py and tests/launcher/test_run.py, since a recorder has no
# network and only `headway run` could wait for a collector; A31 in
# tests/collector/test_recovery.py; A32 in tests/storage/test_killed_writer.py. What A28 and A29
# ask of rules is in tests/alerts.
