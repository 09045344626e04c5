"""An imported run in the collector: the same ledger, and nothing twice."""

import gzip

import pytest

from collector_process import collector_process
from headway.cli import main
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from imported import LOGS, imported, one_run, written

CORE = LOGS / "megatron_core_torch_dist.log"


@pytest.mark.slow
def test_an_import_gives_the_collector_the_same_ledger_and_nothing_twice(capsys, tmp_path):
    lines = CORE.read_text().splitlines(keepends=True)
    part = written(tmp_path, "".join(lines[:40]), "core.log")
    with collector_process(tmp_path / "headway.db") as collector:
        more = ["--ship", "--endpoint", collector.address, "--run", "core"]
        grown = imported(capsys, part, more=more)
        assert grown["shipped"]["refused"] == 0
        for _ in range(2):
            local = one_run(capsys, CORE, more=more)
        other = tmp_path / "other-name.log.gz"
        other.write_bytes(gzip.compress(CORE.read_bytes()))
        packed = imported(capsys, other, more=more[:3])
        with CollectorClient(ClientSettings(endpoint=collector.address)) as client:
            stored = client.report("core")
            runs = [one["run"] for one in client.runs()]

    assert packed["shipped"]["runs"] == runs == ["core"]
    assert stored["steps"]["executed"] == local["steps"]["executed"] == 260
    assert stored["steps"]["rework"] == 0
    for name in ("checkpoint_save", "evaluation"):
        assert stored["categories"][name] == pytest.approx(local["categories"][name], rel=0.01)
    # years without a sign of it mean that the run was abandoned, with all that was at risk
    assert stored["state"] == "abandoned"
    assert stored["categories"]["productive"] == pytest.approx(
        local["parts"]["productive"]["durable"], rel=0.01
    )


def test_what_nobody_dated_is_not_sent(capsys):
    path = LOGS / "megatron_deepspeed_reshape.log"

    assert (
        main(["import", "megatron", str(path), "--ship", "--endpoint", "http://127.0.0.1:9"]) == 2
    )
    assert "--start" in capsys.readouterr().err
