"""One TCPStore of our own, served by rank 0 on a free port, for everything the training needs.

The launcher's store may go away with a round, and fixed ports beside it may be taken; it is used
only to tell the other ranks where ours listens.
"""

import os
import time
from datetime import timedelta
from typing import NamedTuple, Protocol

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from headway.exporter.nvrx.in_process import StoreAddress


class SharedStore(NamedTuple):
    """The store and where it listens; rank 0 must keep it to the end of the job.

    The launcher's store with it: where no launcher serves one, rank 0 does, until it drops it.
    """

    store: TCPStore
    address: StoreAddress
    launcher: Store
    launcher_port: int


def shared_store(rank: int, timeout: timedelta) -> SharedStore:
    """Serve the store on rank 0, or join it."""
    launcher, _, _ = next(iter(rendezvous("env://", timeout=timeout)))
    host = os.environ["MASTER_ADDR"]  # the node of rank 0
    key = "headway/store"  # no count of restarts in it: the agents of two nodes may differ in it
    if rank == 0:
        store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=timeout)
        launcher.set(key, str(store.port))
    else:
        store = join(launcher, key, host, timeout=timeout)
    address = StoreAddress(host, store.port)
    return SharedStore(store, address, launcher, int(os.environ["MASTER_PORT"]))


class Launcher(Protocol):
    """The launcher's store, as far as it is needed."""

    def get(self, key: str) -> bytes:
        """Return a value, once there is one."""


def join(
    launcher: Launcher,
    key: str,
    host: str,
    *,
    timeout: timedelta,
    patience: timedelta = timedelta(seconds=5),
) -> TCPStore:
    """Join the store whose port the launcher's store holds.

    A launcher's store may outlive a round: a port at which nobody answers for `patience` is asked
    for again.

    Raises:
        RuntimeError: nobody serves the store, to the end of `timeout`.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        port = int(launcher.get(key))
        try:
            store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=patience)
        except RuntimeError:  # torch's own is derived from it
            if time.monotonic() >= deadline:
                raise
        else:
            store.set_timeout(timeout)
            return store
