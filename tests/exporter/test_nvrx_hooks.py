"""What each hook records in a rank, and that NVRx sees what it would see without it."""

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import pytest

from headway.events import (
    Fault,
    Health,
    Misuse,
    Note,
    RestartPhase,
    StopAnnounced,
)
from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.heartbeats import Heartbeats
from headway.exporter.nvrx.interruptions import Interruptions
from headway.exporter.recording.recorder import Recorder
from recording import misuses, of, record

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch about pynvml
    from nvidia_resiliency_ext.inprocess.state import State  # type: ignore[import-untyped]

    from headway.exporter.nvrx import slots, workload
    from headway.exporter.nvrx.hooks import Hooks


class FakeStore:
    """The wrapper's store after an iteration of three ranks, once called 0, 2 and 3."""

    INITIAL_RANK = "initial_rank_{rank}"

    def __init__(self, *records: tuple[int, str]) -> None:
        self._records = records
        self._values = {"initial_rank_0": "0", "initial_rank_1": "2", "initial_rank_2": "3"}

    def get_interruption_records(self) -> list[Any]:
        return [
            SimpleNamespace(rank=rank, interruption=SimpleNamespace(name=name))
            for rank, name in self._records
        ]

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)

    def get(self, key: str) -> str:
        return self._values[key]


def context(rank: int, iteration: int, store: object, *terminated: int) -> SimpleNamespace:
    state = SimpleNamespace(rank=rank, world_size=3, iteration=iteration)
    return SimpleNamespace(state=state, store=store, terminated_ranks=set(terminated))


def restarted(folder: Path, found: SimpleNamespace) -> None:
    """Record a restart up to the assignment of ranks."""
    hooks = Hooks(record(folder))
    options = hooks.options(rank_assignment=lambda given: given, abort=None)
    options["abort"](SimpleNamespace(iteration=found.state.iteration))
    assert options["rank_assignment"](found) is found


def test_the_accused_rank_is_named_as_when_its_process_began(tmp_path: Path) -> None:
    store = FakeStore((0, "EXCEPTION"), (1, "TERMINATED"))

    restarted(tmp_path, context(0, 1, store, 1))

    (fault,) = of(tmp_path, Fault)
    assert (fault.kind, fault.suspect_rank) == ("lost_rank", 2)
    assert "exception on rank 0, terminated on rank 2" in str(fault.message)


def test_only_the_first_survivor_accuses(tmp_path: Path) -> None:
    store = FakeStore((0, "TERMINATED"))

    restarted(tmp_path / "second", context(1, 1, store, 0))
    restarted(tmp_path / "third", context(2, 1, store, 0))

    assert len(of(tmp_path / "second", Fault)) == 1
    assert of(tmp_path / "third", Fault) == []


def test_a_rank_lost_before_it_told_its_first_name_keeps_its_number(tmp_path: Path) -> None:
    restarted(tmp_path, context(0, 1, FakeStore((5, "UNRESPONSIVE"))))

    (fault,) = of(tmp_path, Fault)
    assert fault.suspect_rank == 5


def test_records_that_cannot_be_read_are_reported_and_blame_nobody(tmp_path: Path) -> None:
    restarted(tmp_path, context(0, 1, object(), 1))

    assert of(tmp_path, Fault) == []
    (misuse,) = of(tmp_path, Misuse)
    assert misuse.kind == "nvrx_interface"
    assert "get_interruption_records" in str(misuse.detail)


@pytest.mark.parametrize(
    ("kinds", "hang"),
    [
        (["SOFT_TIMEOUT", "EXCEPTION"], True),
        (["UNRESPONSIVE"], True),
        ([], True),  # nobody knows why
        (["EXCEPTION", "TERMINATED"], False),
    ],
)
def test_stacks_are_worth_writing_where_somebody_was_too_slow(
    kinds: list[str], hang: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    interruptions = Interruptions(lambda error: None)
    store = FakeStore(*((0, kind) for kind in kinds))
    monkeypatch.setattr(interruptions, "_store", lambda iteration: store)

    assert interruptions.is_hang(0) is hang


def test_a_health_check_that_fails_is_recorded_and_still_fails(tmp_path: Path) -> None:
    def check(state: object) -> object:
        raise RuntimeError("GPU is gone")

    options = Hooks(record(tmp_path)).options(health_check=check)
    options["abort"](SimpleNamespace(iteration=0))
    with pytest.raises(RuntimeError, match="GPU is gone"):
        options["health_check"](SimpleNamespace())

    (health,) = of(tmp_path, Health)
    assert (health.check, health.state) == ("function", "unhealthy")
    assert "GPU is gone" in str(health.detail)


def test_a_check_that_passes_is_said_once(tmp_path: Path) -> None:
    options = Hooks(record(tmp_path)).options(health_check=lambda state: state)
    for _ in range(3):
        options["health_check"](SimpleNamespace())

    assert [one.state for one in of(tmp_path, Health)] == ["healthy"]


def test_a_spare_rank_leaves_the_attempt_and_says_so(tmp_path: Path) -> None:
    options = Hooks(record(tmp_path)).options()
    spare = SimpleNamespace(
        mode=SimpleNamespace(name="INACTIVE"), initial_rank=3, iteration=0, rank=3
    )
    options["initialize"](spare)

    (note,) = of(tmp_path, Note)
    assert note.text == "rank 3 stands by as a spare in iteration 0"


def test_a_rank_that_nvrx_ends_says_after_what(tmp_path: Path) -> None:
    options = Hooks(record(tmp_path)).options()
    options["terminate"](
        SimpleNamespace(initial_rank=1, iteration=2, fn_exception=ValueError("broken"))
    )

    (note,) = of(tmp_path, Note)
    assert note.text == "NVRx ends rank 1 in iteration 2 after ValueError"


def test_what_a_hook_itself_raises_reaches_nvrx_unchanged(tmp_path: Path) -> None:
    def abort(state: object) -> object:
        raise KeyError("broken plugin")

    options = Hooks(record(tmp_path)).options(abort=abort)
    with pytest.raises(KeyError, match="broken plugin"):
        options["abort"](SimpleNamespace(iteration=0))

    began, ended = of(tmp_path, RestartPhase)
    assert (began.phase, ended.phase) == ("abort", "abort")
    assert "broken plugin" in str(ended.detail)


class Sockets(GlooSockets):
    """Counts how often they were broken."""

    def __init__(self) -> None:
        super().__init__(set())
        self.num_shut = 0

    def shut(self) -> int:
        self.num_shut += 1
        return 0


def test_connections_are_broken_even_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    sockets = Sockets()
    options = Hooks(record(tmp_path), stacks=tmp_path, sockets=sockets).options(abort=None)

    options["abort"]("not a state")

    assert sockets.num_shut == 1
    assert misuses(tmp_path) == ["nvrx_interface"]


class Beats(Heartbeats):
    """Notes when it is started and stopped."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder, environment={})
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


def test_the_rank_monitor_is_left_before_a_restart_and_by_spares_and_for_good(
    tmp_path: Path,
) -> None:
    recorder = record(tmp_path)
    beats = Beats(recorder)
    options = Hooks(recorder, heartbeats=beats).options(abort=None)
    active, inactive = (
        SimpleNamespace(
            mode=SimpleNamespace(name=name),
            iteration=1,
            rank=0,
            initial_rank=0,
            active_world_size=2,
        )
        for name in ("ACTIVE", "INACTIVE")
    )
    for slot, state, expected in (
        ("initialize", active, "start"),
        ("finalize", active, "stop"),
        ("initialize", inactive, "stop"),
        ("initialize", active, "start"),
        ("completion", active, "stop"),
    ):
        options[slot](state)
        assert beats.calls[-1] == expected, slot


def test_annotations_that_cannot_be_evaluated_are_refused_with_the_next_step(
    tmp_path: Path,
) -> None:
    def train(wrapper: "Absent") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Do nothing."""

    with pytest.raises(TypeError, match=r"name 'Absent' is not defined; annotate the argument"):
        Hooks(record(tmp_path)).watched(train)


class Training:
    def __call__(self, factor: int, wrapper: workload.CallWrapper | None = None) -> object:
        return factor, wrapper

    def method(self, factor: int, wrapper: "Optional[workload.CallWrapper]" = None) -> object:  # noqa: UP045
        return factor, wrapper


@pytest.mark.parametrize(
    "training", [Training(), Training().method, partial(Training().method), partial(Training())]
)
def test_any_callable_is_given_the_wrapper_where_it_asks_for_it(
    tmp_path: Path, training: Callable[..., object]
) -> None:
    watched = Hooks(record(tmp_path)).watched(training)

    assert watched(3, _call_wrapper="the wrapper") == (3, "the wrapper")


@pytest.mark.parametrize("training", [print, lambda *given: print(*given)])
def test_what_asks_for_no_wrapper_is_given_none(
    tmp_path: Path, training: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    Hooks(record(tmp_path)).watched(training)("trained", _call_wrapper="the wrapper")

    assert capsys.readouterr().out == "trained\n"


class ExoticError(Exception):
    """Cannot be copied: its arguments are not those of its constructor."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} {second}")


@dataclass(kw_only=True)
class FieldsError(Exception):
    """Has fields, which NVRx copies one by one: it can copy this one, but `copy` could not."""

    part: object


class SelfishError(Exception):
    """Raises something of its own when it is copied."""

    def __deepcopy__(self, memo: object) -> None:
        raise OSError("no copies")


def raising(error: BaseException) -> Callable[[], None]:
    def train() -> None:
        raise error

    return train


@pytest.mark.parametrize(
    "error",
    [
        ExoticError(1, 2),
        FieldsError(part=threading.Lock()),
        ValueError(threading.Lock()),
        SelfishError("no"),
    ],
)
def test_an_exception_that_nvrx_could_not_copy_is_recorded_and_replaced(
    tmp_path: Path, error: Exception
) -> None:
    state = State(rank=0, world_size=1, fn_exception=error)
    with pytest.raises((TypeError, OSError)):
        state.freeze()

    with pytest.raises(workload.WorkloadError, match=type(error).__name__) as raised:
        Hooks(record(tmp_path)).watched(raising(error))()

    assert raised.value.__cause__ is error
    state.fn_exception = raised.value
    state.freeze()
    (fault,) = of(tmp_path, Fault)
    assert str(fault.exception).endswith(type(error).__name__)
    assert "in train" in str(fault.traceback)


@pytest.mark.parametrize("error", [ValueError("plain"), FieldsError(part="plain")])
def test_an_exception_that_nvrx_can_copy_is_raised_as_it_is(
    tmp_path: Path, error: Exception
) -> None:
    with pytest.raises(type(error)) as raised:
        Hooks(record(tmp_path)).watched(raising(error))()

    assert raised.value is error


def test_an_interrupt_is_recorded_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Hooks(record(tmp_path)).watched(raising(KeyboardInterrupt()))()

    assert [one.reason for one in of(tmp_path, StopAnnounced)] == ["operator"]


def test_what_follows_from_an_abort_is_no_fault_of_its_own(tmp_path: Path) -> None:
    hooks = Hooks(record(tmp_path))
    options = hooks.options(abort=None)
    options["abort"](SimpleNamespace(iteration=0))
    with pytest.raises(RuntimeError, match="closed by peer"):
        hooks.watched(raising(RuntimeError("Connection closed by peer")))()

    assert of(tmp_path, Fault) == []


def test_local_rank_is_hidden_only_while_a_wrapper_is_made_without_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "3")
    with slots.hidden_local_rank(has_gpus=False):
        assert "LOCAL_RANK" not in os.environ
    assert os.environ["LOCAL_RANK"] == "3"
    with slots.hidden_local_rank(has_gpus=True):
        assert os.environ["LOCAL_RANK"] == "3"
