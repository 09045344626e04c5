"""What a fleet's machines lived through, by node, day and fault; unknown is never healthy."""

from typing import Any

from headway.events import GPU_FAULT_CLASSES
from headway.fleet.hardware import ACTIONS, faults, gpu_states, heatmap
from headway.fleet.histories import Check, FaultSeen, GpuHistory, NodeHistory
from headway.fleet.rates import rate_of
from headway.fleet.spans import DAY, Span
from headway.fleet.stays import Stretch
from headway.incidents.losses import Loss

MINUTE = 60 * 10**9


def node(name: str, **values: Any) -> NodeHistory:
    times = values.get("failure_times", ())
    presence = [Stretch(start, end) for start, end in values.pop("presence", ())]
    known: dict[str, Any] = {
        "node": name,
        "runs": (),
        "scheduler": None,
        "failures": len(times),
        "rate": rate_of(len(times), sum(end - start for start, end in presence)),
        "causes": {},
        "incidents": (),
        "loss": Loss(),
        "last_failure": max(times, default=None),
        "gpus": (),
        "presence": tuple(presence),
    }
    return NodeHistory(**(known | values))


def xid(code: int, classification: str, *told: tuple[int, int], gpu: str | None = "GPU-a") -> Any:
    return FaultSeen(
        name=f"Xid {code}",
        code=code,
        classification=classification,
        policy="headway 2026.11",
        gpu=gpu,
        told=told,
    )


def test_a_day_without_a_run_is_unknown_and_one_without_a_failure_is_none() -> None:
    known = [
        node("calm", presence=[(0, DAY)]),
        node("bad", presence=[(0, 2 * DAY)], failure_times=(5, DAY + 1, DAY + 2)),
        node("unseen", presence=[(9 * DAY, 10 * DAY)]),
        node("broke while idle", failure_times=(2 * DAY,)),
    ]

    found = heatmap(known, Span(0, 3 * DAY), 10)

    assert found["days"] == [0, DAY, 2 * DAY]
    assert {one["node"]: one["failures"] for one in found["nodes"]} == {
        "bad": [1, 2, None],
        "calm": [0, None, None],
        "broke while idle": [None, None, 1],
    }
    assert found["nodes"][0]["node"] == "bad"
    assert found["left_out"] == 0


def test_of_many_nodes_the_worst_are_shown_and_the_others_counted() -> None:
    known = [
        node(f"node-{n}", presence=[(0, DAY)], failure_times=tuple(range(n))) for n in range(5)
    ]

    found = heatmap(known, Span(0, DAY), 2)

    assert [one["node"] for one in found["nodes"]] == ["node-4", "node-3"]
    assert found["left_out"] == 3


def test_a_fault_says_what_it_means_what_to_do_and_by_whose_rules() -> None:
    known = [
        node("a", faults=(xid(79, "reboot", (0, 1), (1, 1)), xid(13, "application", (0, 40)))),
        node("b", faults=(xid(79, "reboot", (10 * MINUTE, 1)), xid(9999, "watch", (5, 1)))),
    ]

    found = faults(known, Span(0, DAY))

    assert [one["fault"] for one in found] == ["Xid 79", "Xid 13", "Xid 9999"]
    assert found[0] == {
        "fault": "Xid 79",
        "code": 79,
        "meaning": "GPU has fallen off the bus",
        "note": None,
        "disputed": False,
        "classification": "reboot",
        "action": ACTIONS["reboot"],
        "policy": "headway 2026.11",
        "faults": 2,
        "records": 3,
        "gpus": 2,
        "nodes": ["a", "b"],
        "last": 10 * MINUTE,
    }
    assert (found[1]["faults"], found[1]["records"]) == (1, 40)
    assert found[2]["meaning"] is None


def test_a_fault_outside_the_window_does_not_count() -> None:
    known = [node("a", faults=(xid(79, "reboot", (0, 7), (2 * DAY, 3)),))]

    (found,) = faults(known, Span(DAY, 3 * DAY))

    assert (found["faults"], found["records"]) == (1, 3)
    assert faults(known, Span(DAY, 2 * DAY)) == []


def test_every_class_of_fault_has_its_action() -> None:
    assert sorted(ACTIONS) == sorted(GPU_FAULT_CLASSES)


def test_what_nobody_told_is_unknown_and_what_cannot_be_seen_is_disabled() -> None:
    known = [
        node("healthy", checks=(Check(check="gpu", state="healthy", detail="8 GPUs", told=7),)),
        node("blind", checks=(Check(check="gpu", state="disabled", detail="no driver", told=5),)),
        node("silent"),
        node(
            "broken",
            checks=(
                Check(check="gpu", state="unhealthy", detail="GPU-a: lost", told=9),
                Check(check="kernel_log", state="disabled", detail="not permitted", told=1),
                Check(check="nic mlx5_0", state="unhealthy", detail="down", told=3),
            ),
            gpus=(GpuHistory(device="GPU-a", address="0000:01:00.0", product="H100"),),
        ),
    ]

    found = gpu_states(known)

    assert [(one["node"], one["state"]) for one in found] == [
        ("broken", "unhealthy"),
        ("blind", "disabled"),
        ("silent", "unknown"),
        ("healthy", "healthy"),
    ]
    broken, blind, silent, _ = found
    assert (broken["gpus"], broken["products"], broken["kernel_log"]) == (1, ["H100"], "disabled")
    assert broken["failing_checks"] == ["nic mlx5_0"]
    assert blind["detail"] == "no driver"
    assert (silent["gpus"], silent["told"], silent["kernel_log"]) == (None, None, "unknown")
