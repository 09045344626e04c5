"""Both worlds one after the other, and one verdict."""

import math
import time
from pathlib import Path
from random import Random
from typing import Any

from chaos.simulated import simulate
from chaos.training import train
from chaos.verdict import Verdict, verdict
from chaos.world import Counts, World
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import CollectorBusy


def disturb(folder: Path, kills: int, chance: Random) -> dict[str, Any]:
    """Kill so many times, a tenth of them around a real training; return what is printed."""
    begun = time.monotonic()
    counts = Counts()
    real = math.ceil(kills / 10)
    (folder / "training").mkdir()
    verdicts = []
    with World(folder / "real", chance, counts) as world:
        train(world, real, chance, folder / "training" / "run")
        verdicts.append(_judged(world))
    with World(folder / "simulated", chance, counts) as world:
        simulate(world, kills - real, chance)
        verdicts.append(_judged(world))
    found = {
        "kills": sum(counts.kills.values()),
        "kills_by_victim": counts.kills,
        "kills_on_a_training": real,
        "kills_while_starting": counts.while_starting,
        "acknowledged": sum(one.acknowledged for one in verdicts),
        "lost": sum(one.lost for one in verdicts),
        "duplicated": sum(one.duplicated for one in verdicts),
        "opens": counts.opens,
        "failed_opens": counts.failed_opens,
        "ledgers": sum(len(one.runs) for one in verdicts),
        "different_ledgers": [run for one in verdicts for run in one.different],
        "errors": counts.errors,
        "seconds": round(time.monotonic() - begun, 1),
    }
    wrong = ("lost", "duplicated", "failed_opens", "different_ledgers")
    return {**found, "passed": not any(found[name] for name in wrong)}


_PATIENCE = 600.0
"""Seconds for a collector to read and compute again what it has to answer for."""


def _judged(world: World) -> Verdict:
    with CollectorClient(ClientSettings(endpoint=world.collector.address, timeout=60)) as client:
        live = _reports(client, time.monotonic() + _PATIENCE)
    status, errors = world.collector.stop()
    if status != 0:
        world.counts.errors.append(errors)
    return verdict(world.truth, world.database, live)


def _reports(client: CollectorClient, deadline: float) -> dict[str, dict[str, Any]]:
    """Return the report of each run, as soon as the collector is not busy any more."""
    while True:
        try:
            return {item["run"]: client.report(item["run"]) for item in client.runs()}
        except CollectorBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
