"""Tests of the exporter start as a plain program does: no launcher, no recorder before them."""

import os

import pytest

from headway.exporter.agent import agent as agent_module
from headway.exporter.recording import recorder as recorder_module


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
