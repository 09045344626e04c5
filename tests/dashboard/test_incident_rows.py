"""Rows about incidents and the story of one: what stands in them, and what is escaped."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

import pytest

from headway.dashboard import incident_groups as groups
from headway.dashboard import incident_rows as rows
from headway.dashboard import incident_story
from headway.dashboard.figures import rows as figures

SECOND = 10**9
OPENED = 1_764_434_048 * SECOND
PRICE = {"per_gpu_hour": 2.5, "currency": "EUR"}


def told(**more: Any) -> dict[str, Any]:
    """Return an incident as the API tells it."""
    return {
        "run": "llama-1",
        "run_name": "llama",
        "suspect_node": "n1",
        "opened": OPENED,
        "closed": OPENED + 60 * SECOND,
        "as_of": OPENED + 3_600 * SECOND,
        "observations": [],
        "first_fault": None,
        "decided_by": None,
        "tries": [],
        "recovered": None,
        "caught_up": None,
        "history": [],
    } | more


def seen(seconds: int, words: str, **more: Any) -> dict[str, Any]:
    where = {"rank": 3, "node": "n1", "echo": False}
    return {"time": OPENED + seconds * SECOND, "words": words} | where | more


def test_the_story_merges_evidence_attempts_and_people_in_order_of_time() -> None:
    tried = {
        "number": 2,
        "layer": "in_process",
        "resumed": 500,
        "cause": "hang",
        "start": OPENED,
        "began": OPENED + 20 * SECOND,
        "end": OPENED + 50 * SECOND,
    }
    said = {"time": OPENED + 30 * SECOND, "action": "acknowledged", "author": "Ada", "text": None}
    story = incident_story.story(
        told(
            observations=[seen(0, "exit code 1 on rank 3"), seen(0, "ValueError on rank 3")],
            first_fault=1,
            decided_by=0,
            tries=[tried],
            history=[said | {"labels": [], "labels_removed": [], "cause": None}],
        )
    )
    assert [(moment.words, moment.where) for moment in story] == [
        ("ValueError on rank 3", "n1"),
        ("exit code 1 on rank 3", "n1"),
        ("Attempt 2 begins from step 500, started by the wrapper inside the process", ""),
        ("took charge", "Ada"),
        ("Attempt 2 breaks: hang", ""),
        ("Closed: the attempt held", ""),
    ]
    assert [moment.first_fault for moment in story[:2]] == [True, False]
    assert [moment.decides for moment in story[:2]] == [False, True]


def test_what_others_wrote_is_escaped() -> None:
    one = told(observations=[seen(-5, "<script>alert(1)</script>", node="<n>")], first_fault=0)
    html = incident_story.timeline(one, UTC)
    assert "<script>" not in html
    assert "rank 3 on &lt;n&gt;" in html
    assert "5.0 s before" in html
    assert "<b>" not in rows.pairs("x", [("<b>", "<b>")])


def delivery(seconds: float, subject: str) -> dict[str, Any]:
    return {
        "created": OPENED / SECOND + seconds,
        "subject": subject,
        "receiver": "pager",
        "headline": "llama is hung",
        "why": "it began",
        "state": "sent",
        "answer": None,
    }


def test_notices_of_an_incident_are_those_of_its_run_or_node_while_it_lasted() -> None:
    notices = [
        delivery(-1, "run llama-1"),
        delivery(200, "node n1"),
        delivery(10, "run llama-1"),
        delivery(10, "run other-1"),
        delivery(60 + 901, "run llama-1"),
    ]
    found = rows.alerts_of(told(), notices)
    assert [each["subject"] for each in found] == ["run llama-1", "node n1"]
    assert rows.alert_row(found[0], UTC)[1:] == ("pager", "llama is hung", "it began", "sent")
    assert rows.alerts_of(told(suspect_node=None), notices) == [notices[2]]


@pytest.mark.parametrize(
    ("totals", "price", "expected"),
    [
        ({"incidents": 0, "open": 0, "lost_gpu_ns": 0}, None, "No incident opened."),
        (
            {"incidents": 1, "open": 1, "lost_gpu_ns": 7200 * SECOND},
            PRICE,
            "1 incident cost 2.0 GPU-h (5.00 EUR); 1 still open.",
        ),
    ],
)
def test_the_lead_counts_and_prices(
    totals: dict[str, int], price: Mapping[str, Any] | None, expected: str
) -> None:
    group = {"lost_gpu_ns": 1, "cause": "hang", "signature": None, "incidents": 1}
    assert groups.summary(totals, [group][: totals["incidents"]], price) == expected


def test_a_long_name_is_cut_at_its_end_and_others_are_whole() -> None:
    assert rows.short("\u7ffb\u8a33" * 20) == "\u7ffb\u8a33" * 20
    assert rows.short("x" * 41) == "x" * 39 + "\u2026"


def test_phases_without_time_are_left_out_and_none_draws_no_bar() -> None:
    bar = rows.phase_bar({"detect": 30 * SECOND, "wait": 0, "load": 10 * SECOND})
    assert 'aria-label="detect 30 s, load 10 s"' in bar
    assert "75.0 %" in bar
    assert rows.phase_bar({"detect": 0}) == ""


def found(columns: dict[str, str], *cells: tuple[Any, ...]) -> dict[str, Any]:
    named = [{"name": name, "type": kind} for name, kind in columns.items()]
    return {"columns": named, "rows": [list(row) for row in cells]}


def test_words_and_numbers_are_bars_and_times_and_numbers_lines() -> None:
    bars = figures.chart(found({"cause": "string", "lost_gpu_hours": "double"}, ("a", 2), ("b", 1)))
    assert bars is not None
    assert (bars.data[0].type, list(bars.data[0].y), list(bars.data[0].x)) == (
        "bar",
        ["a", "b"],
        [2, 1],
    )
    assert bars.layout.xaxis.title.text == "lost GPU hours"
    columns = {"week": "date32[day]", "incidents": "int64", "incidents_change": "int64"}
    lines = figures.chart(found(columns, ("2026-11-23", 1, None), ("2026-11-16", 9, 2)))
    assert lines is not None
    assert [(line.type, list(line.x)) for line in lines.data] == [
        ("scatter", ["2026-11-16", "2026-11-23"])
    ]


def test_two_columns_of_numbers_are_points_and_other_shapes_have_no_chart() -> None:
    points = figures.chart(found({"a": "int64", "b": "double"}, (1, 2.0), (3, 4.0)))
    assert points is not None
    assert points.data[0].mode == "markers"
    for columns, cells in (
        ({"a": "int64"}, [(1,), (2,)]),
        ({"a": "string"}, [("x",), ("y",)]),
        ({"a": "string", "b": "int64"}, [("x", 1)]),
        ({"a": "string", "b": "int64"}, [("x", 1), ("x", 2)]),
        ({"a": "string", "b": "int64"}, [("x", 1), (None, 2)]),
    ):
        assert figures.chart(found(columns, *cells)) is None


@pytest.mark.parametrize(
    ("told_by", "read"),
    [
        ("lost_node: the node left the group", "lost node: the node left the group"),
        ("builtins.RuntimeError: failed start", "RuntimeError: failed start"),
        ("Xid 79", "Xid 79"),
        ("torch_npu.Error: x", "torch_npu.Error: x"),
        ("exit code 1 on rank 3", "exit code 1 on rank 3"),
    ],
)
def test_evidence_reads_as_words_and_a_program_s_own_names_stay(told_by: str, read: str) -> None:
    assert rows.readable(told_by) == read


def test_the_first_sentence_of_an_incident_says_what_who_and_the_cost() -> None:
    one = told(
        headline="Killed on rank 3 (n1); recovered after 1 min 21 s.",
        cause="killed",
        lost_gpu_ns=4 * 3_600 * SECOND,
        price=PRICE,
    )

    sentence = rows.headline(one).html

    assert sentence.startswith('<b>Killed</b> on rank 3 (<a href="hardware?node=n1"')
    assert sentence.endswith("recovered after 1 min 21 s; <b>4.0 GPU-h lost</b> (10.00 EUR).")
    free = rows.headline(one | {"lost_gpu_ns": 0, "suspect_node": None}).html
    assert free == "<b>Killed</b> on rank 3 (n1); recovered after 1 min 21 s."
