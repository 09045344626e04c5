"""The dashboard as the real command serves it, and the headless browser that reads it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE = 90_000
"""Milliseconds to wait for what a page is to show: a busy machine draws in its own time."""
expect.set_options(timeout=PATIENCE)

QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def executable() -> str:
    """Return where the system's browser is."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        import pytest  # the benchmarks' environment has none

        pytest.skip("needs chromium: apt-get install chromium")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open the system's browser, which asks nobody for updates."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(), args=QUIET.split())
        yield opened
        opened.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard as the real command serves it."""

    address: str
    process_id: int


@contextmanager
def dashboard(endpoint: str) -> Iterator[str]:
    """Run `headway dashboard` on a free port and yield its address."""
    with dashboard_process(endpoint, "--refresh", "1") as started:
        yield started.address


@contextmanager
def dashboard_process(
    endpoint: str, *options: str, variables: Mapping[str, str] | None = None
) -> Iterator[Dashboard]:
    """Run `headway dashboard` with options and settings, and yield where it answers."""
    command = [sys.executable, "-m", "headway", "dashboard", *options]
    with subprocess.Popen(
        [*command, "--endpoint", endpoint, *(() if "--port" in options else ("--port", "0"))],
        stdout=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, **(variables or {})},
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line
            yield Dashboard(address=line.split()[-1], process_id=process.pid)
        finally:
            process.terminate()
            process.wait(30)


def value(page: Page, label: str) -> str:
    """Return what a stat of the page shows."""
    metric = page.get_by_test_id("stMetric").filter(has_text=label)
    return metric.get_by_test_id("stMetricValue").inner_text(timeout=PATIENCE)


def in_terminal(endpoint: str, run: str) -> str:
    """Return what `headway report` prints about a run."""
    command = [sys.executable, "-m", "headway", "report", run, "--endpoint", endpoint]
    answer = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    return answer.stdout
