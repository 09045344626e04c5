"""Tests of the exporter start as a plain program does: no launcher, no recorder before them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.exporter.agent import agent as agent_module
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.recording import recorder as recorder_module
from otlp_endpoint import OtlpEndpoint, otlp_endpoint


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("HEADWAY_", "SLURM_", "TORCHELASTIC_", "NVRX_")):
            monkeypatch.delenv(name)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(recorder_module, "_closed", 0)  # by other tests


@pytest.fixture(autouse=True)
def _unwatched_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this machine has to say of itself out of tests that are not about it."""
    monkeypatch.setattr(agent_module, "watchers", lambda *_: [])


@pytest.fixture
def endpoint() -> Iterator[OtlpEndpoint]:
    """Serve a real endpoint of OTLP that keeps what it accepted."""
    with otlp_endpoint() as served:
        yield served


@pytest.fixture
def metrics(tmp_path: Path) -> NodeMetrics:
    """Return the metrics of an agent of the test's folder."""
    return NodeMetrics(tmp_path)
