"""Figures and rows of the fleet's pages, against answers of the API that are written by hand."""

import re
from datetime import UTC
from html import unescape
from typing import Any

import pytest

from fleet_figures import incident, share
from headway.dashboard import fleet_rows, hardware_rows, heatmap, recovery_rows
from headway.dashboard.figures import fleet, recoveries
from headway.fleet.course import course
from headway.fleet.recoveries import recoveries as told
from headway.fleet.spans import DAY, HOUR
from headway.fleet.totals import totals
from headway.metrics import category
from timeline import SECOND

PRICE = {"per_gpu_hour": 2.0, "currency": "EUR"}


def test_the_waterfall_ends_at_productive_time_and_its_bars_hang_together() -> None:
    group = totals([share(seconds={"productive": 60, "restart": 30, "spare": 10})], None)

    rows = fleet.waterfall(group)

    assert rows[0].name == "Allocated"
    bars = [part for row in rows for part in row.parts if part.width]
    assert [bar.width for bar in bars] == pytest.approx([1, 0.3, 0.1, 0.6])
    assert [bar.begin + bar.width for bar in bars] == pytest.approx([1, 1, 0.7, 0.6])
    assert any("spare" in row.name.lower() for row in rows)


def test_causes_are_coloured_by_whose_they_are_the_costliest_first() -> None:
    known = [
        incident("a", cause="gpu_fault", lost_gpu=9 * HOUR),
        incident("b", cause="exception", lost_gpu=3 * HOUR),
        incident("c", cause="gpu_oom", lost_gpu=5 * HOUR),
    ]

    group = totals([share(incidents=known)], None)

    colours = fleet.side_colours(group)

    assert list(colours) == ["Machines", "Software"]
    assert [(row.name, row.amount, row.parts[0].colour) for row in fleet.causes(group)] == [
        ("GPU fault", "9.0 GPU-h", colours["Machines"]),
        ("GPU OOM", "5.0 GPU-h", colours["Software"]),
        ("Exception", "3.0 GPU-h", colours["Software"]),
    ]
    widths = [row.parts[0].width for row in fleet.causes(group)]
    assert widths == pytest.approx([1, 5 / 9, 3 / 9])


def test_the_course_shows_shares_of_each_cell_and_marks_incidents() -> None:
    cells = course(
        [0, HOUR, 2 * HOUR],
        HOUR,
        [{0: {"productive": 30, "down": 10}, 2 * HOUR: {"productive": 5}}],
        [incident("a", opened=5), incident("b", opened=7, lost_gpu=99 * SECOND)],
    )

    figure = fleet.course({"cells": cells, "width_ns": HOUR}, UTC)

    found = {trace.name: list(trace.y) for trace in figure.data}
    assert found["Productive"] == [75, 100]
    assert found["Down"] == [25]
    (mark,) = [trace for trace in figure.data if trace.name == "Incidents"]
    assert len(mark.x) == 1
    assert "2 incidents" in mark.hovertext[0]
    assert fleet.most_marked(cells)[0]["incident"] == "b"


def test_a_curve_rises_in_steps_to_all_recoveries_and_names_their_number() -> None:
    groups = told([incident(str(n), recovered=n * 60 * SECOND) for n in (1, 2, 3, 4)])["by_cause"]

    (line,) = recoveries.curves(groups).data

    assert line.name == "Exception (4)"
    assert list(line.x) == [60, 60, 120, 180, 240]
    assert list(line.y) == [0, 25, 50, 75, 100]


def test_a_recovery_without_any_time_still_has_a_place_on_the_axis() -> None:
    groups = told([incident("at once", recovered=0)])["by_cause"]

    (line,) = recoveries.curves(groups).data

    assert list(line.x) == [1, 1]
    assert "0 s" in line.hovertext[-1]


def test_phases_are_stacked_by_group_the_longest_first() -> None:
    known = [
        incident("a", phases={"detect": 60 * SECOND, "load": 30 * SECOND}),
        incident("b", cause="hang", phases={"detect": 600 * SECOND}),
    ]

    hang, exception = recoveries.phases(told(known)["by_cause"])

    assert (hang.name, hang.amount) == ("Hang", "10 min 0 s")
    assert (exception.name, exception.amount) == ("Exception", "1 min 30 s")
    assert [(part.begin, part.width) for part in hang.parts] == [(0, 1)]
    spans = [(part.begin, part.width) for part in exception.parts]
    assert spans == [(0, pytest.approx(0.1)), (pytest.approx(0.1), pytest.approx(0.05))]
    assert list(recoveries.phase_colours(told(known)["by_cause"])) == ["Detect", "Load"]


def test_five_attempts_and_more_share_a_bar() -> None:
    known = [incident(str(n), layers=("launcher",) * n) for n in (1, 1, 4, 5, 9)]

    (bar,) = recoveries.attempts(told(known)["by_cause"]).data

    assert list(bar.y) == [2, 0, 0, 1, 2]


def test_many_causes_do_not_crowd_a_figure() -> None:
    causes = ["exception", "gpu_oom", "host_oom", "hang", "killed", "gpu_fault", "network"]
    causes += ["storage", "numerical"]
    groups = told([incident(one, cause=one) for one in causes])["by_cause"]

    assert len(recoveries.curves(groups).data) == recoveries.MOST_CURVES < len(causes)


def test_the_heatmap_leaves_days_empty_on_which_nobody_looked() -> None:
    found = {
        "days": [0, DAY],
        "nodes": [{"node": "node-1", "failures": [None, 0]}, {"node": "b", "failures": [1, 17]}],
    }

    html = heatmap.html(found, "Failures")

    first, second = re.findall(r"</a><div[^>]*>(.*?)</div>", html)
    assert re.findall(r"grid-column:([^;]*);", first) == ["2/span 1"]
    assert "hw-failed" not in first
    assert re.findall(r'title="([^"]*)">([^<]*)<', second) == [
        ("1970-01-01: 1 failure", "1"),
        ("1970-01-02: 17 failures", "17"),
    ]
    assert re.findall(r"background-color:([^\"]*)", second) == [
        heatmap.COLOURS["1"],
        heatmap.COLOURS["3 or more"],
    ]
    assert 'href="hardware?node=node-1"' in html


def test_a_year_of_days_without_a_failure_is_one_piece() -> None:
    failures = [0] * 200 + [None] * 3 + [0] * 162
    found = {"days": [n * DAY for n in range(365)], "nodes": [{"node": "n", "failures": failures}]}

    html = heatmap.html(found, "Failures")

    assert re.findall("hw-fine.*?grid-column:([^;]*);", html) == ["1/span 200", "204/span 162"]


def _run(**values: Any) -> dict[str, Any]:
    return {"end": None, "as_of": 100 * HOUR, "arrival": None} | values


@pytest.mark.parametrize(
    ("arrival", "said"),
    [
        (None, ""),
        ({"low": 102 * HOUR, "high": 102 * HOUR, "steps_left": 5}, "there in 2 h 0 min"),
        (
            {"low": 102 * HOUR, "high": 103 * HOUR, "steps_left": 5},
            "there in 2 h 0 min to 3 h 0 min",
        ),
        ({"low": 102 * HOUR, "high": None, "steps_left": 5}, "there in 2 h 0 min or later"),
        ({"low": None, "high": None, "steps_left": 5}, "never at this rate"),
        ({"low": 100 * HOUR, "high": 100 * HOUR, "steps_left": 0}, "target reached"),
    ],
)
def test_a_run_says_when_it_reaches_its_target(arrival: Any, said: str) -> None:
    assert fleet_rows.arrival(_run(arrival=arrival)) == said


def test_a_strip_shows_each_stretch_in_its_colour_and_says_what_it_is() -> None:
    parts = [
        {"start": 0, "end": 3 * HOUR, "category": "productive"},
        {"start": 3 * HOUR, "end": 4 * HOUR, "category": "down"},
    ]

    html = fleet_rows.strip({"strip": parts}).html  # type: ignore[union-attr]

    assert f"width:75.000%;background:{category('productive').colour}" in html
    assert f"width:25.000%;background:{category('down').colour}" in html
    assert "Down, 1 h 0 min, 3 h 0 min after its begin" in html
    assert fleet_rows.strip({"strip": []}) == ""


def test_a_goodput_that_rose_is_good_and_a_loss_that_rose_is_bad() -> None:
    now, before = {"low": 0.85, "high": 0.9}, {"low": 0.80, "high": 0.8}

    assert fleet_rows.points(now, before) == {
        "delta": "+5.0 points",
        "delta_color": "normal",
        "delta_arrow": "auto",
    }
    assert fleet_rows.points(now, now)["delta"] == "as before"
    assert fleet_rows.points(now, {"low": None, "high": None}) == {
        "delta": "nothing before to compare"
    }
    assert fleet_rows.points(now, None) == {}
    assert fleet_rows.change(3, 5, str) == {
        "delta": "-2",
        "delta_color": "inverse",
        "delta_arrow": "auto",
    }


def test_a_run_without_a_loss_or_an_incident_reads_so() -> None:
    row = fleet_rows.run_row(
        _run(
            run="a<b>",
            state="running",
            open_incidents=0,
            strip=[],
            lost_gpu_ns={"low": 0, "high": 0},
            lost_cost={"low": 0.0, "high": 0.0},
            largest_loss=None,
            worst_incident=None,
            gpu_time=_time(0),
            wall_time=_time(10),
            attempts=1,
            steps={"highest": 7, "target": None},
            checkpoint=None,
        ),
        PRICE,
    )

    texts = [one if isinstance(one, str) else one.html for one in row]
    assert "&lt;b&gt;" in texts[0]
    assert "<small>running</small>" in texts[0]
    assert "0.00 EUR" in texts[1]
    assert texts[2:4] == ["nothing", "none"]
    assert len(row) == len(fleet_rows.RUN_COLUMNS)


def _time(elapsed: int) -> dict[str, Any]:
    ratio = {"low": 1.0, "high": 1.0} if elapsed else {"low": None, "high": None}
    return {"elapsed_ns": elapsed, "training_goodput": ratio, "infrastructure_goodput": ratio}


def test_recovery_says_how_many_how_fast_and_what_takes_the_time() -> None:
    known = [incident(str(n), phases={"load": 9 * SECOND, "detect": SECOND}) for n in range(3)]
    known.append(incident("open", outcome="open", recovered=None))

    assert recovery_rows.headline(told(known)) == (
        "3 of 3 incidents recovered: half within 10 s, 19 of 20 within 10 s. Most of their time "
        "goes to loading checkpoints (90.0 %). The costliest cause is exception: < 0.1 GPU-h."
    )
    none = told([incident("open", outcome="open", recovered=None)])
    assert recovery_rows.headline(none) == "None of 1 incident has recovered."


def test_what_stands_out_is_named_and_what_may_be_chance_is_not() -> None:
    slow = {"slow": 5, "others": 15, "threshold_ns": 100 * SECOND, "differences": []}
    one = {"what": "node", "value": "n7", "slow": 5, "others": 0, "chance": 1e-4}

    said = recovery_rows.slow_sentence(slow | {"differences": [one | {"stands_out": True}]})
    unsaid = recovery_rows.slow_sentence(slow | {"differences": [one | {"stands_out": False}]})

    assert said.endswith("More often than chance explains: node n7.")
    assert unsaid.endswith("Nothing stands out: chance explains every difference.")
    cells = recovery_rows.slow_row(one | {"stands_out": True}, slow)
    assert cells[1:] == ("5 of 5", "0 of 15", "< 0.1 %", "stands out")


def test_gpus_of_which_nobody_tells_are_neither_counted_healthy_nor_hidden() -> None:
    found = {
        "nodes": 3,
        "gpu_states": [{"state": "disabled"}, {"state": "unknown"}, {"state": "healthy"}],
    }
    nodes = {"nodes": [], "repeats": 0, "fleet": {"failures": 0}}

    said = hardware_rows.headline(found, nodes)

    assert said == (
        "3 nodes, 0 failures while runs were there. Nothing tells how the GPUs of 2 nodes are."
    )


def test_a_fault_on_many_nodes_names_some_and_counts_the_rest() -> None:
    row = hardware_rows.fault_row(
        {
            "fault": "Xid 63",
            "meaning": None,
            "note": None,
            "classification": "watch",
            "policy": "site 1",
            "disputed": True,
            "action": "Nothing now.",
            "faults": 9,
            "records": 1_200,
            "gpus": 5,
            "nodes": ["a", "b", "c", "d", "e"],
            "last": 0,
        },
        UTC,
    )

    texts = [unescape(one if isinstance(one, str) else one.html) for one in row]
    assert texts[1] == "Not in the table of known faults"
    assert "site 1, disputed" in texts[2]
    assert texts[5] == "1,200"
    assert texts[7].endswith("and 2 more")
    assert len(row) == len(hardware_rows.FAULT_COLUMNS)
