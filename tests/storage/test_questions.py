"""Every saved question gives the answer that its few made-up rows have by hand."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from headway.events import Envelope, Event, IncidentCorrected, Note, RunConfigured
from headway.metrics import CATEGORIES
from headway.storage.questions import QUESTIONS, QuestionRefused, bound, parsed
from headway.storage.questions.model import KINDS
from headway.storage.store import EventStore
from headway.storage.tables import ATTEMPTS, CHECKPOINTS, INCIDENTS, RUNS
from headway.storage.views import readable
from records import record

SECOND = 10**9
HOUR = 3600 * SECOND
DAY = 24 * HOUR
MONDAY = 1_700_438_400 * SECOND
"""2023-11-20, 00:00 UTC."""


def run_row(name: str, team: str, **more: Any) -> dict[str, Any]:
    row = dict.fromkeys((column.name for column in RUNS.c), None) | {
        "run": f"{name}-1",
        "run_name": name,
        "state": "completed",
        "provisional": False,
        "elapsed": 100 * HOUR,
        **dict.fromkeys(CATEGORIES, 0),
        "gpus": 8,
        "labels": f'{{"team": "{team}"}}',
        "summary": "{}",
    }
    return _said(row | more)


def incident_row(identity: str, run: str, opened: int, cause: str, **more: Any) -> dict[str, Any]:
    """Return an incident that was recovered after a minute and cost a GPU-hour, unless said."""
    row = dict.fromkeys((column.name for column in INCIDENTS.c), None) | {
        "run": f"{run}-1",
        "incident": identity,
        "number": 1,
        "opened": opened,
        "recovered": opened + 60 * SECOND,
        "cause": cause,
        "layer": "launcher",
        "rollback_steps": 10,
        "rollback": 600 * SECOND,
        "lost": HOUR,
        "lost_gpu": HOUR,
        "attempts": 1,
        "outcome": "held_at_first",
        "content": "{}",
    }
    return _said(row | more)


def _said(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("revision", "recorded", "present")}


def checkpoint_row(run: str, number: int, step: int, durable: int, state: str) -> dict[str, Any]:
    row = dict.fromkeys((column.name for column in CHECKPOINTS.c), None)
    return _said(
        row
        | {"run": f"{run}-1", "number": number, "checkpoint": f"step-{step}", "step": step}
        | {"durable_since": durable, "state": state}
    )


PHASES = (
    '{"state": "closed", "attempt_ids": ["a1", "a2"],'
    ' "phases": {"detect": %d, "wait": %d, "recompute": %d}}'
)
SUMMARY = (
    '{"longest_phases": [{"phase": "step", "longest_ns": 45000000000, "rank": 3, "attempt": "a1",'
    ' "timeout": "process_group", "timeout_ns": 60000000000, "ratio": 0.75},'
    ' {"phase": "startup", "longest_ns": 90000000000, "rank": 0, "attempt": "a1",'
    ' "timeout": null, "timeout_ns": null, "ratio": null}]}'
)
ALPHA = {
    RUNS: [run_row("alpha", "vision", rolled_back=5 * HOUR, checkpoint_save=HOUR, summary=SUMMARY)],
    ATTEMPTS: [],
    INCIDENTS: [
        incident_row(
            "i1",
            "alpha",
            MONDAY + HOUR,
            "hang",
            suspect_node="n1",
            lost_gpu=8 * HOUR,
            rollback_steps=40,
            content=PHASES % (30 * SECOND, 10 * SECOND, 60 * SECOND),
        ),
        incident_row(
            "i2",
            "alpha",
            MONDAY + 30 * HOUR,
            "hang",
            suspect_node="n1",
            lost_gpu=2 * HOUR,
            recovered=MONDAY + 30 * HOUR + 300 * SECOND,
            attempts=3,
            outcome="held_after_retries",
            content=PHASES % (90 * SECOND, 10 * SECOND, 0),
        ),
        incident_row(
            "i3",
            "alpha",
            MONDAY + 8 * DAY,
            "gpu_fault",
            suspect_node="n2",
            lost_gpu=4 * HOUR,
            recovered=None,
            layer=None,
            outcome="not_recovered",
        ),
    ],
    CHECKPOINTS: [
        checkpoint_row("alpha", 1, 100, MONDAY + 30 * 60 * SECOND, "verified"),
        checkpoint_row("alpha", 2, 200, MONDAY + 2 * HOUR, "revoked"),
    ],
}
BETA = {
    RUNS: [run_row("beta", "text", rolled_back=HOUR, checkpoint_save=10 * HOUR)],
    ATTEMPTS: [],
    INCIDENTS: [
        incident_row(
            "i4",
            "beta",
            MONDAY + DAY,
            "hang",
            rollback_steps=5,
            content='{"attempt_ids": ["b1"]}',
        )
    ],
    CHECKPOINTS: [],
}


def told(run: str, attempt: str, at: int, node: str, **settings: Any) -> Envelope:
    """Return what a rank said of its settings at a time."""
    event = RunConfigured(**settings)
    made = record(at // SECOND % 10**6, event, producer=f"{attempt:0<32}", run=f"{run}-1")
    return replace(made, anchor=at - made.monotonic, attempt=attempt, node=node)


def said(sequence: int, run: str | None, event: Event) -> Envelope:
    """Return what the collector records when a person speaks."""
    made = record(sequence, event, producer="cd" * 16, run=run)
    return replace(made, attempt=None, rank=None, node=None, boot_id=None)


EVENTS = [
    told("alpha", "a1", MONDAY, "n1", checkpoint_interval=100, timeouts={"process_group": 60}),
    told(
        "alpha",
        "a2",
        MONDAY + 2 * DAY,
        "n1",
        checkpoint_interval=100,
        timeouts={"process_group": 90},
        code_revision="f00",
    ),
    told("alpha", "a2", MONDAY + 3 * DAY, "n2", checkpoint_interval=100),
    told("beta", "b1", MONDAY, "n3", checkpoint_interval=10),
    told("beta", "b1", MONDAY + 2 * DAY, "n3", checkpoint_interval=10),
    said(
        1,
        "alpha-1",
        IncidentCorrected(incident="i1", cause="network", author="Ada", reason="saw the switch"),
    ),
    said(
        2,
        None,
        Note(text="Fan replaced", author="Grace", about="node", subject="n1", labels=("to-do",)),
    ),
    said(3, "alpha-1", Note(text="a program's", author="NVRx")),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventStore]:
    with closing(EventStore.open(tmp_path_factory.mktemp("asked") / "events.duckdb")) as opened:
        opened.append(EVENTS)
        for rows in (ALPHA, BETA):
            opened.keeping.say({rows[RUNS][0]["run"]: rows}, MONDAY)
        yield opened


def answer(store: EventStore, name: str, **given: Any) -> list[dict[str, Any]]:
    question = QUESTIONS[name]
    found = store.reading.sql.ask(question.sql, values=bound(question, given))
    rows: list[dict[str, Any]] = found.table.to_pylist()
    return rows


def only(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.slow
def test_the_worst_incidents_come_first(store: EventStore) -> None:
    found = answer(store, "worst-incidents", limit=3)
    assert only(found, "incident", "lost_gpu_hours", "team") == [
        ("i1", 8.0, "vision"),
        ("i3", 4.0, "vision"),
        ("i2", 2.0, "vision"),
    ]
    assert found[0]["opened"] == datetime(2023, 11, 20, 1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"run": "beta"}, ["i4"]),
        ({"run": "beta-1"}, ["i4"]),
        ({"team": "text"}, ["i4"]),
        ({"cause": "gpu_fault"}, ["i3"]),
        ({"since": MONDAY + DAY, "until": MONDAY + 30 * HOUR}, ["i4"]),
        ({"team": "x' OR 'x' = 'x"}, []),
    ],
)
def test_parameters_choose_the_incidents(
    store: EventStore, given: Mapping[str, Any], expected: list[str]
) -> None:
    assert [row["incident"] for row in answer(store, "worst-incidents", **given)] == expected


def test_time_lost_is_told_per_phase_in_their_order(store: EventStore) -> None:
    found = answer(store, "time-lost-per-phase")
    assert [row["phase"] for row in found] == [
        *("detect", "teardown", "wait", "start", "load", "recompute")
    ]
    detect, teardown, wait, *_ = found
    assert only([detect], "incidents", "share", "median_seconds", "longest_seconds") == [
        (2, pytest.approx(0.6), 30.0, 90.0)
    ]
    assert wait["hours"] == pytest.approx(20 / 3600)
    assert only([teardown], "incidents", "hours", "median_seconds") == [(0, 0.0, None)]


def test_weeks_stand_beside_the_week_before(store: EventStore) -> None:
    assert only(
        answer(store, "week-against-week"),
        *("week", "incidents", "incidents_change", "lost_gpu_hours", "lost_gpu_hours_change"),
        *("median_recovery_seconds", "costliest_cause", "runs"),
    ) == [
        (date(2023, 11, 27), 1, -2, 4.0, -7.0, None, "gpu_fault", 1),
        (date(2023, 11, 20), 3, None, 11.0, None, 60.0, "hang", 2),
    ]


def test_recovery_times_are_told_by_cause(store: EventStore) -> None:
    assert only(
        answer(store, "recovery-by-cause"),
        *("cause", "incidents", "not_recovered", "median_seconds", "p95_seconds"),
        "lost_gpu_hours",
    ) == [("hang", 3, 0, 60.0, 300.0, 11.0), ("gpu_fault", 1, 1, None, None, 4.0)]


def test_attempts_are_told_by_cause_and_layer(store: EventStore) -> None:
    assert only(
        answer(store, "attempts-per-recovery"),
        *("cause", "layer", "incidents", "held_at_first", "held_after_retries"),
        *("not_recovered", "median_attempts", "most_attempts"),
    ) == [("hang", "launcher", 3, 2, 1, 0, 1, 3), ("gpu_fault", None, 1, 0, 0, 1, 1, 1)]


def test_rollback_stands_beside_the_interval_and_what_saving_costs(store: EventStore) -> None:
    assert only(
        answer(store, "rollback-by-checkpoint-interval"),
        *("interval_steps", "runs", "incidents", "median_rollback_steps", "most_rollback_steps"),
        *("rolled_back_share", "saving_share"),
    ) == [(10, 1, 1, 5, 5, 0.01, 0.1), (100, 1, 3, 10, 40, 0.05, 0.01)]


def test_freshness_is_that_of_the_newest_save_that_was_durable_by_then(store: EventStore) -> None:
    assert only(
        answer(store, "freshness-at-fault"), "incident", "checkpoint", "state", "age_minutes"
    ) == [
        ("i4", None, None, None),
        ("i3", "step-200", "revoked", pytest.approx((8 * 24 - 2) * 60)),
        ("i2", "step-200", "revoked", pytest.approx(28 * 60)),
        ("i1", "step-100", "verified", pytest.approx(30)),
    ]


def test_the_longest_phases_stand_beside_their_timeouts(store: EventStore) -> None:
    assert only(
        answer(store, "longest-phases"),
        *("run_name", "phase", "timeout", "longest_seconds", "timeout_seconds", "ratio", "rank"),
    ) == [("alpha", "step", "process_group", 45.0, 60.0, 0.75, 3)]


def test_nodes_are_told_by_suspicion_and_by_presence(store: EventStore) -> None:
    assert only(
        answer(store, "nodes-in-most-incidents"),
        *("node", "suspected", "present", "node_days", "causes", "lost_gpu_hours"),
    ) == [
        ("n1", 2, 2, 0.0, "hang", 10.0),
        ("n2", 1, 0, 0.0, "gpu_fault", 4.0),
        ("n3", 0, 1, 2.0, None, 0.0),
    ]


def test_rates_are_told_per_1000_node_days_with_an_interval(store: EventStore) -> None:
    found = answer(store, "faults-per-1000-node-days")
    assert only(found, "cause", "incidents", "node_days", "per_1000_node_days") == [
        ("all causes", 4, 2.0, 2000.0),
        ("hang", 3, 2.0, 1500.0),
        ("gpu_fault", 1, 2.0, 500.0),
    ]
    # The exact interval of 4 is 1.0899 to 10.2416; the approximation is good to a few percent.
    assert found[0]["at_least"] == pytest.approx(500 * 1.0899, rel=0.03)
    assert found[0]["at_most"] == pytest.approx(500 * 10.2416, rel=0.01)
    half = answer(store, "faults-per-1000-node-days", run="beta", until=MONDAY + DAY + 1)
    assert half[0]["node_days"] == pytest.approx(1.0)


def test_what_an_attempt_did_differently_is_told_setting_by_setting(store: EventStore) -> None:
    columns = ("run_name", "attempt", "setting", "before", "after")
    assert only(answer(store, "what-changed"), *columns) == [
        ("alpha", "a2", "code_revision", None, "f00"),
        ("alpha", "a2", "timeouts.process_group", "60", "90"),
    ]
    assert only(answer(store, "what-changed", setting="code"), *columns[2:]) == [
        ("code_revision", None, "f00")
    ]


def test_what_people_wrote_is_found_by_its_words(store: EventStore) -> None:
    columns = ("author", "action", "about", "subject", "text", "cause")
    assert only(answer(store, "what-people-wrote"), *columns) == [
        ("Grace", "noted", "node", "n1", "Fan replaced", None),
        ("Ada", "corrected", "incident", "i1", "saw the switch", "network"),
    ]
    assert only(answer(store, "what-people-wrote", search="FAN"), "subject") == [("n1",)]
    assert only(answer(store, "what-people-wrote", search="to-do"), "labels") == [('["to-do"]',)]
    assert answer(store, "what-people-wrote", about="run") == []


def test_every_question_is_declared_whole() -> None:
    for name, question in QUESTIONS.items():
        assert name == question.name
        assert question.asks.endswith("?")
        assert question.notes.endswith(".")
        names = [one.name for one in question.parameters]
        assert len({*names}) == len(names)
        for one in question.parameters:
            assert one.kind in KINDS
            assert f"${one.name}" in question.sql
        assert any(view in question.sql for view in readable())


def test_every_question_answers_an_empty_database(tmp_path: Path) -> None:
    with closing(EventStore.open(tmp_path / "empty.duckdb")) as opened:
        for question in QUESTIONS.values():
            opened.reading.sql.ask(question.sql, values=bound(question, {}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nobody": "x"}, "has no parameter 'nobody'"),
        ({"cause": "bad luck"}, "unknown cause 'bad luck'"),
        ({"limit": "many"}, "limit must be a whole number from 1 to 100000, got 'many'"),
        ({"limit": 0}, "limit must be"),
        ({"limit": True}, "limit must be"),
        ({"since": "9" * 5000}, "since must be a time in UTC ns"),
    ],
)
def test_a_value_that_does_not_fit_is_a_sentence(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(QuestionRefused, match=said) as refused:
        bound(QUESTIONS["worst-incidents"], given)
    assert refused.value.next_step


def test_pairs_are_read_and_what_is_none_is_a_sentence() -> None:
    assert parsed(["team=a=b", "run="]) == {"team": "a=b", "run": ""}
    assert bound(QUESTIONS["longest-phases"], {"run": "", "limit": "7"}) == {
        "run": None,
        "team": None,
        "limit": 7,
    }
    for pairs in (["team"], ["=x"], ["a=1", "a=2"]):
        with pytest.raises(QuestionRefused):
            parsed(pairs)
