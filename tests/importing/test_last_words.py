"""What processes, watchdogs and kernels say last, in the words of many programs."""

import pytest

from imported import one_run, utc, written


def megatron(first, last):
    return "".join(
        f" [2026-01-01 00:00:{step:02}] iteration {step:8d}/    1000 | consumed samples: "
        f"{step * 16:12d} | elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(first, last + 1)
    )


XID = "kernel: NVRM: Xid (PCI:0000:1b:00): {}, pid=1234, name=python, {}\n"
WORDS = {
    "a shell": ("/bin/bash: line 1: 12345 Killed                  python train.py\n", "killed"),
    "a script": ("./run.sh: line 31:  4242 Aborted                 (core dumped) python t.py\n",)
    * 1
    + ("killed",),
    "a shell by itself": ("Segmentation fault (core dumped)\n", "killed"),
    "mpirun": (
        "mpirun noticed that process rank 3 with PID 0 on node a exited on signal 9 (Killed).\n",
        "killed",
    ),
    "DeepSpeed's launcher": (
        "[2026-01-01 00:00:07,001] [ERROR] [launch.py:325:sigkill_handler] ['python', 't.py'] "
        "exits with return code = -9\n",
        "killed",
    ),
    "DeepSpeed's launcher of a failure": (
        "[2026-01-01 00:00:07,001] [ERROR] [launch.py:325:sigkill_handler] ['python', 't.py'] "
        "exits with return code = 1\n",
        "exception",
    ),
    "faulthandler": ("[rank3]: Fatal Python error: Segmentation fault\n", "killed"),
    "NCCL's monitor": (
        "[rank2]:[E0101 00:20:06.1 ProcessGroupNCCL.cpp:1375] [PG 0 (default_pg) Rank 2] Heartbeat "
        "monitor timed out! Process will be terminated after dumping debug info.\n",
        "hang",
    ),
    "NCCL's monitor of torch 2.6": (
        "[rank2]:[F0101 00:20:06.1 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank "
        "2] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL "
        "watchdog hang.\n",
        "hang",
    ),
    "the driver": (
        f"Jan  1 00:00:06 node-a {XID.format(79, 'GPU has fallen off the bus.')}",
        "gpu_fault",
    ),
    "the driver, dated by dmesg": (
        f"[Thu Jan  1 00:00:06 2026] {XID.format(95, 'Uncontained')[8:]}",
        "gpu_fault",
    ),
    "the kernel": (
        "Jan  1 00:00:06 node-a kernel: Memory cgroup out of memory: Killed process 42 (python) "
        "total-vm:1kB, anon-rss:1kB\n",
        "host_oom",
    ),
}


@pytest.mark.parametrize(("words", "cause"), WORDS.values(), ids=WORDS)
def test_last_words_say_why_a_run_broke(capsys, tmp_path, words, cause):
    run = one_run(capsys, written(tmp_path, megatron(1, 5) + words + megatron(3, 9)))

    assert [one["cause"] for one in run["incidents"]] == [cause]
    assert [(a["first_step"], a["last_step"]) for a in run["attempt_list"]] == [(1, 5), (3, 9)]


HARMLESS = {
    "a helper that was ended": "run.sh: line 3:  99 Terminated              sleep 600\n",
    "a quoted death": "INFO previous job: Segmentation fault (core dumped)\n",
    "words": "Killed 3 stale processes\nAborted transactions: 0\n",
    "a setting": "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600  # Heartbeat monitor\n",
    "the application's own Xid": f"Jan  1 00:00:06 a {XID.format(31, 'Ch 00000008')}",
    "an Xid to be watched": f"Jan  1 00:00:06 a {XID.format(63, 'Row Remapper: New row')}",
    "somebody who quotes the driver": "monitor: saw NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n",
    "a fault that the run survived": f"Jan  1 00:00:06 a {XID.format(94, 'Contained')}",
    "success": "[INFO] [launch.py:351:main] Process 1 exits successfully.\n",
}


@pytest.mark.parametrize("words", HARMLESS.values(), ids=HARMLESS)
def test_what_a_run_goes_on_after_is_no_incident(capsys, tmp_path, words):
    run = one_run(capsys, written(tmp_path, megatron(1, 5) + words + megatron(6, 20)))

    assert run["incidents"] == []
    assert [(a["first_step"], a["last_step"]) for a in run["attempt_list"]] == [(1, 20)]


def test_somebody_s_ctrl_c_is_no_incident(capsys, tmp_path):
    words = 'Traceback (most recent call last):\n  File "t.py"\nKeyboardInterrupt\n'

    run = one_run(capsys, written(tmp_path, megatron(1, 5) + words))

    assert run["incidents"] == []
    assert [one["reason"] for one in run["log"]["stops"]] == ["operator"]


def test_a_timeout_accuses_nobody_while_only_some_of_its_group_are_known(capsys, tmp_path):
    words = (
        "[rank2]:[E0101 00:10:06.123456789 ProcessGroupNCCL.cpp:685] [Rank 2] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600044 milliseconds before timing out.\n"
    )
    world = "using world size: 8, data-parallel size: 8\n"

    for text in (megatron(1, 5) + words, world + megatron(1, 5) + words):
        run = one_run(capsys, written(tmp_path, text))

        assert [(i["cause"], i["suspect_rank"]) for i in run["incidents"]] == [
            ("collective_timeout", None)
        ]


@pytest.mark.parametrize(
    "layout",
    ["01/02/2026 00:00:{:02}", "[Fri Jan  2 00:00:{:02} 2026]", "2026/01/02 00:00:{:02}"],
)
def test_a_stamp_is_read_in_the_layouts_of_the_examples(capsys, tmp_path, layout):
    lines = "".join(
        f"{layout.format(step)} - INFO - iteration {step}/100 | consumed samples: {step} | "
        "elapsed time per iteration (ms): 1000.0 | lm loss: 2.0 |\n"
        for step in range(1, 6)
    )

    run = one_run(capsys, written(tmp_path, lines))

    assert run["log"]["timed"]
    assert utc(run["start"]).isoformat() == "2026-01-02T00:00:00"


def test_accelerate_saves_and_goes_on_from_a_save(capsys, tmp_path):
    bar = "".join(
        f"Steps: {n}%|#   | {n}/100 [00:{n:02}<01:00,  1.00s/it, lr=1e-05]\r" for n in range(1, 21)
    )
    say = "01/01/2026 00:0{}:30 - INFO - accelerate.accelerator - {}\n"
    text = (
        "***** Running training *****\n"
        + bar
        + say.format(0, "Saving current state to out/checkpoint-20")
        + say.format(1, "Saved state to out/checkpoint-20")
        + "***** Running training *****\n"
        + say.format(5, "Loading states from out/checkpoint-20")
        + say.format(5, "All states loaded successfully")
        + "Steps: 21%|#   | 21/100 [00:01<01:00,  1.00s/it]\n"
    )

    run = one_run(capsys, written(tmp_path, text))

    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(20, True)]
    assert [(a["resumed"], a["last_step"]) for a in run["attempt_list"]] == [(0, 20), (20, 21)]


def test_a_load_proves_the_save_that_nobody_called_complete(capsys, tmp_path):
    say = "[rank0]:[titan] 2026-01-01 00:0{}:{:02},100 - root - INFO - {}\n"
    step = "step: {:2}  loss:  2.5000  memory:  9.75GiB(12.30%)  tps: 1,234  mfu: 9.10%"
    text = "".join(say.format(0, n, step.format(n)) for n in range(1, 11))
    text += say.format(0, 11, "Saving the checkpoint (or staging if async is enabled).")
    text += say.format(
        0, 13, "Finished saving the checkpoint (or staging if async is enabled)in 2.00 seconds."
    )
    text += say.format(1, 0, "Starting job: Llama 3 8B training")
    text += say.format(1, 10, "Loading the checkpoint from ./outputs/checkpoint/step-10.")
    text += say.format(1, 15, "Finished loading the checkpoint in 5.00 seconds.")
    text += say.format(1, 16, step.format(11))

    run = one_run(capsys, written(tmp_path, text))

    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(10, True)]
    assert run["checkpoint"]["step"] == 10
