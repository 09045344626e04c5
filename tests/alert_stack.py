"""What alerts pass through, as a user starts it: a collector, and a Prometheus and Alertmanager."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_process import clean_environment
from alertmanager_process import alertmanager
from headway.cli import main
from prometheus_process import prometheus

_STOP = 60.0


@contextmanager
def collecting(folder: Path, *options: str) -> Iterator[str]:
    """Serve `headway collect` with these options; give its address."""
    files = ("--database", str(folder / "events.duckdb"), "--tokens", str(folder / "tokens.json"))
    with (folder / "collector.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "headway", "collect", *files, "--port", "0", *options],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        yield next(
            line.removeprefix("listening on ").strip()
            for line in process.stdout
            if line.startswith("listening on ")
        )
    finally:
        process.terminate()
        process.wait(_STOP)
        process.stdout.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """Addresses of a Prometheus and the Alertmanager that it tells."""

    prometheus: str
    alertmanager: str


@contextmanager
def standard(folder: Path, collector: str, alerts_file: Path, interval: str) -> Iterator[Standard]:
    """Serve a Prometheus and an Alertmanager with what is exported of an alerts file.

    `interval` is the time between two scrapes, and between two evaluations.
    """
    rules, routes = folder / "rules.yml", folder / "routes.yml"
    for form, path in (("prometheus", rules), ("alertmanager", routes)):
        words = ["alerts", "export", form, "--alerts-file", str(alerts_file)]
        assert main([*words, "--output", str(path)]) == 0
    shipped = rules.read_text(encoding="utf-8")
    rules.write_text(shipped.replace("interval: 15s", f"interval: {interval}"), encoding="utf-8")
    with (
        alertmanager(folder, routes.read_text(encoding="utf-8")) as manager,
        prometheus(folder, _scraping(collector, manager, rules, interval)) as server,
    ):
        yield Standard(prometheus=server, alertmanager=manager)


def _scraping(collector: str, manager: str, rules: Path, interval: str) -> str:
    """Return a configuration of Prometheus, as JSON, which is YAML."""
    hosts = [collector.removeprefix("http://")]
    managers = [manager.removeprefix("http://")]
    return json.dumps(
        {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": managers}]}]},
            "scrape_configs": [{"job_name": "headway", "static_configs": [{"targets": hosts}]}],
        }
    )
