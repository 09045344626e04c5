"""Stragglers are named beside the ledger, which they do not touch."""

from headway.incidents import stragglers
from headway.ledger import ledger
from timeline import SECOND, at, timeline


def read(text, until=100):
    return ledger(timeline("0 attempt A launcher world=8 rank=0..7\n" + text), at(until))


def test_a_rank_is_named_with_its_node_and_its_excess_over_the_peers_median():
    book = read(
        """
        0  steps 1-50 each=1 rank=0..4
        0  steps 1-50 each=1.5 rank=5
        0  steps 1-50 each=1 rank=6..7
        """
    )
    (found,) = stragglers(book)
    assert (found.rank, found.node, found.kind, found.steps) == (5, "node-b", "step", 50)
    assert (found.excess, found.peers) == (SECOND // 2, SECOND)
    assert sum(book.categories.values()) == book.elapsed


def test_a_slow_loader_is_told_apart_from_the_peers_that_wait_for_it():
    book = read(
        """
        0  steps 1-50 each=1 rank=0..6
        0  steps 1-50 each=0.6 wait=0.4 rank=7
        """
    )
    (found,) = stragglers(book)
    assert (found.rank, found.kind, found.excess) == (7, "data_wait", round(0.4 * SECOND))


def test_summaries_are_enough():
    book = read(
        """
        0-50  summary 1-50 rank=0..6
        0-75  summary 1-50 rank=7
        """
    )
    (found,) = stragglers(book)
    assert (found.rank, found.excess) == (7, SECOND // 2)


def test_the_waits_in_a_summary_are_no_part_of_its_steps():
    book = read(
        """
        0-50  summary 1-50 rank=0..6
        0-75  summary 1-50 rank=7 wait=25
        """
    )
    assert [(one.rank, one.kind) for one in stragglers(book)] == [(7, "data_wait")]


def test_a_tenth_of_a_step_is_the_limit():
    text = "0 steps 1-50 each=1 rank=0..6\n0 steps 1-50 each={each} rank=7"
    assert stragglers(read(text.format(each=1.05))) == []
    assert [one.rank for one in stragglers(read(text.format(each=1.1)))] == [7]


def test_one_slow_step_makes_no_straggler():
    book = read(
        """
        0-50  steps 1-50 rank=0..7
        50    steps 51 each=1 rank=0..6
        50    steps 51 each=9 rank=7
        """
    )
    assert stragglers(book) == []


def test_of_two_ranks_the_slower_one_is_named():
    text = """
    0   attempt A launcher world=2 rank=0..1
    0   steps 1-20 each=1
    0   steps 1-20 each=2 rank=1
    """
    assert [one.rank for one in stragglers(ledger(timeline(text), at(60)))] == [1]


def test_a_single_rank_has_no_peers():
    text = "0 attempt A launcher world=1\n0-20 steps 1-20"
    assert stragglers(ledger(timeline(text), at(60))) == []
