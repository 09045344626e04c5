"""Joining the training's own store by the port that the launcher's store knows."""

import threading
import warnings
from datetime import timedelta

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch about pynvml
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    from headway.exporter.training import stores

HOST = "127.0.0.1"
SOON = timedelta(seconds=1)


def serve() -> TCPStore:
    return TCPStore(HOST, 0, is_master=True, wait_for_workers=False, timeout=SOON)


def test_a_port_left_over_from_an_earlier_round_is_not_the_last_word() -> None:
    """A launcher may start its ranks again without counting, and keep its store."""
    launcher, ours = serve(), serve()
    gone = serve()
    launcher.set("port", str(gone.port))
    del gone
    asked = threading.Event()

    class Launcher:
        def get(self, key: str) -> bytes:
            asked.set()
            value: bytes = launcher.get(key)
            return value

    joined: list[TCPStore] = []
    join = threading.Thread(
        target=lambda: joined.append(
            stores.join(Launcher(), "port", HOST, timeout=timedelta(seconds=60), patience=SOON)
        )
    )
    join.start()
    assert asked.wait(30)
    launcher.set("port", str(ours.port))
    join.join(60)
    ours.set("word", "found")
    assert joined[0].get("word") == b"found"


def test_a_store_that_nobody_serves_is_given_up() -> None:
    launcher, gone = serve(), serve()
    launcher.set("port", str(gone.port))
    del gone
    with pytest.raises(RuntimeError):
        stores.join(launcher, "port", HOST, timeout=timedelta(0), patience=SOON)
