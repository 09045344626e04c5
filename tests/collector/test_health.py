"""What the collector says about itself, about flaws in the data of runs and about silent nodes."""

from collections.abc import Iterator

import pytest

from headway.events import (
    AgentCost,
    AttemptStarted,
    Clock,
    Dropped,
    RecorderCost,
    RunConfigured,
    RunStarted,
)
from incident_collector import Running, running
from records import ANCHOR, SECOND, record, steps

MEGABYTE = 1024**2
FAULTY, WHOLE = "1" * 32, "2" * 32


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    torch = RunConfigured(versions={"torch": "2.9.1"})
    events = [
        record(1, RunStarted(run_name="whole"), producer=WHOLE, run="whole"),
        record(2, torch, producer=WHOLE, run="whole"),
        record(1, RunStarted(run_name="faulty"), producer=FAULTY, run="faulty"),
        record(2, torch, producer=FAULTY, run="faulty"),
        record(3, AttemptStarted(layer="launcher"), producer=FAULTY, run="faulty"),
        steps(4, 9, producer=FAULTY, run="faulty"),
        record(10, Dropped(count=7, reason="queue full"), producer=FAULTY, run="faulty"),
        record(11, Clock(offset=250_000_000, error=1_000_000), producer=FAULTY, run=None),
        *(
            record(12 + place, RecorderCost(step=ns), producer=FAULTY, run="faulty")
            for place, ns in enumerate((900, 5_000, 1_100))
        ),
        record(15, AgentCost(cpu=0.004, memory=60 * MEGABYTE), producer=FAULTY, run=None),
        record(
            16,
            AgentCost(cpu=0.006, memory=61 * MEGABYTE, version="1.2"),
            producer=FAULTY,
            run=None,
        ),
    ]
    path = tmp_path_factory.mktemp("health") / "events.duckdb"
    with running(path, events, ANCHOR + 60 * SECOND) as found:
        yield found


def get(collector: Running, path: str) -> dict[str, object]:
    answer = collector.http.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_collector_tells_what_arrived_and_when_something_was_last_heard(
    collector: Running,
) -> None:
    found = get(collector, "health")

    assert found["runs"] == 2
    assert found["failing"] is None
    assert ANCHOR < found["as_of"] <= ANCHOR + 60 * SECOND
    assert found["versions"].keys() >= {"headway", "duckdb"}


def test_runs_with_flaws_are_listed_with_what_they_lack(collector: Running) -> None:
    found = get(collector, "health/runs")

    assert [(run["run"], run["dropped_events"]) for run in found["runs"]] == [("faulty", 7)]
    assert found["of"] == 1
    assert {"library": "torch", "version": "2.9.1", "runs": 2} in found["versions"]


def test_nodes_are_listed_with_their_clock_and_their_last_sign(collector: Running) -> None:
    (found,) = [one for one in get(collector, "health/nodes")["nodes"] if one["node"] == "n1"]

    assert found["clock_offset_ns"] == 250_000_000
    assert found["clock_error_ns"] == 1_000_000
    assert found["heard"] > ANCHOR


def test_what_recording_costs_is_told_by_run_and_by_node(collector: Running) -> None:
    (told,) = get(collector, "health/runs")["recording"]
    (node,) = [one for one in get(collector, "health/nodes")["nodes"] if one["node"] == "n1"]

    assert (told["run"], told["run_name"]) == ("faulty", "faulty")
    assert (told["steps"], told["median_ns"], told["highest_ns"]) == (3, 1_100, 5_000)
    assert node["agent_cpu"] == 0.006
    assert node["agent_memory"] == 61 * MEGABYTE
    assert node["agent_version"] == "1.2"
