"""JSON documents: objects of Kubernetes, NVRx's cycles; and Headway's own events as lines."""

import json

import pytest

from headway.simulate import simulate
from headway.simulate.plan import SECOND
from headway.simulate.presets import benchmark
from headway.wire import to_json
from imported import imported, one_run, spent, utc, written


def pod(name, node, restarts, *, state, last=None, phase="Running", **status):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"batch.kubernetes.io/job-completion-index": name[-1]},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "startTime": "2026-03-01T10:00:00Z",
            "containerStatuses": [
                {"name": "train", "restartCount": restarts, "state": state, "lastState": last or {}}
            ],
            **status,
        },
    }


def ended(start, end, code, reason="Error"):
    return {
        "terminated": {"startedAt": start, "finishedAt": end, "exitCode": code, "reason": reason}
    }


def listed(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}, indent=2)


def event(reason, words, at, *, kind="Pod", name="llama-0"):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.17"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": words,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": "Warning",
    }


def test_a_container_killed_for_memory_names_its_rank_and_the_attempt_after_it(capsys, tmp_path):
    killed = ended("2026-03-01T10:00:05Z", "2026-03-01T11:00:00Z", 137, "OOMKilled")
    left = ended("2026-03-01T10:00:06Z", "2026-03-01T11:00:02Z", 1)
    running = {"running": {"startedAt": "2026-03-01T11:00:20Z"}}
    text = listed(
        pod("llama-0", "node-a", 1, state=running, last=left),
        pod("llama-1", "node-b", 1, state=running, last=killed),
    )

    run = one_run(capsys, written(tmp_path, text, "pods.json"))

    assert run["attempts"] == 2
    assert [(i["cause"], i["suspect_rank"]) for i in run["incidents"]] == [("host_oom", 1)]
    exits = {one["rank"]: one for one in run["log"]["faults"]}
    assert exits[1]["node"] == "node-b"
    assert utc(run["start"]).isoformat() == "2026-03-01T10:00:05"


def test_a_crash_loop_waits_between_its_attempts(capsys, tmp_path):
    last = ended("2026-03-01T10:04:00Z", "2026-03-01T10:04:30Z", 1)
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting"}}
    text = listed(pod("llama-0", "node-a", 5, state=waiting, last=last))

    run = one_run(capsys, written(tmp_path, text, "pods.json"))

    assert run["attempt_list"][-1]["outcome"] != "progressed"
    assert [job["state"] for job in run["log"]["jobs"]] == ["backoff"]
    assert run["log"]["restart_count"] == 4


@pytest.mark.parametrize(
    ("reason", "words", "kind", "cause"),
    [
        ("NodeNotReady", "Node is not ready", "Pod", "node_lost"),
        ("Evicted", "The node was low on resource: memory. Threshold 100Mi", "Pod", "host_oom"),
        ("Evicted", "The node was low on resource: ephemeral-storage.", "Pod", "storage"),
        ("OOMKilling", "Memory cgroup out of memory: Killed process 7", "Node", "host_oom"),
    ],
)
def test_events_tell_why_a_pod_ended(capsys, tmp_path, reason, words, kind, cause):
    pods = listed(
        pod(
            "llama-0", "node-a", 0, state=ended("2026-03-01T10:00:00Z", "2026-03-01T10:30:05Z", 137)
        )
    )
    name = "llama-0" if kind == "Pod" else "node-a"
    events = listed(event(reason, words, "2026-03-01T10:30:00Z", kind=kind, name=name))

    run = one_run(
        capsys, written(tmp_path, pods, "pods.json"), written(tmp_path, events, "events.json")
    )

    assert [i["cause"] for i in run["incidents"]] == [cause]


def test_a_drained_or_preempted_pod_was_told_to_stop(capsys, tmp_path):
    disrupted = {
        "conditions": [
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": "preempted by a pod of higher priority",
                "lastTransitionTime": "2026-03-01T10:29:30Z",
            }
        ]
    }
    state = ended("2026-03-01T10:00:00Z", "2026-03-01T10:30:00Z", 143)
    text = listed(pod("llama-0", "node-a", 0, state=state, phase="Failed", **disrupted))

    run = one_run(capsys, written(tmp_path, text, "pods.json"))

    assert [stop["reason"] for stop in run["log"]["stops"]] == ["preemption"]
    assert [i["cause"] for i in run["incidents"]] == ["preemption"]


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "kind": "List", "items": [null, 1, {"kind": "Pod"}]}',
        '{"apiVersion": "v1", "kind": "Pod", "metadata": [], "status": "?"}',
        '{"apiVersion": "v1", "kind": "PodList", "items": {}}',
        '{"cycle_number": "x", "cycle_start_time": 1, "active_nodes": []}',
        "[" * 100_000,
    ],
)
def test_documents_that_hold_nonsense_raise_nothing(tmp_path, capsys, text):
    from headway.cli import main

    assert main(["import", "auto", str(written(tmp_path, text, "odd.json"))]) == 2
    assert capsys.readouterr().err.startswith("headway: ")


def test_cycles_of_nvrx_are_attempts(capsys, tmp_path):
    for number, begin in ((0, "10:00:00"), (1, "10:20:00")):
        cycle = {
            "job_id": "17",
            "attempt_index": 0,
            "cycle_number": number,
            "cycle_start_time": f"2026-03-01T{begin}Z",
            "cycle_end_time": "2026-03-01T10:19:50Z" if number == 0 else "",
            "active_nodes": "node-[a-b]",
            "standby_nodes": "",
        }
        written(tmp_path, json.dumps(cycle), f"cycle_info.17.0.{number}")

    run = one_run(capsys, tmp_path)

    assert [a["layer"] for a in run["attempt_list"]] == ["launcher", "launcher"]
    assert utc(run["attempt_list"][1]["start"]).isoformat() == "2026-03-01T10:20:00"


def test_headway_s_own_events_come_back_as_the_ledger_they_are(capsys, tmp_path):
    made = simulate(benchmark("launcher", 1, 17 * SECOND, 60 * SECOND))
    text = "".join(json.dumps(to_json(one)) + "\n" for one in made.events)

    found = imported(capsys, written(tmp_path, text + "{torn\n", "events.jsonl"))

    (run,) = found["runs"]
    true = {name: time / SECOND for name, time in made.truth.categories.items()}
    assert spent(run) == pytest.approx(true)
    assert found["lines"]["suspicious"] == {"events": 1}
