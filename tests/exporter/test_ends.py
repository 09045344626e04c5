"""One of two tells how a rank ended: never both, and never nobody."""

from pathlib import Path

import pytest

from headway.exporter.ends import MARK, Parent, leave_to_parent, told_by_another
from recording import record

LAUNCH = "0123456789abcdef" * 2


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def test_the_agent_tells_where_nobody_else_does(spool: Path) -> None:
    assert not told_by_another(spool)


def test_it_leaves_the_end_of_a_launched_rank_to_the_parent(tmp_path: Path, spool: Path) -> None:
    parent = Parent(tmp_path, LAUNCH)
    leave_to_parent(spool, LAUNCH)
    assert told_by_another(spool)
    parent.told(spool)
    parent.close()
    assert told_by_another(spool), "it was told"
    assert not list(tmp_path.glob("launch.*"))


def test_it_tells_what_a_parent_left_untold(tmp_path: Path, spool: Path) -> None:
    parent = Parent(tmp_path, LAUNCH)
    leave_to_parent(spool, LAUNCH)
    parent.close()
    assert not told_by_another(spool)


def test_a_parent_of_other_ranks_is_nobody(tmp_path: Path, spool: Path) -> None:
    parent = Parent(tmp_path, LAUNCH)
    leave_to_parent(spool, LAUNCH[::-1])
    assert not told_by_another(spool)
    parent.close()


@pytest.mark.parametrize("mark", ["", "../agent", "told", "\u00e9"])
def test_a_mark_that_is_none_is_left_out(spool: Path, mark: str) -> None:
    leave_to_parent(spool, mark)
    assert not told_by_another(spool)


def test_a_spool_that_is_gone_needs_nobody(tmp_path: Path) -> None:
    parent = Parent(tmp_path, LAUNCH)
    leave_to_parent(tmp_path / "gone", LAUNCH)
    parent.told(tmp_path / "gone")
    parent.close()
    assert not told_by_another(tmp_path / "gone")


def test_a_recorder_leaves_its_end_to_the_launchers_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, LAUNCH)
    parent = Parent(tmp_path, LAUNCH)
    recorder = record(tmp_path)
    (path,) = [item.parent for item in tmp_path.glob("*/header")]
    assert told_by_another(path)
    recorder.close()
    parent.close()
