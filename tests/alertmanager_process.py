"""A real Alertmanager on the loopback, for as long as a test needs it."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from ports import free_port

PATIENCE = 60.0


@contextmanager
def alertmanager(folder: Path, configuration: str) -> Iterator[str]:
    """Serve an Alertmanager with a configuration; give its address."""
    written = folder / "alertmanager.yml"
    written.write_text(configuration, encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            "prometheus-alertmanager",
            f"--config.file={written}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]
    )
    try:
        wait_for(f"http://{address}/-/ready", process)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a process answers at an address."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"nothing answers at {url}")
