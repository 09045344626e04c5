"""The real binding on top of a library that a test directs: put this folder on PYTHONPATH.

The code of the installed `nvidia-ml-py` runs as it is, with its structures, versions and errors;
only the shared library below it is replaced, by functions in Python that fill the same memory.
They follow the JSON file named by FAKE_NVML, which is read again whenever it changed, so a test
can break a GPU while it is being watched. `tests/gpu_scenario.py` writes it.
"""

import importlib.machinery
import json
import os
import sys
import time
from pathlib import Path

_HERE = Path(__file__).parent
_elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
_real = importlib.machinery.PathFinder.find_spec("pynvml", _elsewhere)
if _real is None or _real.origin is None:
    raise ImportError("nvidia-ml-py is not installed")
exec(compile(Path(_real.origin).read_text(), _real.origin, "exec"))  # noqa: S102  # the real one

_FIRST_HANDLE = 0x10000
"""Handles are addresses in the real library; nobody looks at what lies there."""
_SLICES_FROM = 32
"""Handles from this number on are MIG slices, one of each GPU."""


class _Library:
    """What `libnvidia-ml.so.1` would be."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._changed = -1
        self._content: dict = {}
        self._events_from = 0
        self._registered: dict[int, int] = {}

    def __getattr__(self, name: str):
        if name.startswith("_") or name in self._scenario.get("missing", ()):
            raise AttributeError(name)
        answer = _ANSWERS[name]

        def call(*arguments):
            if self._scenario.get("hang") == name:
                _hang()
            code = self._scenario.get("errors", {}).get(name, 0)
            return code or answer(self, *arguments)

        return call

    @property
    def _scenario(self) -> dict:
        changed = os.stat(self._path).st_mtime_ns
        if changed != self._changed:
            self._changed = changed
            self._content = json.loads(Path(self._path).read_text())
        return self._content

    def gpu(self, handle) -> dict:
        return self._scenario["gpus"][_number(handle) % _SLICES_FROM]


def _hang() -> None:
    while True:
        time.sleep(3600)


def _number(handle) -> int:
    return c_void_p.from_buffer(handle).value - _FIRST_HANDLE  # noqa: F821


def _put(pointer, value) -> int:
    pointer._obj.value = value
    return 0


def _handle(device, number: int) -> int:
    c_void_p.from_buffer(device).value = _FIRST_HANDLE + number  # noqa: F821
    return 0


_ANSWERS = {}


def _answers(name: str):
    """Register a function about no particular GPU."""

    def register(function):
        _ANSWERS[name] = function
        return function

    return register


def _answers_for(name: str):
    """Register a function about one GPU, which may be lost, hang or refuse this question."""

    def register(function):
        def call(library, handle, *arguments):
            gpu = library.gpu(handle)
            if gpu.get("hang") in (name, "everything"):
                _hang()
            code = gpu.get("error") or gpu.get("errors", {}).get(name)
            return code or function(library, gpu, *arguments)

        _ANSWERS[name] = call
        return call

    return register


def _value(name: str, key: str):
    """Register a question whose answer is one number of the scenario, unsupported without it."""

    def call(library, gpu, *arguments):
        value = gpu.get(key)
        return NVML_ERROR_NOT_SUPPORTED if value is None else _put(arguments[-1], value)  # noqa: F821

    _answers_for(name)(call)


def _text(name: str, key: str):
    def call(library, gpu, buffer, size):
        buffer.value = gpu[key].encode()
        return 0

    _answers_for(name)(call)


_ANSWERS["nvmlInitWithFlags"] = lambda library, flags: 0
_ANSWERS["nvmlShutdown"] = lambda library: 0
_text("nvmlDeviceGetName", "name")
_text("nvmlDeviceGetSerial", "serial")
_value("nvmlDeviceGetTemperature", "temperature")
_value("nvmlDeviceGetPowerUsage", "power")
_value("nvmlDeviceGetCurrentClocksEventReasons", "reasons")
_value("nvmlDeviceGetCurrentClocksThrottleReasons", "reasons")
_value("nvmlDeviceGetPcieReplayCounter", "pcie_replays")
_value("nvmlDeviceGetRetiredPagesPendingStatus", "retired_pending")
_value("nvmlDeviceGetMaxMigDeviceCount", "most_slices")


@_answers("nvmlSystemGetDriverVersion")
def _driver_version(library, buffer, size):
    buffer.value = library._scenario["driver"].encode()
    return 0


@_answers("nvmlDeviceGetCount_v2")
def _count(library, pointer):
    return _put(pointer, len(library._scenario["gpus"]))


@_answers("nvmlDeviceGetHandleByIndex_v2")
def _by_index(library, index, pointer):
    gpu = library._scenario["gpus"][index.value]
    if gpu.get("hang") == "everything":
        _hang()
    return (
        gpu.get("error")
        or gpu.get("errors", {}).get("handle")
        or _handle(pointer._obj, index.value)
    )


@_answers("nvmlDeviceGetUUID")
def _uuid(library, handle, buffer, size):
    gpu = library.gpu(handle)
    part = _number(handle) - _SLICES_FROM
    buffer.value = (gpu["slices"][0] if part >= 0 else gpu["uuid"]).encode()
    return gpu.get("error") or 0


@_answers_for("nvmlDeviceGetPciInfo_v3")
def _pci(library, gpu, pointer):
    pointer._obj.busId = gpu["pci"].encode()
    return 0


@_answers_for("nvmlDeviceGetMigMode")
def _mig_mode(library, gpu, current, pending):
    if "slices" not in gpu:
        return NVML_ERROR_NOT_SUPPORTED  # noqa: F821
    return _put(current, 1) or _put(pending, 1)


@_answers_for("nvmlDeviceGetMigDeviceHandleByIndex")
def _slice(library, gpu, index, pointer):
    # One slice a GPU, in the second place: places have gaps.
    if index.value != 1:
        return NVML_ERROR_NOT_FOUND  # noqa: F821
    return _handle(pointer._obj, _SLICES_FROM + library._scenario["gpus"].index(gpu))


@_answers_for("nvmlDeviceGetGpuInstanceId")
def _gpu_instance(library, gpu, pointer):
    return _put(pointer, 2)


@_answers_for("nvmlDeviceGetComputeInstanceId")
def _compute_instance(library, gpu, pointer):
    return _put(pointer, 0)


@_answers_for("nvmlDeviceGetMemoryInfo")
def _memory(library, gpu, pointer):
    memory = pointer._obj
    memory.total, memory.used = gpu["memory"]
    memory.free = memory.total - memory.used
    return 0


@_answers_for("nvmlDeviceGetUtilizationRates")
def _utilization(library, gpu, pointer):
    pointer._obj.gpu, pointer._obj.memory = gpu["utilization"], 0
    return 0


@_answers_for("nvmlDeviceGetTotalEccErrors")
def _ecc(library, gpu, error_type, counter_type, pointer):
    if "ecc" not in gpu:
        return NVML_ERROR_NOT_SUPPORTED  # noqa: F821
    return _put(pointer, gpu["ecc"][error_type.value])


@_answers_for("nvmlDeviceGetRemappedRows")
def _remapped(library, gpu, *pointers):
    if "remapped" not in gpu:
        return NVML_ERROR_NOT_SUPPORTED  # noqa: F821
    for pointer, value in zip(pointers, gpu["remapped"], strict=True):
        _put(pointer, value)
    return 0


@_answers_for("nvmlDeviceGetNvLinkState")
def _link_state(library, gpu, link, pointer):
    links = gpu.get("links", [])
    if link >= len(links):
        return NVML_ERROR_INVALID_ARGUMENT  # noqa: F821
    return _put(pointer, links[link])


@_answers_for("nvmlDeviceGetFieldValues")
def _field_values(library, gpu, number, pointer):
    for value in pointer._obj:
        known = gpu.get("fields", {}).get(str(value.fieldId))
        value.nvmlReturn = NVML_ERROR_NOT_SUPPORTED if known is None else 0  # noqa: F821
        if known is not None:
            value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT  # noqa: F821
            value.value.uiVal = known
    return 0


@_answers("nvmlEventSetCreate")
def _event_set(library, pointer):
    library._events_from = len(library._scenario.get("events", ()))
    library._registered = {}
    return 0


@_answers("nvmlEventSetFree")
def _free(library, events):
    library._registered = {}
    return 0


@_answers_for("nvmlDeviceGetSupportedEventTypes")
def _event_types(library, gpu, pointer):
    return _put(pointer, gpu.get("event_types", 0xFF8F))


@_answers("nvmlDeviceRegisterEvents")
def _register(library, handle, types, events):
    gpu = library.gpu(handle)
    if types.value & ~gpu.get("event_types", 0xFF8F):
        return NVML_ERROR_NOT_SUPPORTED  # noqa: F821
    library._registered[_number(handle)] = types.value
    return gpu.get("error") or 0


@_answers("nvmlEventSetWait_v2")
def _wait(library, events, pointer, timeout):
    deadline = time.monotonic() + timeout.value / 1000
    while True:
        waiting = library._scenario.get("events", [])[library._events_from :]
        for number, kind, data, gpu_instance, compute_instance in waiting:
            library._events_from += 1
            if library._registered.get(number, 0) & kind:
                event = pointer._obj
                _handle(event, number)  # its first field
                event.eventType, event.eventData = kind, data
                event.gpuInstanceId, event.computeInstanceId = gpu_instance, compute_instance
                return 0
        left = deadline - time.monotonic()
        if left <= 0:
            return NVML_ERROR_TIMEOUT  # noqa: F821
        time.sleep(min(left, library._scenario["tick"]))


if "load_error" not in json.loads(Path(os.environ["FAKE_NVML"]).read_text()):
    # Else the real binding looks for a library that is not on this machine.
    globals()["nvmlLib"] = _Library(os.environ["FAKE_NVML"])
