"""In-process restart by NVRx, recorded: the wrapper's hooks become events.

Hooks see a deep copy of a rank's exception without its traceback, so exceptions are recorded
where they are raised. Who is to blame is read from the interruption records in the wrapper's
store. NVRx differs between versions, so features are probed, not compared by version. The wrapped
function must carry real annotations: this module may not postpone their evaluation.
"""

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
from nvidia_resiliency_ext import inprocess  # type: ignore[import-untyped]
from nvidia_resiliency_ext.inprocess.abort import (  # type: ignore[import-untyped]
    Abort,
    AbortTorchDistributed,
)
from nvidia_resiliency_ext.inprocess.store import (  # type: ignore[import-untyped]
    PrefixStore,
    StoreMixin,
)
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from headway.events import Fault, RestartPhase
from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.interruptions import culprit
from headway.exporter.recorder import Recorder

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


class WorkloadError(RuntimeError):
    """Stands for an exception of the training that cannot be copied, as NVRx needs."""


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
        log: Path,
        sockets: GlooSockets,
        min_world_size: int = 1,
    ) -> None:
        """Prepare; `abandon` drops unfinished background work after a fault.

        `store` must be served by rank 0 for the life of the job. The process group must not
        exist yet, and logging must be configured.
        """
        self._recorder = recorder
        self._store = store
        self._limits = limits
        self._max_restarts = max_restarts
        self._min_world_size = min_world_size
        self._abandon = abandon
        self._log = log
        self._sockets = sockets
        self._aborted: int | None = None

    def run(self, train: Callable[[int], None]) -> None:
        """Call `train` with the iteration, 0 at first, until all ranks return from it.

        Raises:
            RestartsExhaustedError: too many restarts, or too few ranks are left.
        """

        def attempt(call_wrapper: inprocess.CallWrapper = None) -> None:
            try:
                train(call_wrapper.iteration)
            except KeyboardInterrupt as stop:
                self._recorder.exception(stop)
                raise
            except Exception as error:
                if not self._is_consequence(call_wrapper):
                    self._recorder.exception(error)
                _reraise(error)

        with _hidden_local_rank():
            wrapper = self._wrapper()
        try:
            wrapper(attempt)()
        except inprocess.exception.RestartAbort as error:  # a BaseException
            raise RestartsExhaustedError(
                f"no restart in the process is left: it allows {self._max_restarts} restarts and "
                f"at least {self._min_world_size} ranks; the launcher must take over ({error})"
            ) from error

    def _is_consequence(self, call_wrapper: Any) -> bool:
        """Whether another rank was interrupted first, and this one fails because of it."""
        if self._aborted is not None:
            return True
        try:
            store = PrefixStore(call_wrapper.iteration, call_wrapper.base_store)
            return bool(store.check([StoreMixin.ANY_RANK_INTERRUPTED]))
        except (AttributeError, RuntimeError):  # not a public interface, or rank 0 is gone
            return False

    def _wrapper(self) -> Any:
        compose = inprocess.Compose  # calls its last argument first
        retries = inprocess.initialize.RetryController(
            max_iterations=self._max_restarts + 1, min_world_size=self._min_world_size
        )
        assignment = inprocess.rank_assignment
        checks = inprocess.health_check
        checked = [checks.CudaHealthCheck()] if torch.cuda.is_available() else []
        return inprocess.Wrapper(
            store_factory=_client_store(),
            store_kwargs={"host_name": self._store.host, "port": self._store.port},
            initialize=compose(_hook(inprocess.initialize.Initialize, self._initialize), retries),
            abort=compose(
                _hook(Abort, lambda state: self._phase("abort", "ended")),
                AbortTorchDistributed(),
                _hook(Abort, lambda state: self._sockets.shut()),
                _hook(Abort, self._abort),
            ),
            finalize=_hook(inprocess.finalize.Finalize, self._finalize),
            health_check=compose(
                _hook(checks.HealthCheck, self._checked),
                *checked,
                _hook(checks.HealthCheck, self._checking),
            ),
            rank_assignment=compose(
                assignment.ActivateAllRanks(),
                assignment.ShiftRanks(),
                _hook(assignment.RankAssignment, self._assign),
            ),
            completion=_hook(inprocess.completion.Completion, self._leave),
            terminate=_hook(inprocess.terminate.Terminate, self._leave),
            monitor_process_logfile=str(self._log.absolute()),
            **{name: timedelta(seconds=x) for name, x in asdict(self._limits).items()},
        )

    def _phase(self, phase: str, state: str, detail: str | None = None) -> None:
        self._recorder.record(
            RestartPhase(layer="in_process", phase=phase, state=state, detail=detail)
        )

    def _initialize(self, state: Any) -> None:
        self._aborted = None
        # For the recorder, iteration 0 is the attempt that opened with the process.
        self._recorder.attempt(
            layer="in_process", iteration=state.iteration, world_size=state.active_world_size
        )

    def _abort(self, state: Any) -> None:
        # In the wrapper's monitor thread, while the main thread may still be in a collective.
        self._aborted = time.monotonic_ns()
        self._phase("abort", "began")

    def _finalize(self, state: Any) -> None:
        self._phase("finalize", "began")
        self._abandon()
        self._phase("finalize", "ended")

    def _checking(self, state: Any) -> None:
        if self._aborted is not None:
            self._phase("health_check", "began")

    def _checked(self, state: Any) -> None:
        if self._aborted is not None:
            self._phase("health_check", "ended")
            self._phase("rendezvous", "began")

    def _assign(self, context: Any) -> None:
        if self._aborted is None:  # also called before the first iteration
            return
        state = context.state
        try:
            records = [
                (record.rank, record.interruption.name)
                for record in context.store.get_interruption_records()
            ]
            names = [int(rank) for rank in context.store.get_initial_ranks(range(state.world_size))]
        except (AttributeError, RuntimeError, ValueError) as error:  # not a public interface
            self._phase("rendezvous", "ended", f"interruption records cannot be read: {error!r}")
            self._recorder.end_attempt()
            return
        detail = ", ".join(f"{kind.lower()} on rank {names[rank]}" for rank, kind in records)
        self._phase("rendezvous", "ended", detail or None)
        blamed = culprit(records, context.terminated_ranks)
        survivors = set(range(state.world_size)) - set(context.terminated_ranks)
        # A rank that raised has said so itself.
        if blamed and blamed.kind != "exception" and state.rank == min(survivors):
            self._blame(blamed.kind, names[blamed.rank], detail)
        self._recorder.end_attempt()

    def _blame(self, kind: str, rank: int, detail: str) -> None:
        limit = round(self._limits.soft_timeout * _SECOND)
        waited = None
        if kind == "hang" and self._aborted is not None:
            since_abort = time.monotonic_ns() - self._aborted
            waited = limit + round(self._limits.last_call_wait * _SECOND) + since_abort
        self._recorder.record(
            Fault(
                kind=kind,
                message=f"NVRx interrupted the attempt: {detail}",
                suspect_rank=rank,
                ran_for=waited,
                timeout=None if waited is None else limit,
            )
        )

    def _leave(self, state: Any) -> None:
        self._recorder.end_attempt()


def _hook(base: type, action: Callable[[Any], object]) -> Any:
    """Return a hook of NVRx's class `base` that acts and passes its argument on."""

    class Hook(base):  # type: ignore[misc]  # NVRx is untyped
        def __call__(self, state: Any) -> Any:
            action(state)
            return state

    return Hook()


def _client_store() -> type:
    class ClientStore(TCPStore, StoreMixin):  # type: ignore[misc]  # NVRx is untyped
        """Joins the store that rank 0 already serves; NVRx's own wants to choose the port."""

        def __init__(self, host_name: str, port: int) -> None:
            super().__init__(host_name, port, is_master=False, wait_for_workers=False)

        @property
        def critical_ranks(self) -> tuple[int, ...]:
            return (0,)

    return ClientStore


def _reraise(error: Exception) -> NoReturn:
    try:
        copy.deepcopy(error)
    except Exception:  # whatever the copy of a stranger's exception raises
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        raise WorkloadError(f"{kind}: {error}") from error
    raise error


@contextmanager
def _hidden_local_rank() -> Iterator[None]:
    """Hide LOCAL_RANK on a machine without GPUs.

    From 0.5 on the wrapper adds GPU and NIC checks where it is set; without NVML they fail at
    the first restart and end every rank.
    """
    hidden = None if torch.cuda.is_available() else os.environ.pop("LOCAL_RANK", None)
    try:
        yield
    finally:
        if hidden is not None:
            os.environ["LOCAL_RANK"] = hidden
