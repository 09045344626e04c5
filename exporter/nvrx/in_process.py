"""Restart in the process by NVRx as our own training uses it: the wrapper with recording hooks.

Who has a wrapper of his own takes the hooks alone (`headway.exporter.nvrx.hooks`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
from nvidia_resiliency_ext import inprocess  # type: ignore[import-untyped]
from nvidia_resiliency_ext.inprocess.store import StoreMixin  # type: ignore[import-untyped]
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.heartbeats import Heartbeats
from headway.exporter.nvrx.hooks import Hooks
from headway.exporter.nvrx.slots import hidden_local_rank
from headway.exporter.recording.recorder import Recorder

_SECOND = 10**9


class StoreAddress(NamedTuple):
    """Where a TCPStore listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessLimits:
    """Timeouts of the wrapper in seconds; NVRx wants soft < hard < barrier."""

    soft_timeout: float = 60.0
    hard_timeout: float = 90.0
    heartbeat_timeout: float = 60.0
    barrier_timeout: float = 180.0
    completion_timeout: float = 120.0
    heartbeat_interval: float = 0.5
    monitor_thread_interval: float = 0.25
    monitor_process_interval: float = 0.25
    progress_watchdog_interval: float = 0.25
    last_call_wait: float = 0.2
    termination_grace_time: float = 2.0

    def timeouts(self) -> Mapping[str, int]:
        """Return them by name in nanoseconds, as `run.configured` wants them."""
        return {f"in_process.{name}": round(x * _SECOND) for name, x in asdict(self).items()}


class RestartsExhaustedError(RuntimeError):
    """The limits on restarting in the process do not allow another one."""


class InProcess:
    """Runs a training function again and again in this process until it returns."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        store: StoreAddress,
        limits: InProcessLimits,
        max_restarts: int,
        abandon: Callable[[], None],
        folder: Path,
        sockets: GlooSockets,
        heartbeats: Heartbeats,
        min_world_size: int = 1,
    ) -> None:
        """Prepare; `abandon` drops unfinished background work after a fault.

        `store` must be served by rank 0 for the life of the job. The process group must not
        exist yet, and logging must be configured. The monitor's log and the stacks of ranks
        that hang go to `folder`.
        """
        self._store = store
        self._limits = limits
        self._max_restarts = max_restarts
        self._min_world_size = min_world_size
        self._abandon = abandon
        self._folder = folder.absolute()
        self._hooks = Hooks(
            recorder, stacks=self._folder / "stacks", sockets=sockets, heartbeats=heartbeats
        )

    def run(self, train: Callable[[int], None]) -> None:
        """Call `train` with the iteration, 0 at first, until all ranks return from it.

        Raises:
            RestartsExhaustedError: too many restarts, or too few ranks are left.
        """

        def attempt(call_wrapper: inprocess.CallWrapper) -> None:
            train(call_wrapper.iteration)

        with hidden_local_rank(torch.cuda.is_available()):
            wrapper = self._wrapper()
        try:
            wrapper(self._hooks.watched(attempt))()
        except inprocess.exception.RestartAbort as error:  # a BaseException
            raise RestartsExhaustedError(
                f"no restart in the process is left: it allows {self._max_restarts} restarts and "
                f"at least {self._min_world_size} ranks; the launcher must take over ({error})"
            ) from error

    def _wrapper(self) -> Any:
        checks = inprocess.health_check
        options = self._hooks.options(
            store_factory=_client_store(),
            store_kwargs={"host_name": self._store.host, "port": self._store.port},
            initialize=inprocess.initialize.RetryController(
                max_iterations=self._max_restarts + 1, min_world_size=self._min_world_size
            ),
            finalize=self._finalize,
            health_check=checks.CudaHealthCheck() if torch.cuda.is_available() else None,
            monitor_process_logfile=str(self._folder / "monitor-{rank}.log"),
            **{name: timedelta(seconds=x) for name, x in asdict(self._limits).items()},
        )
        return inprocess.Wrapper(**options)

    def _finalize(self, state: Any) -> Any:
        self._abandon()
        return state


def _client_store() -> type:
    class ClientStore(TCPStore, StoreMixin):  # type: ignore[misc]  # NVRx is untyped
        """Joins the store that rank 0 already serves; NVRx's own wants to choose the port."""

        def __init__(self, host_name: str, port: int) -> None:
            super().__init__(host_name, port, is_master=False, wait_for_workers=False)

        @property
        def critical_ranks(self) -> tuple[int, ...]:
            return (0,)

        def termination_barrier(self, ranks: Iterable[int | bytes], **others: Any) -> None:
            """Wait until all have left.

            NVRx 0.4.1 names ranks of a lost node in bytes, and cannot read them any more when a
            training that went on without them is complete.
            """
            super().termination_barrier(ranks=[int(rank) for rank in ranks], **others)

    return ClientStore
