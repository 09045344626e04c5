"""Hooks that record what NVRx's in-process wrapper does, for any training that it restarts.

    hooks = Hooks(recorder)
    with hidden_local_rank(torch.cuda.is_available()):
        wrapper = inprocess.Wrapper(**hooks.options(initialize=..., soft_timeout=...))
    wrapper(hooks.watched(train))()

Each hook keeps what it is given and records around it. NVRx differs between versions: what one
of them lacks is reported once, and the rest is recorded all the same.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from headway.events import Fault, Health, Note, RestartBudget, RestartPhase
from headway.exporter.nvrx import slots
from headway.exporter.nvrx.dumps import Dumps
from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.heartbeats import Heartbeats
from headway.exporter.nvrx.interruptions import Interruptions, culprit
from headway.exporter.nvrx.slots import Around
from headway.exporter.recording.plain_values import qualified
from headway.exporter.recording.recorder import Recorder

_MICROSECOND = timedelta(microseconds=1)


class Hooks:
    """Records one process's part in restarts within the process."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        stacks: Path | None = None,
        sockets: GlooSockets | None = None,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        """Prepare.

        `stacks` is the folder for the stack dumps of ranks that hang; without one there are
        none. `sockets` are broken when an attempt is aborted: gloo needs that. `heartbeats` stop
        before each restart and start again with the next attempt.
        """
        self._recorder = recorder
        self._sockets = sockets
        self._heartbeats = heartbeats
        self._dumps = Dumps(recorder, stacks)
        self._interruptions = Interruptions(self._unknown)
        self._limits: dict[str, timedelta] = {}
        self._max_iterations: int | None = None
        self._checks: str | None = None
        self._health: Health | None = None
        self._abort_time: int | None = None  # monotonic ns; None outside of a restart
        self._open: str | None = None

    def options(self, **options: Any) -> dict[str, Any]:
        """Return arguments for `inprocess.Wrapper` with every hook recorded.

        What is not given keeps the wrapper's default.
        """
        defaults = slots.wrapper_defaults()
        self._limits = {
            name: value
            for name, value in {**defaults, **options}.items()
            if isinstance(value, timedelta)
        }
        around = self._around()
        missing = []
        for slot in slots.SLOTS:
            inner = options.pop(slot, defaults.get(slot))
            hook = slots.hook(slot, inner, around[slot]) if slot in defaults else None
            if hook is not None:
                options[slot] = hook
            else:
                missing.append(slot)
            if slot == "initialize":
                self._max_iterations = _max_iterations(inner)
            elif slot == "health_check" and inner is not None:
                self._checks = ", ".join(type(one).__name__ for one in _parts(inner))
        if missing:
            self._recorder.misuse(
                "nvrx_hooks",
                f"the wrapper of NVRx {slots.version()} has no hook {', '.join(missing)} of the "
                "kind that is known; what they would tell is missing from the record",
            )
        return options

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function to hand to the wrapper instead of `function`.

        Its exceptions are recorded where they are raised, once and on the rank that raised first.

        Raises:
            TypeError: annotations that cannot be evaluated.
        """
        from headway.exporter.nvrx.workload import watched  # needs NVRx

        return watched(function, self._recorder, self._interruptions.begin, self._is_consequence)

    def timeouts(self) -> Mapping[str, int]:
        """Return the wrapper's limits by name in ns, for `run.configured`."""
        return {
            f"in_process.{name}": limit // _MICROSECOND * 1000
            for name, limit in sorted(self._limits.items())
        }

    def _around(self) -> dict[str, Around]:
        around = {
            "initialize": Around(after=self._initialized),
            "abort": Around(self._abort_began, self._abort_ended, self._failed),
            "finalize": Around(self._finalizing, self._finalized, self._failed),
            "health_check": Around(self._checking, self._checked, self._unhealthy),
            "rank_assignment": Around(before=self._assigning),
            "completion": Around(after=self._left),
            "terminate": Around(before=self._terminating, after=self._left),
        }
        return {slot: Around(*map(self._harmless, actions)) for slot, actions in around.items()}

    def _harmless(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """Protect the restart: what an action raises is counted and reported instead."""

        def act(argument: Any) -> None:
            try:
                action(argument)
            except AttributeError as error:  # NVRx handed over something else than it used to
                self._unknown(error)
            except Exception as failure:
                self._recorder.suppressed(failure)

        return act

    def _unknown(self, error: Exception) -> None:
        self._recorder.misuse(
            "nvrx_interface",
            f"NVRx {slots.version()} is not as it was known: {error!r}; "
            "a part of what its hooks tell is missing from the record",
        )

    # What the hooks record, in the order in which a restart calls them

    def _abort_began(self, state: Any) -> None:
        # In the wrapper's monitor thread, while the main thread may still be in a collective.
        try:
            self._abort_time = time.monotonic_ns()
            self._begin("abort")
            if self._interruptions.is_hang(state.iteration):
                self._dumps.write_stacks(state.iteration)
        finally:
            if self._sockets is not None:
                self._sockets.shut()  # whatever cannot be recorded, the restart needs it

    def _abort_ended(self, state: Any) -> None:
        self._dumps.find()
        self._end()

    def _finalizing(self, state: Any) -> None:
        if self._heartbeats is not None:
            self._heartbeats.stop()
        self._begin("finalize")

    def _finalized(self, state: Any) -> None:
        self._end()

    def _checking(self, state: Any) -> None:
        if self._abort_time is not None:  # also called before each attempt
            self._begin("health_check")

    def _checked(self, state: Any) -> None:
        if self._checks is None:
            words = "the wrapper was given no health check"
            self._tell_health(Health(check="in_process", state="disabled", detail=words))
        else:
            self._tell_health(Health(check=self._checks, state="healthy"))
        if self._abort_time is not None:
            self._end()
            self._begin("rendezvous")

    def _unhealthy(self, error: BaseException) -> None:
        self._tell_health(
            Health(check=self._checks or "in_process", state="unhealthy", detail=repr(error))
        )
        self._end(repr(error))

    def _assigning(self, context: Any) -> None:
        if self._abort_time is None:  # also called before the first iteration
            return
        state, gone = context.state, set(context.terminated_ranks)
        told = self._interruptions.read(context.store, gone)
        if told is None:
            self._end("the interruption records cannot be read")
            self._recorder.end_attempt()
            return
        records, names = told
        detail = ", ".join(f"{kind.lower()} on rank {names[rank]}" for rank, kind in records)
        self._end(detail or None)
        blamed = culprit(records, gone)
        survivors = set(range(state.world_size)) - gone
        # A rank that raised has said so itself.
        if blamed and blamed.kind != "exception" and state.rank == min(survivors):
            self._blame(blamed.kind, names[blamed.rank], detail)
        self._recorder.end_attempt()

    def _initialized(self, state: Any) -> None:
        self._abort_time = None
        if state.mode.name == "INACTIVE":
            text = f"rank {state.initial_rank} stands by as a spare in iteration {state.iteration}"
            self._recorder.record(Note(text=text, author="NVRx"))
            self._left(state)
            return
        if self._heartbeats is not None:
            self._heartbeats.start()
        # For the recorder, iteration 0 is the attempt that opened with the process.
        self._recorder.attempt(
            layer="in_process", iteration=state.iteration, world_size=state.active_world_size
        )
        self._dumps.find()  # of the process that this one replaces
        if self._max_iterations is not None and state.rank == 0:
            limit = self._max_iterations - 1  # the first iteration is no restart
            remaining = max(limit - state.iteration, 0)
            self._recorder.record(
                RestartBudget(layer="in_process", remaining=remaining, limit=limit)
            )

    def _terminating(self, state: Any) -> None:
        self._dumps.find()
        error = state.fn_exception
        why = "" if error is None else f" after {qualified(type(error))}"
        text = f"NVRx ends rank {state.initial_rank} in iteration {state.iteration}{why}"
        self._recorder.record(Note(text=text, author="NVRx"))

    def _left(self, state: Any) -> None:
        self._end()
        self._recorder.end_attempt()
        if self._heartbeats is not None:
            self._heartbeats.stop()

    def _failed(self, error: BaseException) -> None:
        self._end(repr(error))

    # Parts of the above

    def _begin(self, phase: str) -> None:
        self._open = phase
        self._recorder.record(RestartPhase(layer="in_process", phase=phase, state="began"))

    def _end(self, detail: str | None = None) -> None:
        phase, self._open = self._open, None
        if phase is not None:
            self._recorder.record(
                RestartPhase(layer="in_process", phase=phase, state="ended", detail=detail)
            )

    def _tell_health(self, found: Health) -> None:
        if found != self._health:
            self._health = found
            self._recorder.record(found)

    def _blame(self, kind: str, rank: int, detail: str) -> None:
        limits = self.timeouts()
        soft = limits.get("in_process.soft_timeout")
        waited = None
        if kind == "hang" and self._abort_time is not None and soft is not None:
            since_abort = time.monotonic_ns() - self._abort_time
            waited = soft + limits.get("in_process.last_call_wait", 0) + since_abort
        self._recorder.record(
            Fault(
                kind=kind,
                message=f"NVRx interrupted the attempt: {detail}",
                suspect_rank=rank,
                ran_for=waited,
                timeout=None if waited is None else soft,
            )
        )

    def _is_consequence(self) -> bool:
        """Whether another rank was interrupted first, and this one fails because of it."""
        return self._abort_time is not None or self._interruptions.is_any()


def _parts(hook: Any) -> tuple[Any, ...]:
    """Return the hooks that a `Compose` of NVRx calls, or the hook itself."""
    return tuple(getattr(hook, "instances", (hook,)))


def _max_iterations(initialize: Any) -> int | None:
    """Return how many iterations NVRx's `RetryController` among these hooks allows."""
    found = [getattr(one, "max_iterations", None) for one in _parts(initialize)]
    return min((limit for limit in found if isinstance(limit, int)), default=None)
