"""Saved questions over a made-up fleet give what its ledgers say, whatever way they are asked."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from headway.collector.ledgers import Ledgers
from headway.collector.upkeep import Upkeep
from headway.fleet.rates import NS_PER_DAY
from headway.fleet.stays import stay_of
from headway.incidents.model import PHASES
from headway.settings import CollectorSettings
from headway.simulate.fleet import fleet
from headway.storage.questions import QUESTIONS, bound
from headway.storage.store import EventStore

pytestmark = pytest.mark.slow

DAY = 86_400 * 10**9
NOW = 1_764_460_800 * 10**9
HOUR = 3_600 * 10**9


@dataclass
class Asked:
    """A store with what the ledgers of a fleet say, and their reports."""

    store: EventStore
    ledgers: Ledgers

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [snapshot.report for snapshot in self.ledgers.snapshots()]

    @property
    def incidents(self) -> list[dict[str, Any]]:
        return [
            {**one, "run": report["run"]} for report in self.reports for one in report["incidents"]
        ]

    def answer(self, name: str, **given: Any) -> list[dict[str, Any]]:
        question = QUESTIONS[name]
        found = self.store.reading.sql.ask(question.sql, values=bound(question, given))
        rows: list[dict[str, Any]] = found.table.to_pylist()
        return rows


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    made = fleet(NOW, runs=5, live=0, nodes=8, incidents=24)
    path = tmp_path_factory.mktemp("fleet") / "events.duckdb"
    with closing(EventStore.open(path)) as store:
        ledgers = Ledgers(lambda: NOW + DAY)
        for events in (made.machines, *(run.events for run in made.runs)):
            ledgers.add(store.append(events).envelopes)
        Upkeep(store, ledgers, CollectorSettings(), lambda: NOW + DAY).say()
        yield Asked(store, ledgers)


def nearest(values: list[int], share: float) -> int | None:
    """Return the smallest value that at least a share of all do not exceed."""
    return sorted(values)[max(math.ceil(len(values) * share), 1) - 1] if values else None


def test_the_fleet_has_something_to_ask_about(asked: Asked) -> None:
    assert len(asked.incidents) > 10
    assert len(asked.reports) == 5


def test_the_worst_incidents_are_those_of_the_reports(asked: Asked) -> None:
    worst = sorted(asked.incidents, key=lambda one: -one["lost_gpu_ns"])[:7]
    found = asked.answer("worst-incidents", limit=7)
    assert [row["incident"] for row in found] == [one["incident"] for one in worst]
    assert [row["lost_gpu_hours"] for row in found] == [
        pytest.approx(one["lost_gpu_ns"] / HOUR) for one in worst
    ]


def test_recovery_by_cause_is_that_of_the_reports(asked: Asked) -> None:
    took: dict[str, list[int]] = defaultdict(list)
    number: Counter[str] = Counter()
    for one in asked.incidents:
        number[one["cause"]] += 1
        if one["outcome"] not in ("open", "not_recovered"):
            took[one["cause"]].append(one["recovered"] - one["opened"])
    found = {row["cause"]: row for row in asked.answer("recovery-by-cause")}
    assert {cause: row["incidents"] for cause, row in found.items()} == number
    for cause, row in found.items():
        for column, share in (("median_seconds", 0.5), ("p95_seconds", 0.95)):
            expected = nearest(took[cause], share)
            assert row[column] == (None if expected is None else pytest.approx(expected / 1e9))


def test_time_lost_per_phase_sums_to_that_of_the_reports(asked: Asked) -> None:
    spent: Counter[str] = Counter()
    for one in asked.incidents:
        spent.update(one["phases"])
    found = asked.answer("time-lost-per-phase")
    assert {row["phase"]: row["hours"] for row in found} == {
        phase: pytest.approx(spent[phase] / HOUR) for phase in PHASES
    }
    assert sum(row["share"] for row in found) == pytest.approx(1)


def test_weeks_and_attempts_count_every_incident_once(asked: Asked) -> None:
    for name in ("week-against-week", "attempts-per-recovery", "rollback-by-checkpoint-interval"):
        assert sum(row["incidents"] for row in asked.answer(name)) == len(asked.incidents), name
    assert len(asked.answer("freshness-at-fault")) == len(asked.incidents)


def test_the_longest_phases_are_those_of_the_reports(asked: Asked) -> None:
    expected = {
        (report["run"], one["phase"], one["timeout"]): one["ratio"]
        for report in asked.reports
        for one in report["longest_phases"]
        if one["timeout"] is not None
    }
    found = asked.answer("longest-phases", limit=10_000)
    assert expected
    assert {(row["run"], row["phase"], row["timeout"]): row["ratio"] for row in found} == expected


def test_node_days_are_nearly_those_of_the_ledgers(asked: Asked) -> None:
    stays = [stay_of(one.ledger, one.report) for one in asked.ledgers.snapshots()]
    days = sum(
        stretch.end - stretch.start
        for stay in stays
        for stretches in stay.nodes.values()
        for stretch in stretches
    )
    (whole, *_) = asked.answer("faults-per-1000-node-days")
    assert whole["incidents"] == len(asked.incidents)
    assert whole["node_days"] == pytest.approx(days / NS_PER_DAY, rel=0.02)


def test_suspected_nodes_are_those_of_the_reports(asked: Asked) -> None:
    suspected = Counter(one["suspect_node"] for one in asked.incidents)
    del suspected[None]
    found = asked.answer("nodes-in-most-incidents", limit=1_000)
    assert {row["node"]: row["suspected"] for row in found if row["suspected"]} == suspected
    assert all(row["present"] >= row["suspected"] for row in found)


def test_what_changed_is_told_of_every_attempt_that_was_configured_anew(asked: Asked) -> None:
    found = asked.answer("what-changed", limit=10_000)
    assert found
    assert {row["setting"] for row in found} >= {"code_revision", "options.image"}
    for row in found:
        assert row["before"] != row["after"]
        assert row["attempt_number"] > 1
