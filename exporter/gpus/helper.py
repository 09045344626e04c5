"""The process that asks the GPUs' driver; the agent starts it with `python -m`.

A question about a lost GPU may never return, so the questions are asked here and nothing else is
done here. Each line of the output is one JSON object with its `kind`, its time `at` (monotonic ns)
and its `patience`: the seconds after which the next line follows if the driver answers at once.
The agent kills this process when a line stays out for longer than its deadline.
"""

import argparse
import contextlib
import ctypes
import json
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Collection
from typing import Any

from headway.exporter.gpus.reading import (
    NO_PERMISSION,
    SIGNALS,
    TIMEOUT,
    Gpu,
    listed,
    quick,
    slow,
)

SLOW_INTERVAL = 60.0
"""Seconds between two readings of what rarely changes."""
LIST_INTERVAL = 600.0
"""Seconds between two looks at the driver's list of GPUs; sooner where one is in trouble."""
_TROUBLED_LIST_INTERVAL = 300.0
_LONGEST_WAIT = 5.0
"""Seconds for which one wait for events may last: a wait on a lost GPU can hang as well."""
_MOST_EVENTS = 1000
"""Events taken at once before the GPUs are looked at again."""
_REREAD = 1.0
"""Least seconds between two readings of one GPU that events ask for."""
EVENTS = {
    0x2: "ecc_uncorrected",
    0x8: "xid",
    0x100: "slices_changed",
    0x200: "ecc_corrected",
    0x400: "page_retirement",
    0x800: "row_remap_failed",
    0x1000: "poison",
    0x2000: "fatal_poison",
    0x4000: "unavailable",
    0x8000: "recovery_action",
}
"""Types of NVML's events that are waited for. Not single corrected errors (0x1): a count tells."""
_WORDS = {
    4: "no permission to use the NVIDIA driver: the agent needs /dev/nvidiactl and /dev/nvidia*",
    9: "the NVIDIA driver is not loaded",
    12: "there is no NVIDIA driver here (libnvidia-ml.so.1 was not found)",
    18: "the NVIDIA driver and its library differ in version: reload the driver or reboot",
}
"""What NVML's refusals to start mean, by their number."""
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Ask until killed; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval", type=float, required=True, help="seconds between readings")
    parser.add_argument("--skip", type=int, action="append", default=[], help="number of a GPU")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the agent ends this process
    # An agent that is a thread of `headway run` blocks all signals, and a child inherits that.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    say("starting")
    warnings.simplefilter("ignore")  # NVRx installs a deprecated package of the binding's name
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        _disabled("nvidia-ml-py is not installed: pip install 'headway[exporter]'")
        return 0
    try:
        while watch(pynvml, options.interval, options.skip):
            pass
    except BrokenPipeError:  # the agent is gone
        sys.stdout = None
    return 0


def say(kind: str, **values: object) -> None:
    """Tell the agent."""
    line = {"kind": kind, "at": time.monotonic_ns(), "patience": 0.0, **values}
    print(json.dumps(line, separators=(",", ":")), flush=True)


def _disabled(reason: str, *, loaded: bool = False) -> None:
    say("disabled", reason=reason, loaded=loaded)


def watch(nvml: Any, interval: float, skip: Collection[int]) -> bool:
    """Watch the GPUs until their list may have changed; return whether there is anything to do."""
    try:
        nvml.nvmlInit()
        driver = nvml.nvmlSystemGetDriverVersion()
        number = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        if error.value in SIGNALS:
            say("trouble", code=error.value, words=str(error))
            return False
        _disabled(_WORDS.get(error.value, f"NVML does not start: {error}"))
        return False
    if not number:
        say("inventory", gpus=[], skipped=[])
        _disabled("the NVIDIA driver is loaded, but it lists no GPU", loaded=True)
        return False
    session = _Session(nvml, interval, driver, number, skip)
    session.run()
    session.close()
    return True


class _Session:
    """One look at a list of GPUs, from NVML's start to its end."""

    def __init__(
        self, nvml: Any, interval: float, driver: str, number: int, skip: Collection[int]
    ) -> None:
        self._nvml = nvml
        self._interval = interval
        self._driver = driver
        self._indexes = [index for index in range(number) if index not in skip]
        self._troubled = False
        self._gpus = self._list()
        say("inventory", gpus=[gpu.identity for gpu in self._gpus], skipped=list(skip))
        self._events = self._registered()
        self._deaf = self._events is None
        self._deep_at: dict[str, float] = {}

    def run(self) -> None:
        """Read and wait until it is time to look at the list again and it has changed."""
        now = time.monotonic()
        next_slow, next_list = now, now + LIST_INTERVAL
        while True:
            began = time.monotonic()
            deep = began >= next_slow
            if deep:
                next_slow = began + SLOW_INTERVAL
            for gpu in self._gpus:
                self._read(gpu, deep)
            if began >= next_list - (LIST_INTERVAL - _TROUBLED_LIST_INTERVAL) * self._troubled:
                if self._troubled or self._identities() != [gpu.identity for gpu in self._gpus]:
                    return
                next_list = began + LIST_INTERVAL
            if not self._wait(began + self._interval):
                return

    def close(self) -> None:
        """Give NVML back what was taken."""
        with contextlib.suppress(self._nvml.NVMLError):
            if self._events is not None:
                self._nvml.nvmlEventSetFree(self._events)
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _list(self) -> list[Gpu]:
        found = []
        for index in self._indexes:
            say("asking", index=index)
            try:
                found.append(listed(self._nvml, index, self._driver))
            except self._nvml.NVMLError as error:
                self._trouble(error, index=index)
        return found

    def _identities(self) -> list[object]:
        return [gpu.identity for gpu in self._list()]

    def _read(self, gpu: Gpu, deep: bool) -> None:
        say("asking", device=gpu.device, index=gpu.identity["index"])
        if deep:
            self._deep_at[gpu.device] = time.monotonic()
        try:
            state = quick(self._nvml, gpu)
            if deep:
                state |= slow(self._nvml, gpu)
        except self._nvml.NVMLError as error:
            self._trouble(error, device=gpu.device)
            return
        say("state", device=gpu.device, state=state, deep=deep, refusals=gpu.refusals)

    def _read_again(self, gpu: Gpu) -> None:
        """Read after an event, which may be one of a flood."""
        if time.monotonic() - self._deep_at[gpu.device] > _REREAD:
            self._read(gpu, deep=True)

    def _trouble(self, error: Any, **about: object) -> None:
        if error.value != NO_PERMISSION:  # which will not pass by itself
            self._troubled = True
        say("trouble", code=error.value, words=str(error), **about)

    def _registered(self) -> Any:
        """Return the set of events that the driver will report, or None where it reports none."""
        try:
            events = self._nvml.nvmlEventSetCreate()
        except self._nvml.NVMLError:
            return None
        for gpu in self._gpus:
            say("asking", device=gpu.device, index=gpu.identity["index"])
            try:
                known = self._nvml.nvmlDeviceGetSupportedEventTypes(gpu.handle)
                types = sum(kind for kind in EVENTS if kind & known)
                self._nvml.nvmlDeviceRegisterEvents(gpu.handle, types, events)
            except self._nvml.NVMLError as error:
                if error.value in SIGNALS:
                    self._trouble(error, device=gpu.device)
                else:
                    gpu.refusals["nvmlDeviceRegisterEvents"] = (error.value, str(error))
        return events

    def _wait(self, until: float) -> bool:
        """Tell what the driver reports until a time; return whether the list still holds."""
        while (left := until - time.monotonic()) > 0:
            wait = min(left, _LONGEST_WAIT)
            say("waiting", patience=wait)
            if self._deaf:
                time.sleep(wait)
                continue
            for (device, kind, data, *instance), repeats in self._taken(wait).items():
                gpu_instance, compute_instance = instance
                say(
                    "event",
                    device=device,
                    event=kind,
                    data=data,
                    gpu_instance=gpu_instance,
                    compute_instance=compute_instance,
                    repeats=repeats,
                )
                if kind == "slices_changed":
                    return False
                for gpu in self._gpus:
                    if gpu.device == device:
                        self._read_again(gpu)
        return True

    def _taken(self, wait: float) -> Counter[tuple[Any, ...]]:
        """Wait for an event and take all there are; equal ones are counted."""
        taken: Counter[tuple[Any, ...]] = Counter()
        while taken.total() < _MOST_EVENTS:
            try:
                event = self._nvml.nvmlEventSetWait_v2(
                    self._events, 0 if taken else max(int(wait * 1000), 1)
                )
            except self._nvml.NVMLError as error:
                if error.value != TIMEOUT:
                    # Of a GPU that its reading will name; each further wait would end at once.
                    self._troubled = self._deaf = True
                break
            place = ctypes.addressof(event.device.contents)
            device = next(
                (
                    gpu.device
                    for gpu in self._gpus
                    if ctypes.addressof(gpu.handle.contents) == place
                ),
                None,
            )
            kind = EVENTS.get(event.eventType, str(event.eventType))
            taken[
                device,
                kind,
                event.eventData,
                _instance(event.gpuInstanceId),
                _instance(event.computeInstanceId),
            ] += 1
        return taken


def _instance(number: int) -> int | None:
    """Return a MIG instance; NVML says 0xFFFFFFFF where there is none."""
    return None if number == 0xFFFF_FFFF else number


if __name__ == "__main__":
    sys.exit(main())
