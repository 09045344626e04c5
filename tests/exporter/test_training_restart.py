"""The in-process adapter: who is to blame, and which connections are gloo's."""

import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta

import pytest

from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.interruptions import culprit

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch about pynvml
    import torch
    from torch.distributed import HashStore, ProcessGroupGloo, TCPStore  # type: ignore[attr-defined]

    from headway.exporter.nvrx import in_process


@pytest.mark.parametrize(
    ("records", "terminated", "expected"),
    [
        # As NVRx 0.4.1 reported them for one broken rank of two.
        ([(1, "EXCEPTION")], set(), (1, "exception")),
        ([(0, "EXCEPTION"), (1, "TERMINATED")], {1}, (1, "lost_rank")),
        ([(1, "SOFT_TIMEOUT"), (0, "SOFT_TIMEOUT")], {1}, (1, "hang")),
        ([(1, "SOFT_TIMEOUT"), (0, "SOFT_TIMEOUT")], set(), (1, "hang")),
        ([(0, "SOFT_TIMEOUT"), (1, "HARD_TIMEOUT")], set(), (1, "hang")),
        ([(0, "SOFT_TIMEOUT"), (1, "UNRESPONSIVE")], set(), (1, "lost_rank")),
        ([(0, "SOFT_TIMEOUT"), (1, "BASE_EXCEPTION")], set(), (1, "exception")),
        # The records were closed before rank 1 was found to be gone.
        ([(0, "EXCEPTION")], {1}, (1, "lost_rank")),
        ([(0, "SOFT_TIMEOUT")], {1}, (1, "hang")),
        ([(0, "UNRESPONSIVE"), (2, "EXCEPTION")], {2}, (2, "exception")),
        ([(2, "A_LATER_VERSION")], set(), (2, "lost_rank")),
        ([], {3, 2}, (2, "lost_rank")),
        ([], set(), None),
    ],
)
def test_the_rank_that_is_gone_outweighs_its_victims(
    records: list[tuple[int, str]], terminated: set[int], expected: tuple[int, str] | None
) -> None:
    assert culprit(records, terminated) == expected


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connect(stack: ExitStack, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    here = stack.enter_context(closing(socket.create_connection(listener.getsockname())))
    there = stack.enter_context(closing(listener.accept()[0]))
    here.settimeout(10)
    return here, there


def is_open(pair: tuple[socket.socket, socket.socket]) -> bool:
    here, there = pair
    try:
        there.sendall(b"x")
        return here.recv(1) == b"x"
    except OSError:
        return False


def test_an_abort_breaks_what_gloo_opened_and_nothing_else(listener: socket.socket) -> None:
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as store:
        sockets = GlooSockets({store.getsockname()[1]})
        earlier = connect(stack, listener)
        with sockets.opened_here():
            gloo = connect(stack, listener)
            kept = connect(stack, store)
        later = connect(stack, listener)
        assert sockets.shut() == 2  # both ends are in this process
        assert [is_open(pair) for pair in (earlier, gloo, kept, later)] == [True, False, True, True]


def test_an_abort_while_gloo_is_still_connecting_frees_a_blocked_thread(
    listener: socket.socket,
) -> None:
    with ExitStack() as stack:
        sockets = GlooSockets(set())
        received: list[bytes] = []
        with sockets.opened_here():
            here, _ = connect(stack, listener)
            blocked = threading.Thread(target=lambda: received.append(here.recv(1)))
            blocked.start()
            sockets.shut()
            blocked.join(10)
        assert received == [b""]


def test_every_timeout_of_the_wrapper_is_published_in_nanoseconds() -> None:
    timeouts = in_process.InProcessLimits(soft_timeout=1.5).timeouts()
    assert timeouts["in_process.soft_timeout"] == 1_500_000_000
    assert timeouts["in_process.barrier_timeout"] == 180 * 10**9


def test_an_abort_ends_a_collective_that_waits_for_a_rank_that_hangs() -> None:
    store, limit = HashStore(), timedelta(seconds=60)
    groups: dict[int, ProcessGroupGloo] = {}
    sockets = GlooSockets(set())

    def join(rank: int) -> None:
        groups[rank] = ProcessGroupGloo(store, rank, 2, limit)
        groups[rank].barrier().wait()

    with sockets.opened_here():
        joining = [threading.Thread(target=join, args=(rank,)) for rank in (0, 1)]
        for thread in joining:
            thread.start()
        for thread in joining:
            thread.join(60)

    work = groups[0].allreduce([torch.ones(4)])  # and rank 1 never comes
    assert not work.is_completed()
    assert sockets.shut() > 0

    with pytest.raises(RuntimeError, match=r"[Cc]onnection|closed|reset"):
        work.wait()


def test_a_rank_of_a_lost_node_can_be_named_as_nvrx_does_where_the_others_leave() -> None:
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store = in_process._client_store()("127.0.0.1", server.port)
    store.set_initial_rank(1, 1)
    lost = store.get_initial_ranks([1])
    store.termination_barrier(ranks=lost, rendezvous_count=2, timeout=timedelta(0))
    store.termination_barrier(ranks=[0], rendezvous_count=2, timeout=timedelta(seconds=10))
