"""A year of node faults: starts and ends joined, times to repair, time down, and torn files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from headway import cli
from headway.fleet.infinitehbd import TraceError, read

DATA = Path(__file__).parents[1] / "data" / "infinitehbd"
TRACE = DATA / "infinitehbd_fault_trace.json"
KIND = {"Level": "Hardware Failure", "Class": "GPU", "Desc": "GPU Lost"}
OTHER = {"Level": "Hardware Failure", "Class": "Fan", "Desc": "Low"}


def record(time: float, event: str, node: str = "a", kind: object = None) -> dict[str, Any]:
    name = f"fault_{event}"
    return {"node_id": node, "event_time": time, "event_type": name, "fault_type": kind or KIND}


def trace(*records: object) -> str:
    return json.dumps(records)


def imported(capsys: pytest.CaptureFixture[str], file: Path, *options: str) -> tuple[int, str, str]:
    status = cli.main(["import", "infinitehbd", str(file), *options])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_published_trace_comes_to_its_published_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = imported(capsys, TRACE, "--json")
    found = json.loads(out)
    assert (status, found["faults"], found["nodes"]) == (0, 584, 231)
    assert found["classes"] == json.loads(
        (DATA / "infinitehbd_fault_statistics.json").read_text("utf-8")
    )
    assert round(found["repair_days"]["median"], 5) == 0.84955
    assert round(found["repair_days"]["mean"], 5) == 5.53501
    assert round(found["down_ratio"] * 100, 4) == 2.3148
    assert (found["servers"], found["days"]) == (400, 348.9798)
    assert (found["zero_length"], found["overlapping"], found["unpaired"]) == (14, 2, [])
    assert round(found["per_1000_node_days"]["rate"], 2) == 4.18


def test_people_read_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = imported(capsys, TRACE)
    assert status == 0
    for line in (
        "584 faults on 231 nodes",
        "Hardware Failure: 298",
        "median 0.84955 d, mean 5.53501 d",
        "down: 2.3148 % of 400 servers x 348.9798 d",
        "rate: 4.18 (3.85 to 4.54) per 1,000 node-days",
    ):
        assert line in out


def test_the_order_of_the_records_does_not_matter() -> None:
    records = json.loads(TRACE.read_text("utf-8"))
    random.Random(1).shuffle(records)  # noqa: S311
    shuffled, ordered = read(json.dumps(records)), read(TRACE.read_text("utf-8"))
    assert shuffled.repairs == ordered.repairs
    assert shuffled.down() == ordered.down()
    assert not shuffled.unpaired


def test_faults_of_two_kinds_on_one_node_are_two_and_their_common_time_counts_once() -> None:
    found = read(
        trace(
            record(1, "start"),
            record(2, "start", kind=OTHER),
            record(3, "end"),
            record(5, "end", kind=OTHER),
        )
    )
    assert [repair / 86_400e9 for repair in found.repairs] == [2, 3]
    assert found.down()["a"] / 86_400e9 == 4
    assert found.overlapping == 1


def test_a_start_whose_end_was_lost_does_not_swallow_the_next_fault() -> None:
    found = read(trace(record(1, "start"), record(10, "start"), record(12, "end")))
    assert [repair / 86_400e9 for repair in found.repairs] == [2]
    assert [(one.place, one.event) for one in found.unpaired] == [(1, "fault_start")]


def test_a_fault_that_begins_when_the_one_before_ends_is_another() -> None:
    found = read(trace(record(1, "start"), record(3, "end"), record(3, "start"), record(4, "end")))
    assert [repair / 86_400e9 for repair in found.repairs] == [1, 2]
    assert found.overlapping == 0


def test_a_fault_of_no_length_may_stand_in_either_order() -> None:
    for pair in (("start", "end"), ("end", "start")):
        found = read(trace(*(record(1.5, event) for event in pair)))
        assert (found.repairs, found.unpaired) == ([0], [])


def test_fractional_days_lose_nothing() -> None:
    found = read(trace(record(0.1, "start"), record(0.3, "end")))
    assert found.repairs == [17_280 * 10**9]


def test_what_has_no_counterpart_is_reported_and_not_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    file.write_text(
        trace(
            record(0.5, "end", node="b"),
            record(1, "start"),
            record(2, "end"),
            record(3, "start", node="c"),
        )
    )
    status, out, _ = imported(capsys, file)
    assert status == 0
    assert "1 fault on 3 nodes" in out
    assert "record 1 is an end alone and counted nowhere: b at 0.5000 d" in out
    assert "record 4 is a start without an end and counted nowhere: c at 3.0000 d" in out
    _, out, _ = imported(capsys, file, "--json")
    assert [one["record"] for one in json.loads(out)["unpaired"]] == [1, 4]


def test_an_empty_trace_has_no_figures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text("[]")
    status, out, _ = imported(capsys, file, "--json")
    found = json.loads(out)
    assert (status, found["faults"], found["down_ratio"]) == (0, 0, None)
    assert set(found["repair_days"].values()) == {None}
    assert imported(capsys, file) == (0, "0 faults on 0 nodes\n", "")


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in record(1, "start").items() if key != name}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"node_id": "a",', "no whole JSON: "),
        ("", "no whole JSON: Expecting value at line 1, column 1 of 1 lines"),
        ("{}", "a trace is a list of records, this is an object"),
        (trace(3), "record 1 is a number, not an object"),
        (trace(None), "record 1 is null, not an object"),
        (trace(without("event_time")), "record 1 has no event_time"),
        (
            trace(record(1, "start"), record(2, "mend")),
            "record 2 has the unknown event_type 'fault_mend'; known: fault_start, fault_end",
        ),
        (trace(record(-1, "start")), "record 1 has the event_time -1; expected days"),
        (trace({**record(1, "start"), "event_time": "1"}), "has the event_time '1'"),
        (trace({**record(1, "start"), "event_time": True}), "has the event_time True"),
        (trace({**record(1, "start"), "event_time": None}), "has the event_time None"),
        ('[{"event_time": NaN}]', "NaN is no number of JSON"),
        (
            trace(record(1, "start")).replace('"event_time": 1', '"event_time": 1e999999'),
            "record 1 has the event_time 1E+999999; expected days",
        ),
        ("[" * 100_000, "no JSON of a trace: it is nested too deeply"),
        (trace({**record(1, "start"), "node_id": 7}), "record 1 has 7 as node_id"),
        (trace(record(1, "start", kind="GPU")), "record 1 has a text as fault_type"),
        (
            trace(record(1, "start", kind={"Level": "x", "Class": "y"})),
            "record 1 has None as Desc of fault_type; expected a text",
        ),
    ],
)
def test_a_file_that_is_no_trace_says_where_and_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(TraceError):
        read(text)
    file = tmp_path / "trace.json"
    file.write_text(text)
    status, out, error = imported(capsys, file)
    assert (status, out) == (2, "")
    assert words in error
    assert "Traceback" not in error


def test_a_torn_copy_of_the_trace_is_refused_with_the_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(TRACE.read_bytes()[:100_000])
    status, _, error = imported(capsys, file)
    assert status == 2
    assert "no whole JSON" in error
    assert "at line" in error


def test_a_missing_file_and_too_few_servers_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, _, error = imported(capsys, tmp_path / "none.json")
    assert status == 2
    assert "No such file" in error
    status, _, error = imported(capsys, TRACE, "--servers", "230")
    assert status == 2
    assert "--servers 230 is less than the 231 nodes that the trace names" in error
