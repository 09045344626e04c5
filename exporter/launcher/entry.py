"""Runs a Python launcher as it would run itself, with torchelastic's metrics and events told.

    python entry.py DESCRIPTOR script PATH ARGS ...
    python entry.py DESCRIPTOR module NAME ARGS ...

Started as a file by the launcher's own interpreter, which may know nothing of Headway: standard
library only. Whatever cannot be observed is left alone, and the launcher runs all the same.
"""

import contextlib
import json
import logging
import os
import runpy
import sys
import time
from collections.abc import Callable
from importlib import import_module

_LIBRARIES = (
    "nvidia_resiliency_ext.fault_tolerance._torch_elastic_compat",  # NVRx 0.4.1 has its own copy
    "torch.distributed.elastic",
)


def main() -> None:
    """Observe, then become the launcher."""
    descriptor, kind, target, *arguments = sys.argv[1:]
    os.set_inheritable(int(descriptor), False)
    sys.argv = [target, *arguments]
    if not sys.flags.safe_path:
        script = kind == "script"
        sys.path[0] = os.path.dirname(os.path.realpath(target)) if script else os.getcwd()
    wanted = _LIBRARIES if "ft_launcher" in target or "nvidia" in target else _LIBRARIES[1:]
    for library in wanted:
        with contextlib.suppress(Exception):
            _observe(library, _teller(int(descriptor)))
    if kind == "script":
        runpy.run_path(target, run_name="__main__")
    else:
        runpy.run_module(target, run_name="__main__", alter_sys=True)


def _teller(descriptor: int) -> Callable[..., None]:
    os.set_blocking(descriptor, False)

    def tell(**values: object) -> None:
        with contextlib.suppress(Exception):  # nobody reads, or not fast enough
            line = json.dumps({"at": time.monotonic_ns(), **values}).encode() + b"\n"
            os.write(descriptor, line)

    return tell


def _observe(library: str, tell: Callable[..., None]) -> None:
    metrics = import_module(library + ".metrics")
    events = import_module(library + ".events")

    class Handler(metrics.MetricHandler):  # type: ignore[misc, name-defined]
        last: dict[str, object] = {}  # noqa: RUF012

        def emit(self, metric_data):  # type: ignore[no-untyped-def]
            name, value = metric_data.name, metric_data.value
            # Restarts left are told several times a second.
            if name.endswith(".duration.ms") or self.last.get(name) != value:
                self.last[name] = value
                tell(metric=name, value=value)

    class Events(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(event=record.getMessage())

    for group in (None, "torchelastic"):
        metrics.configure(Handler(), group)
    find = getattr(events, "_get_or_create_logger", None)
    if find is not None:
        find("null").addHandler(Events())
    tell(metric="entered", value=1)


if __name__ == "__main__":
    main()
