"""The histories of nodes over real HTTP: failures, rates, losses, health, the command to copy."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway import cli
from headway.cli.node_text import print_node, print_nodes
from headway.events import Envelope, Event, GpuPresent, GpuSample, GpuXid, Health
from headway.storage.collector_errors import UnknownNode
from incident_collector import Running, running
from records import record
from timeline import at, timeline

RUN = """
100      attempt A launcher world=4 rank=0..3 local=0
100-200  steps 1-100 rank=0..3
150      scheduled c50 rank=0..3
150      finalized c50
200.5    fault exception rank=1 exception=RuntimeError
205      exit rank=0..3 signal=9 by=launcher
220      attempt B launcher world=4 rank=0..3 local=0
228      resumed 50 from=c50 rank=0..3
230-330  steps 51-150 rank=0..3
340      run_ended completed
"""
NODE = """
0        gpu 0 GPU-a 0000:1b:00.0
0        gpu 3 GPU-d 0000:cb:00.0
200.2    xid 79 0000:cb:00
200.3    xid 45 0000:cb:00 repeats=99
200.4    gpu_fault lost GPU-d
50       health nvlink healthy
300      health nvlink unhealthy
310      health ecc healthy
311      health pcie unhealthy
"""


def sample(second: float, sequence: int, **values: object) -> Envelope:
    """Return a sample of GPU-d."""
    event: Event = GpuSample(device="GPU-d", **values)  # type: ignore[arg-type]
    (listed,) = timeline("0 gpu 0 GPU-d 0000:cb:00.0")
    return replace(
        listed,
        producer="samples",
        first_sequence=sequence,
        last_sequence=sequence,
        monotonic=int(second * 10**9),
        wall=listed.anchor + int(second * 10**9),
        event=event,
    )


SAMPLES = [
    sample(60, 0, temperature=40.0, ecc_uncorrected=1, remap_failed=False, pcie_replays=7),
    sample(90, 1, temperature=50.0, ecc_uncorrected=2, remap_failed=False, pcie_replays=7),
    sample(200, 2, temperature=90.0, ecc_uncorrected=9, remap_failed=True),
    sample(335, 3, temperature=60.0, ecc_uncorrected=12, remap_failed=True, pcie_replays=7),
    sample(2000, 4, ecc_uncorrected=99),
]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    told = [*timeline(RUN + NODE), *SAMPLES]
    with running(tmp_path / "events.duckdb", told, at(400)) as found:
        yield found


def test_a_node_tells_its_failures_its_rate_and_what_it_cost(collector: Running) -> None:
    found = collector.client.nodes()
    (one,) = found["nodes"]
    (incident,) = collector.client.incidents()
    assert (one["node"], one["failures"], one["repeats"]) == ("node-a", 1, False)
    assert one["incidents"] == [incident["incident"]]
    assert one["causes"] == {"gpu_fault": 1}
    assert (one["steps"], one["gpu_ns"]) == (50, incident["lost_gpu_ns"])
    rate = one["per_1000_node_days"]
    # from 100 to 205, and from 220 to the end at 340
    assert rate["node_days"] == pytest.approx((105 + 120) / 86_400)
    assert rate["low"] < rate["rate"] < rate["high"]
    assert found["fleet"]["failures"] == 1


def test_its_gpus_are_listed_the_one_that_broke_first(collector: Running) -> None:
    broken, sound = collector.client.node("node-a")["gpus"]
    assert (broken["device"], broken["pci_address"]) == ("GPU-d", "0000:cb:00.0")
    # the Xid, and NVML's word a moment later, are one fault; Xid 45 is none
    assert (broken["faults"], broken["classes"]) == (1, {"reboot": 1})
    assert (broken["steps"], len(broken["incidents"])) == (50, 1)
    assert (sound["device"], sound["faults"], sound["gpu_ns"]) == ("GPU-a", 0, 0)


def test_health_before_a_run_stands_against_health_after_it(collector: Running) -> None:
    (stay,) = collector.client.node("node-a")["stays"]
    assert (stay["run"], stay["live"]) == ("run", False)
    told = {(one["what"], one["device"]): (one["before"], one["after"]) for one in stay["health"]}
    assert told == {
        ("nvlink", None): ("healthy", "unhealthy"),
        ("pcie", None): (None, "unhealthy"),
        ("ecc_uncorrected", "GPU-d"): (2, 12),
        ("remap_failed", "GPU-d"): (False, True),
    }


def test_without_a_known_scheduler_there_is_a_command_for_each(collector: Running) -> None:
    one = collector.client.node("node-a")
    assert one["scheduler"] is None
    assert one["cordon"] == [
        "scontrol update nodename=node-a state=drain "
        "reason='headway: 1 failure (GPU lost, Xid 79)'",
        "kubectl cordon node-a",
    ]


def test_an_unknown_node_says_how_to_find_one(collector: Running) -> None:
    with pytest.raises(UnknownNode, match="nothing is known of a node 'nobody'") as raised:
        collector.client.node("nobody")
    assert "headway nodes" in raised.value.next_step


def test_the_history_is_the_same_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path, [*timeline(RUN + NODE), *SAMPLES], at(400)) as collector:
        before = collector.client.node("node-a")
    with running(path, [], at(400)) as collector:
        assert collector.client.node("node-a") == before


def test_people_read_the_same(collector: Running, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["nodes", "--endpoint", collector.address]
    assert cli.main(asked) == 0
    listed = capsys.readouterr().out
    assert "node-a" in listed
    assert "All nodes: 1 failure in 3 min 45 s with a run" in listed
    assert cli.main([*asked, "node-a"]) == 0
    said = capsys.readouterr().out
    for words in (
        "node-a: 1 failure\n",
        "1 incident, 50 steps and",
        "GPU-d",
        "GPU lost, Xid 79",
        "kubectl cordon node-a",
        "ecc uncorrected",
    ):
        assert words in said
    assert cli.main([*asked, "node-a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == collector.client.node("node-a")
    assert cli.main([*asked, "nobody"]) == 2
    assert "headway nodes" in capsys.readouterr().err


def test_without_a_node_the_next_step_is_said() -> None:
    out = io.StringIO()
    print_nodes({"nodes": [], "fleet": {}}, out)
    assert "No node yet." in out.getvalue()


def test_a_node_that_never_failed_gets_no_command_to_cordon_it(collector: Running) -> None:
    sound = {**collector.client.node("node-a"), "failures": 0, "incidents": []}
    out = io.StringIO()
    print_node(sound, out)
    assert "cordon" not in out.getvalue()


LISTED = GpuPresent(index=0, device="GPU-d", pci_address="0000:cb:00.0")


def test_a_node_without_a_run_has_faults_and_no_rate(tmp_path: Path) -> None:
    told = [
        replace(record(second, event, run=None), rank=None, attempt=None, node="idle")
        for second, event in (
            (1, LISTED),
            (2, GpuXid(code=79, device="GPU-d")),
            (900, GpuXid(code=95, device="GPU-d")),
            (901, Health(check="x", state="healthy")),
        )
    ]
    with running(tmp_path / "events.duckdb", told) as collector:
        one = collector.client.node("idle")
        assert (one["failures"], one["repeats"], one["runs"]) == (2, True, [])
        assert one["per_1000_node_days"]["rate"] is None
        assert collector.client.nodes()["fleet"]["rate"] is None


def test_prometheus_hears_of_failures_and_of_the_gpu_time_lost(collector: Running) -> None:
    text = collector.http.get("/metrics").text
    (incident,) = collector.client.incidents()
    lost = incident["lost_gpu_ns"] / 1e9
    assert 'headway_node_failures_total{node="node-a"} 1.0' in text
    assert f'headway_node_lost_gpu_seconds{{node="node-a"}} {lost}' in text


SHARED = """
0        allocation 2
0        attempt A launcher world=2 rank=0..1 local=0 visible={visible}
0-100    steps 1-100 rank=0..1
100.5    fault exception rank=0 exception=RuntimeError
105      exit rank=0..1 signal=9 by=launcher
200      run_ended failed
"""


def test_of_two_runs_that_share_a_node_only_the_one_whose_gpu_broke_is_charged(
    tmp_path: Path,
) -> None:
    def named(run: str, visible: str) -> list[Envelope]:
        built = timeline(SHARED.format(visible=visible), run)
        return [replace(one, producer=f"{run} {one.producer}") for one in built]

    gpus = "".join(f"0 gpu {index} GPU-{index} 0000:{index}b:00.0\n" for index in range(4))
    told = named("left", "0,1") + named("right", "2,3")
    told += timeline(gpus + "100.2 xid 79 0000:3b:00\n100.3 xid 13 0000:0b:00")
    with running(tmp_path / "events.duckdb", told, at(300)) as collector:
        (left,), (right,) = (collector.client.incidents(run) for run in ("left", "right"))
        assert (left["cause"], left["suspect_gpu"]) == ("exception", None)
        assert "which no rank of this run works on" in " ".join(left["evidence"])
        assert (right["cause"], right["suspect_gpu"]) == ("gpu_fault", "GPU-3")
        assert right["suspect_rank"] == 1
        (charged,) = collector.client.report("right")["gpu_losses"]
        assert (charged["device"], charged["incidents"]) == ("GPU-3", [right["incident"]])
        one = collector.client.node("node-a")
        # both were there at once: 105 s of two runs are 105 s of the node
        assert one["per_1000_node_days"]["node_days"] == pytest.approx(105 / 86_400)
        assert one["runs"] == ["left", "right"] or one["runs"] == ["right", "left"]


def test_a_gpu_whose_fault_no_reboot_clears_comes_with_advice(tmp_path: Path) -> None:
    text = "".join(f"{t} boot b{t}\n{t} xid 95 GPU-d\n" for t in (1, 1000, 2000))
    with running(tmp_path / "events.duckdb", timeline(text), at(3000)) as collector:
        (gpu,) = collector.client.node("node-a")["gpus"]
        assert gpu["advice"] == [
            "Xid 95 came back after 2 reboots: have the hardware inspected or replaced"
        ]


def test_a_gpu_that_broke_several_runs_within_a_week_is_told_with_each_incident(
    tmp_path: Path,
) -> None:
    told = timeline("0 gpu 0 GPU-0 0000:0b:00.0\n")
    hour, day = 3_600, 86_400
    for number, begin in enumerate((0, hour, day, 9 * day)):
        built = timeline(
            f"""
            {begin}        attempt A launcher world=1 local=0
            {begin}-{begin + 100}  steps 1-100
            {begin + 100}.2 xid 79 0000:0b:00
            {begin + 100}.5 fault exception exception=RuntimeError
            {begin + 105}  exit signal=9 by=launcher
            {begin + 110}  run_ended failed
            """,
            f"run-{number}",
        )
        told += [replace(one, producer=f"{number} {one.producer}") for one in built]
    with running(tmp_path / "events.duckdb", told, at(10 * day)) as collector:
        counted = {
            one["run"]: (one["gpu_repeats"], one["gpu_repeats_in_all_runs"])
            for one in collector.client.incidents()
        }
        assert counted == {"run-0": (1, 1), "run-1": (1, 2), "run-2": (1, 3), "run-3": (1, 1)}
        one = collector.client.node("node-a")
        assert (one["failures"], one["repeats"]) == (4, True)
        (gpu,) = one["gpus"]
        assert (gpu["faults"], len(gpu["incidents"])) == (4, 4)


@pytest.mark.parametrize(
    ("scheduler", "command"),
    [
        ("slurm", "scontrol update nodename=node-a state=drain reason='headway: 1 failure'"),
        ("kubernetes", "kubectl cordon node-a"),
    ],
)
def test_where_the_scheduler_is_known_its_command_alone_is_shown(
    tmp_path: Path, scheduler: str, command: str
) -> None:
    text = RUN.replace("local=0", f"local=0 scheduler={scheduler}")
    text = text.replace("fault exception rank=1 exception=RuntimeError", "node_fault lost_node")
    with running(tmp_path / "events.duckdb", timeline(text), at(400)) as collector:
        one = collector.client.node("node-a")
        assert (one["scheduler"], one["causes"]) == (scheduler, {"node_lost": 1})
        assert one["cordon"] == [command]
