"""The places where NVRx's in-process wrapper calls a program, as the installed version has them.

Versions are probed, never compared: a slot is used if the wrapper takes an argument of its name
and its base class exists and can be made; what is missing is told by `missing`.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any, NamedTuple

_PACKAGE = "nvidia_resiliency_ext.inprocess"
_BASES = {
    "initialize": "Initialize",
    "abort": "Abort",
    "finalize": "Finalize",
    "health_check": "HealthCheck",
    "rank_assignment": "RankAssignment",
    "completion": "Completion",
    "terminate": "Terminate",
}
"""Each slot is an argument of the wrapper, a module, and a base class in it."""
SLOTS = tuple(_BASES)

Action = Callable[[Any], None]


def _nothing(_: Any) -> None:
    """Do nothing."""


class Around(NamedTuple):
    """What to do around a hook: before it, after it, and after it raised."""

    before: Action = _nothing
    after: Action = _nothing
    failed: Callable[[BaseException], None] = _nothing


def version() -> str:
    """Return the installed version of NVRx, to name it to people."""
    try:
        return metadata.version("nvidia-resiliency-ext")
    except metadata.PackageNotFoundError:
        return "of unknown version"


def wrapper_defaults() -> Mapping[str, Any]:
    """Return the arguments that the wrapper takes with their defaults, `None` where it has none."""
    wrapper = import_module(_PACKAGE).Wrapper
    return {
        name: None if parameter.default is inspect.Parameter.empty else parameter.default
        for name, parameter in inspect.signature(wrapper.__init__).parameters.items()
        if name != "self"
    }


def hook(slot: str, inner: Callable[[Any], Any] | None, around: Around) -> Any:
    """Return a hook for a slot that calls `inner`, if any, and acts around it.

    None where the installed version knows no such slot. `around` must not raise.
    """
    try:
        base = getattr(import_module(f"{_PACKAGE}.{slot}"), _BASES[slot])
    except (ImportError, AttributeError):
        return None
    before, after, failed = around

    def call(_: Any, state: Any) -> Any:
        before(state)
        if inner is None:
            after(state)
            return state
        try:
            result = inner(state)
        except BaseException as error:
            failed(error)
            raise
        after(state if result is None else result)
        return result

    try:
        return type(f"Recorded{_BASES[slot]}", (base,), {"__call__": call})()
    except TypeError:  # it asks for more than a call by now
        return None


@contextmanager
def hidden_local_rank(has_gpus: bool) -> Iterator[None]:
    """Hide LOCAL_RANK on a machine without GPUs while the wrapper is made.

    From 0.5 on the wrapper adds GPU and NIC checks where it is set; without NVML they fail at
    the first restart and end every rank.
    """
    hidden = None if has_gpus else os.environ.pop("LOCAL_RANK", None)
    try:
        yield
    finally:
        if hidden is not None:
            os.environ["LOCAL_RANK"] = hidden
