"""A collector with the made-up fleet of the simulator, taken in through the real ingest.

What has ended is taken in once and its database kept in the temporary folder, by the content of
the code that makes it; what is live is sent anew at each start, and goes on while it is served.
"""

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from collector_process import COMMAND, CollectorProcess
from headway import dashboard as _dashboard  # any module: its place tells where the sources are
from headway.events import Envelope
from headway.exporter.shipping import NotTakenError, Shipper
from headway.simulate.fleet import Fleet, fleet

_SOURCES = Path(_dashboard.__file__).resolve().parents[1] / "src" / "headway"
_DAY = 86_400 * 10**9
_BATCH = 5_000
_KEPT = 3
_PATIENCE = 300.0
"""Seconds for which one batch is sent again on a busy machine."""
BUSY = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is of everything."""

    runs: int = 40
    live: int = 3
    nodes: int = 64
    incidents: int = 230


ALERTS = """
default = "oncall"

# lower than a site would have them, so that there is something to see
[rules.GoodputBurnSlow]
threshold = 0.2
hold = 0
severity = "page"

[rules.TrainingGoodputLow]
threshold = 0.01
hold = 0

[rules.RestartBudgetLow]
threshold = 100

[rules.CheckpointStale]
threshold = 0.01
hold = 86400

[receivers.oncall]
kind = "log"

[receivers.pretraining]
kind = "log"

[[routes]]
match = ['team="pretraining"']
receiver = "pretraining"
escalate_to = "oncall"
escalate_after = 900
"""
"""Whom the fleet's alerts reach; nobody outside the collector's own log."""
WHOLE = Size()
SMALL = Size(runs=6, live=1, nodes=8, incidents=24)


@contextmanager
def seeded_collector(size: Size = WHOLE, price: float = 2.5) -> Iterator[str]:
    """Serve the fleet as it is now and yield the collector's address; live runs go on."""
    day = time.time_ns() // _DAY
    kept = _database(size, day)
    with tempfile.TemporaryDirectory(prefix="headway-fleet-") as folder:
        database = Path(folder) / "headway.duckdb"
        shutil.copyfile(kept, database)
        alerts = Path(folder) / "alerts.toml"
        alerts.write_text(ALERTS, encoding="utf-8")
        variables = {
            "HEADWAY_COLLECTOR_ALERTS_FILE": str(alerts),
            "HEADWAY_COLLECTOR_GPU_HOUR_PRICE": str(price),
            "HEADWAY_COLLECTOR_STEP_RETENTION_DAYS": "0",
        }
        collector = CollectorProcess(database, variables=variables, program=COMMAND)
        going = fleet(
            time.time_ns(),
            runs=size.live,
            live=size.live,
            nodes=size.nodes,
            incidents=4 * size.live,
            seed=2,
        )
        stop = threading.Event()
        feeder = threading.Thread(target=_feed, args=(going, collector.address, stop))
        try:
            _send(_since(going, 0, going.now), collector.address)
            feeder.start()
            _people(collector.address)
            yield collector.address
        finally:
            stop.set()
            if feeder.ident is not None:
                feeder.join()
            collector.stop()


def _database(size: Size, day: int) -> Path:
    """Return the database of what has ended, made where it is not there yet."""
    digest = hashlib.sha256(f"{day} {size}".encode())
    for part in ("simulate", "../../storage/migrations", "events", "wire.py"):
        found = (_SOURCES / part).resolve()
        for source in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            digest.update(source.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"headway-seeded-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = folder / f"{digest.hexdigest()[:24]}.duckdb"
    if not kept.exists():
        made = fleet(
            day * _DAY,
            runs=size.runs - size.live,
            live=0,
            nodes=size.nodes,
            incidents=size.incidents,
        )
        with tempfile.TemporaryDirectory(dir=folder) as making:
            database = Path(making) / "headway.duckdb"
            collector = CollectorProcess(
                database, variables={"HEADWAY_COLLECTOR_STEP_RETENTION_DAYS": "0"}
            )
            try:
                _send(made.machines, collector.address)
                for run in made.runs:
                    _send(run.events, collector.address)
            finally:
                collector.stop()
            database.replace(kept)
        for old in sorted(folder.glob("*.duckdb"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
            old.unlink()
    return kept


def _since(going: Fleet, since: int, now: int) -> list[Envelope]:
    """Return what happened after one time and up to another, UTC ns."""
    every = (going.machines, *(run.events for run in going.runs))
    return [event for events in every for event in events if since < event.wall <= now]


def _send(events: Sequence[Envelope], address: str) -> None:
    shipper = Shipper(
        endpoint=address, token=None, refused=Path(tempfile.gettempdir()) / "headway-refused"
    )
    try:
        for first in range(0, len(events), _BATCH):
            batch = events[first : first + _BATCH]
            deadline = time.monotonic() + _PATIENCE
            while True:
                try:
                    done = shipper.ship(batch)
                    break
                except NotTakenError:  # slow, or busy with what it has
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.5)
            assert not done.refused, done
    finally:
        shipper.close()


def _feed(going: Fleet, address: str, stop: threading.Event) -> None:
    """Send what the live runs record as time passes."""
    sent = going.now
    while not stop.wait(2.0):
        now = time.time_ns()
        with suppress(NotTakenError):
            _send(_since(going, sent, now), address)
            sent = now


def _people(address: str) -> None:
    """Let people take charge of incidents and correct a cause."""
    with httpx.Client(base_url=f"{address}/api/v1", trust_env=False, timeout=60) as client:
        while (answer := client.get("/incidents", params={"limit": 200})).status_code == BUSY:
            time.sleep(0.5)  # the ledgers of so many runs at once
        for index, incident in enumerate(answer.raise_for_status().json()["incidents"]):
            place = f"/incidents/{incident['incident']}"
            if index % 9 == 0:
                client.post(f"{place}/ack", json={"author": "ana"}).raise_for_status()
            if index % 60 == 5:
                said = {"cause": "network", "author": "M\u00e1rta", "reason": "switch log of row 7"}
                client.post(f"{place}/cause", json=said).raise_for_status()
        _about_alerts(client)


def _about_alerts(client: httpx.Client) -> None:
    """Let people keep one kind of alert quiet and take another, once there is one."""
    quiet = {
        "matchers": ['alertname="RestartBudgetLow"'],
        "author": "ana",
        "reason": "the limit is raised with the next release",
        "until": time.time_ns() + _DAY // 6,
    }
    client.post("/alerts/silences", json=quiet).raise_for_status()
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        groups = client.get("/alerts").raise_for_status().json()["groups"]
        told = [one for one in groups if one["told"] is not None and one["severity"] == "page"]
        if told:
            taken = {"key": told[0]["key"], "author": "kofi"}
            client.post("/alerts/acknowledge", json=taken).raise_for_status()
            return
        time.sleep(0.5)
