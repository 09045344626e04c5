"""One of two tells how a rank ended: never both, and never nobody."""

from pathlib import Path

from headway.exporter.ends import Teller, told_by_another


def test_the_agent_tells_where_nobody_else_does(tmp_path: Path) -> None:
    assert not told_by_another(tmp_path)


def test_it_leaves_the_end_to_a_launchers_parent_for_good(tmp_path: Path) -> None:
    teller = Teller(tmp_path)
    assert told_by_another(tmp_path)
    teller.close(told=True)
    teller.close(told=False)
    assert told_by_another(tmp_path)


def test_it_tells_what_a_parent_that_died_did_not(tmp_path: Path) -> None:
    Teller(tmp_path).close(told=False)
    assert not told_by_another(tmp_path)


def test_the_first_parent_is_the_one(tmp_path: Path) -> None:
    first = Teller(tmp_path)
    Teller(tmp_path).close(told=False)
    assert told_by_another(tmp_path)
    first.close(told=False)


def test_a_spool_that_is_gone_needs_nobody(tmp_path: Path) -> None:
    Teller(tmp_path / "gone").close(told=True)
    assert not told_by_another(tmp_path / "gone")
