"""Prometheus and Alertmanager beside a command's own services, wired to them."""

import json
import shutil
import time
from pathlib import Path

import httpx

from headway.alerts.alertmanager import configuration
from headway.alerts.catalogue import GROUPS
from headway.alerts.prometheus_rules import rule_file
from headway.alerts.site import DEFAULT
from headway.cli.processes import free_port
from headway.cli.refusal import Refusal
from headway.cli.services import POLL, START_TIMEOUT, Services

_PROMETHEUS, _ALERTMANAGER = "prometheus", "prometheus-alertmanager"
_PORTS = {_PROMETHEUS: 9090, _ALERTMANAGER: 9093}
_INTERVAL = "5s"
"""Between two scrapes: a demo is over sooner than the usual 15 s would show much."""


class Monitoring:
    """One Prometheus with the exported rules, and the Alertmanager that it tells."""

    def __init__(self, services: Services) -> None:
        """Start nothing yet."""
        self._services = services
        self._folder = services.folder / "monitoring"
        self.prometheus = self.alertmanager = ""

    @staticmethod
    def check_installed() -> None:
        """Look whether both programs are there.

        Raises:
            Refusal: one of them is missing.
        """
        missing = [name for name in _PORTS if shutil.which(name) is None]
        if missing:
            raise Refusal(
                f"{' and '.join(missing)} cannot be found",
                f"on Debian: sudo apt-get install {' '.join(missing)}",
            )

    def start(self, targets: list[str], dashboard: str) -> None:
        """Scrape what serves at these addresses; alerts link to a dashboard.

        Raises:
            Refusal: one of both does not start.
        """
        self._folder.mkdir()
        empty = self._folder / "empty"
        empty.mkdir()
        self._write("alertmanager.yml", configuration(DEFAULT))
        self._write("rules.yml", rule_file(GROUPS, dashboard))
        self.alertmanager = self._program(
            _ALERTMANAGER,
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'alertmanager'}",
            "--cluster.listen-address=",
        )
        self._write("prometheus.yml", self._scraping(targets))
        self.prometheus = self._program(
            _PROMETHEUS,
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'prometheus'}",
            f"--web.console.templates={empty}",
            f"--web.console.libraries={empty}",
        )

    def _program(self, name: str, *options: str) -> str:
        address = f"127.0.0.1:{free_port(name, _PORTS[name])}"
        process = self._services.program(
            name, [name, *options, f"--web.listen-address={address}", "--log.level=warn"]
        )
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and process.status() is None:
            try:
                if httpx.get(f"http://{address}/-/ready", trust_env=False).is_success:
                    return f"http://{address}"
            except httpx.HTTPError:
                pass
            time.sleep(POLL)
        raise Refusal(f"{name} does not start", process.last_lines())

    def _scraping(self, targets: list[str]) -> str:
        hosts = [target.removeprefix("http://") for target in targets]
        manager = self.alertmanager.removeprefix("http://")
        return json.dumps(  # JSON is YAML
            {
                "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
                "rule_files": [str(self._folder / "rules.yml")],
                "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
                "scrape_configs": [{"job_name": "headway", "static_configs": [{"targets": hosts}]}],
            },
            indent=2,
        )

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        return path
