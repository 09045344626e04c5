"""The dashboard as the real command serves it, and the headless browser that reads it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open the system's browser, which asks nobody for updates."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable, args=QUIET.split())
        yield opened
        opened.close()


@contextmanager
def dashboard(endpoint: str) -> Iterator[str]:
    """Run `headway dashboard` on a free port and yield its address."""
    command = [sys.executable, "-m", "headway", "dashboard", "--port", "0", "--refresh", "1"]
    with subprocess.Popen(
        [*command, "--endpoint", endpoint], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line
            yield line.split()[-1]
        finally:
            process.terminate()
            process.wait(30)


def value(page: Page, label: str) -> str:
    """Return what a stat of the page shows."""
    metric = page.get_by_test_id("stMetric").filter(has_text=label)
    return metric.get_by_test_id("stMetricValue").inner_text(timeout=20_000)


def in_terminal(endpoint: str, run: str) -> str:
    """Return what `headway report` prints about a run."""
    command = [sys.executable, "-m", "headway", "report", run, "--endpoint", endpoint]
    answer = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    return answer.stdout
