"""A real Prometheus on the loopback, with what happened before it started if a test wishes."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alertmanager_process import wait_for
from ports import free_port


def backfill(data: Path, openmetrics: str) -> None:
    """Write samples in OpenMetrics, with times in seconds, into a folder of Prometheus."""
    data.mkdir(parents=True, exist_ok=True)
    written = data.parent / "history.om"
    written.write_text(openmetrics, encoding="utf-8")
    done = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(written), str(data)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def prometheus(folder: Path, configuration: str) -> Iterator[str]:
    """Serve a Prometheus with a configuration over `folder / "data"`; give its address."""
    written = folder / "prometheus.yml"
    written.write_text(configuration, encoding="utf-8")
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={written}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            f"--web.console.templates={empty}",
            f"--web.console.libraries={empty}",
            "--log.level=warn",
        ]
    )
    try:
        wait_for(f"http://{address}/-/ready", process)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(60)
