"""Recorder, agent and collector as real processes, killed in mid-run: nothing lost or doubled.

Before the ranks exit, the test copies their spools; the store must hold exactly what the copies
hold, and its report must be the one that follows from the copies.
"""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_process import agent_process, clean_environment
from arrivals import numbers, stored, wait_until
from collector_process import CollectorProcess, collector_process
from headway.events import Envelope, RankExited, Steps
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.ledger import Timeline
from headway.report import report as full_report
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import UnknownRun
from otlp_endpoint import otlp_endpoint
from training_process import TrainingProcess

pytestmark = pytest.mark.slow

RUN = "llama-7"


def report(collector: CollectorProcess) -> dict[str, Any]:
    with CollectorClient(ClientSettings(endpoint=collector.address)) as client:
        return dict(client.report(RUN))


def highest_step(collector: CollectorProcess) -> int:
    try:
        return int(report(collector)["steps"]["highest"])
    except UnknownRun:
        return 0


def wait_for_step(collector: CollectorProcess, step: int) -> None:
    wait_until(lambda: highest_step(collector) == step)


def port_of(collector: CollectorProcess) -> int:
    return int(collector.address.rpartition(":")[2])


@contextmanager
def training(spool: Path) -> Iterator[list[TrainingProcess]]:
    ranks = [TrainingProcess(spool, rank=rank, world_size=2) for rank in range(2)]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()


def all_step(ranks: list[TrainingProcess], count: int) -> None:
    for rank in ranks:
        rank.steps(count)


def end(ranks: list[TrainingProcess], spool: Path, copy: Path) -> None:
    """End the run, copy what the ranks recorded, and let them exit."""
    for rank in ranks:
        rank.end()
    for folder in spools(spool):
        reader = SpoolReader(folder)
        if reader.producer is not None and reader.producer.rank is not None:
            shutil.copytree(folder, copy / folder.name)
    for rank in ranks:
        rank.exit()


def recorded(copy: Path) -> list[Envelope]:
    found: list[Envelope] = []
    for folder in spools(copy):
        found += SpoolReader(folder).read(limit=10**9).envelopes
    return found


def import_spools(folder: Path, endpoint: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway", "import", "spool", str(folder)]
    return subprocess.run(
        [*command, "--endpoint", endpoint, *options],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_undisturbed(collector: CollectorProcess, database: Path, copy: Path) -> None:
    """Compare what arrived with what the ranks wrote, and both reports."""
    disturbed = report(collector)
    assert collector.stop()[0] == 0
    arrived = stored(database)
    written = recorded(copy)
    ranks = numbers(written)
    assert {name: found for name, found in numbers(arrived).items() if name in ranks} == ranks
    for name, found in numbers(arrived).items():
        assert found == list(range(len(found))), name
    timeline = Timeline(RUN)
    timeline.add(written)
    timeline.add([item for item in arrived if item.producer not in ranks])  # the agents' own
    undisturbed = full_report(timeline.ledger(disturbed["as_of"]))
    assert disturbed == json.loads(json.dumps(undisturbed))
    assert (disturbed["state"], disturbed["dropped_events"]) == ("completed", 0)


def test_killing_the_collector_in_mid_run_loses_and_doubles_nothing(tmp_path: Path) -> None:
    spool, copy, database = tmp_path / "spool", tmp_path / "copy", tmp_path / "store.duckdb"
    with ExitStack() as stack:
        collector = stack.enter_context(collector_process(database))
        agent = stack.enter_context(agent_process(spool, collector.address))
        ranks = stack.enter_context(training(spool))
        steps = 0
        for moment in range(3):
            all_step(ranks, 200)
            steps += 200
            if moment % 2:  # once with all of it stored, once in the middle of taking it
                wait_for_step(collector, steps)
            collector.kill()
            all_step(ranks, 100)
            steps += 100
            collector = stack.enter_context(collector_process(database, port_of(collector)))
        end(ranks, spool, copy)
        wait_until(lambda: not spools(spool))
        assert agent.stop()[0] == 0
        assert highest_step(collector) == steps
        assert_undisturbed(collector, database, copy)


def test_killing_the_agent_in_mid_run_loses_and_doubles_nothing(tmp_path: Path) -> None:
    spool, copy, database = tmp_path / "spool", tmp_path / "copy", tmp_path / "store.duckdb"
    with ExitStack() as stack:
        collector = stack.enter_context(collector_process(database))
        agent = stack.enter_context(agent_process(spool, collector.address))
        ranks = stack.enter_context(training(spool))
        steps = 0
        for moment in range(3):
            all_step(ranks, 200)
            steps += 200
            if moment % 2:
                wait_for_step(collector, steps)
            agent.kill()
            all_step(ranks, 100)
            steps += 100
            agent = stack.enter_context(agent_process(spool, collector.address))
        end(ranks, spool, copy)
        wait_until(lambda: not spools(spool))
        assert agent.stop()[0] == 0
        assert highest_step(collector) == steps
        assert_undisturbed(collector, database, copy)


def test_no_kill_at_any_moment_loses_or_doubles_a_step(tmp_path: Path) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    chance = random.Random(7)  # noqa: S311  # a schedule, not a secret
    certain = cut_short = 0
    with ExitStack() as stack:
        collector = stack.enter_context(collector_process(database))
        agent = stack.enter_context(agent_process(spool, collector.address))
        ranks = stack.enter_context(training(spool))
        for victim in chance.sample(["collector", "agent", "rank"] * 4, k=12):
            counts = [chance.randint(1, 400) for _ in ranks]
            for rank, count in zip(ranks, counts, strict=True):
                rank.begin_steps(count)
            if victim == "rank":
                ranks.pop().kill()
                cut_short += counts.pop()
                ranks.append(TrainingProcess(spool, rank=1, world_size=2))
                ranks[0].finish()
            elif victim == "collector":
                collector.kill()
                collector = stack.enter_context(collector_process(database, port_of(collector)))
            else:
                agent.kill()
                agent = stack.enter_context(agent_process(spool, collector.address))
            if victim != "rank":
                for rank in ranks:
                    rank.finish()
            certain += sum(counts)
        for rank in ranks:
            rank.exit()
        wait_until(lambda: not spools(spool))
        assert agent.stop()[0] == 0
        assert collector.stop()[0] == 0
    arrived = stored(database)
    for name, found in numbers(arrived).items():
        assert found == list(range(len(found))), name
    steps = sum(
        item.last_sequence - item.first_sequence + 1
        for item in arrived
        if isinstance(item.event, Steps)
    )
    assert certain <= steps <= certain + cut_short


def test_the_next_agent_adopts_the_spools_of_ranks_that_died_without_one(tmp_path: Path) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    with training(spool) as ranks:
        all_step(ranks, 300)
    expected = numbers(recorded(spool))
    with collector_process(database) as collector:
        with agent_process(spool, collector.address):
            wait_until(lambda: not spools(spool))
        assert highest_step(collector) == 300
        assert collector.stop()[0] == 0
    envelopes = stored(database)
    assert {name: found for name, found in numbers(envelopes).items() if name in expected} == (
        expected
    )
    exits = [item for item in envelopes if isinstance(item.event, RankExited)]
    assert sorted(item.rank for item in exits if item.rank is not None) == [0, 1]
    last_steps = max(item.monotonic for item in envelopes if isinstance(item.event, Steps))
    assert all(abs(item.monotonic - last_steps) < 60e9 for item in exits)


def test_a_training_without_an_agent_says_so_and_is_imported_twice_but_counted_once(
    tmp_path: Path,
) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    rank = TrainingProcess(spool)
    rank.steps(300)
    rank.end()
    words = rank.exit()
    assert words.count(str(spool)) == 2
    assert "no agent ships it" in words
    with collector_process(database) as collector:
        first = import_spools(spool, collector.address)
        again = import_spools(spool, collector.address, "--json")
        assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
        assert f"headway report {RUN}" in first.stdout
        done = json.loads(again.stdout)
        assert (done["producers"], done["runs"], done["refused"]) == (1, [RUN], 0)
        assert report(collector)["steps"]["highest"] == 300
        assert collector.stop()[0] == 0
    assert numbers(stored(database)) == numbers(recorded(spool))
    assert [len(sequence) for sequence in numbers(stored(database)).values()] == [
        done["acknowledged"]
    ]


def test_an_import_without_a_collector_names_the_next_step(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    rank = TrainingProcess(spool)
    rank.steps(3)
    rank.exit()
    with otlp_endpoint() as gone:
        address = gone.address
    refused = import_spools(spool, address)
    assert refused.returncode == 2
    assert f"no collector answers at {address}" in refused.stderr
    assert "headway collect" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert len(spools(spool)) == 1


@pytest.mark.parametrize(("make", "words"), [(False, "there is no folder"), (True, "no spool in")])
def test_an_import_of_nothing_says_so(tmp_path: Path, make: bool, words: str) -> None:
    folder = tmp_path / "spool"
    if make:
        folder.mkdir()
    refused = import_spools(folder, "http://127.0.0.1:1")
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_batch_set_aside_by_an_agent_can_be_imported_later(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    rank = TrainingProcess(spool)
    rank.steps(30)
    rank.exit()
    expected = numbers(recorded(spool))
    with otlp_endpoint() as endpoint:
        endpoint.answer = lambda batch: 400
        with agent_process(spool, endpoint.address):
            wait_until(lambda: not spools(spool))
        endpoint.answer = lambda batch: 200
        imported = import_spools(spool, endpoint.address)
        assert imported.returncode == 0, imported.stderr
        assert numbers(endpoint.accepted) == expected
