"""A training of somebody else that uses NVRx's wrapper itself and takes Headway's hooks.

Its first iteration raises what cannot be copied, its second hangs until its stacks are written,
its third completes. Its function's annotations are texts, on which NVRx alone would fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Optional

from nvidia_resiliency_ext import inprocess

from headway.exporter import Recorder
from headway.exporter.nvrx.hooks import Hooks
from headway.exporter.nvrx.slots import hidden_local_rank

FOLDER = Path(sys.argv[1])
STACKS = FOLDER / "stacks"


class ExoticError(Exception):
    """Cannot be copied: its arguments are not those of its constructor."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} of {second}")


def train(
    steps: list[int] | None,
    wrapper: Optional[inprocess.CallWrapper] = None,  # noqa: UP045
) -> str:
    assert wrapper is not None
    if wrapper.iteration == 0:
        (FOLDER / "trace_0").write_bytes(b"what NCCL was doing")
        raise ExoticError(1, 2)
    if wrapper.iteration == 1:
        subprocess.run(["sh", "-c", f"until [ -e {STACKS} ]; do sleep 0.1; done"], check=True)
        while True:
            time.sleep(0.01)
    return f"done in iteration {wrapper.iteration}"


def main() -> None:
    recorder = Recorder("own")
    hooks = Hooks(recorder, stacks=STACKS)
    options = hooks.options(
        initialize=inprocess.initialize.RetryController(max_iterations=5),
        abort=None,
        soft_timeout=timedelta(seconds=2),
        hard_timeout=timedelta(seconds=60),
        monitor_thread_interval=timedelta(seconds=0.1),
        monitor_process_interval=timedelta(seconds=0.1),
        heartbeat_interval=timedelta(seconds=0.2),
        progress_watchdog_interval=timedelta(seconds=0.1),
        last_call_wait=timedelta(seconds=0.1),
    )
    with hidden_local_rank(has_gpus=False):
        wrapper = inprocess.Wrapper(**options)
    print(wrapper(hooks.watched(train))([1]))
    print(hooks.timeouts()["in_process.soft_timeout"], "LOCAL_RANK" in os.environ)


if __name__ == "__main__":
    main()
