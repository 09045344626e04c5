"""Background writing of distributed checkpoints through NVRx, on CPU as well as on GPU.

NVRx stages tensors with CUDA calls that a CPU build of torch lacks, and on CPU hands the writer
the live parameters. Here the state is copied to host memory first, which makes both cases one,
and ranks agree over gloo. Features are probed, because NVRx's signatures differ between versions.
"""

import ctypes
import inspect
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any

import psutil  # type: ignore[import-untyped]  # a requirement of NVRx
import torch
import torch.distributed as dist
from nvidia_resiliency_ext.checkpointing.async_ckpt import (  # type: ignore[import-untyped]
    filesystem_async,
)
from nvidia_resiliency_ext.checkpointing.async_ckpt.core import (  # type: ignore[import-untyped]
    AsyncCallsQueue,
    AsyncRequest,
    PersistentAsyncCaller,
)
from nvidia_resiliency_ext.checkpointing.async_ckpt.state_dict_saver import (  # type: ignore[import-untyped]
    save_state_dict_async_plan,
)
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex

Done = Callable[[str | None, int | None], None]
"""Called on every rank when a checkpoint is complete, or with the reason why it never will be.

The rank that completes it is also told its bytes, those of all ranks.
"""


class WriterDiedError(RuntimeError):
    """A rank's writing process ended; the attempt must be restarted to get a new one."""


def stage(state: Any) -> Any:
    """Return a copy of a state in host memory that training cannot change any more."""
    if isinstance(state, torch.Tensor):
        still = state.detach()
        return still.clone() if still.device.type == "cpu" else still.cpu()
    if isinstance(state, dict):
        return {name: stage(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(stage(value) for value in state)
    return state


class BackgroundWriter:
    """Writes staged states in a process of its own; every rank must make the same calls."""

    copies = True
    """Training goes on while it writes, and on a CPU it would be handed the live parameters."""

    def __init__(self, rank: int) -> None:
        """Prepare; `rank` is this process's global rank."""
        self._rank = rank
        self._queue: Any = None
        self._helpers: list[int | None] = []

    def start(self) -> None:
        """Start the writing process without waiting for it.

        It imports torch anew, which takes seconds. The queue of results starts another process
        while this thread is blocked, so call this before a progress watchdog is running.
        """
        if self._queue is not None:
            return
        children = set(active_children())
        with _deaf_to_sigterm():
            results = _results_queue()
            self._helpers += [x.pid for x in set(active_children()) - children]
            self._queue = AsyncCallsQueue(persistent=True)
            self._queue.persistent_caller = _Caller(self._rank)
            self._queue.schedule_async_request(
                AsyncRequest(_prepare, (results, self._helpers, os.getpid()), [])
            )

    def write(self, state: Any, path: Path, done: Done) -> None:
        """Hand a staged state over and return; `path` is an empty folder seen by all ranks.

        Raises:
            OSError: the write could not be planned, on any rank.
            WriterDiedError: this rank's writing process is gone; it would be waited for forever.
        """
        if not self._queue.persistent_caller.is_alive():
            raise WriterDiedError("this rank lost the process that writes checkpoints")
        writer = filesystem_async.FileSystemWriterAsync(path, thread_count=1)
        try:
            _, metadata, wrapper = save_state_dict_async_plan(
                state, writer, planner=DefaultSavePlanner()
            )
        except CheckpointException as error:  # a BaseException, which would end the program
            raise OSError(f"{path}: {first_failure(error)}") from error
        function, preload, arguments = writer.get_save_function_and_args()
        if function is not None:
            # The last argument asks for a copy from the GPU that ends in a CUDA call.
            preload = partial(preload.func, *preload.args[:-1], False)
        request = AsyncRequest(
            function,
            arguments,
            [partial(_finalize, writer, metadata, wrapper, done)],
            preload_fn=preload,
        )
        self._queue.schedule_async_request(request)

    def poll(self, *, blocking: bool = False) -> None:
        """Complete the writes that are finished on all ranks; a collective while any is open.

        Raises:
            WriterDiedError: on all ranks, when one lost its writing process.
        """
        # `no_dist` spares NVRx's own check, which needs CUDA; the caller below synchronises.
        self._queue.maybe_finalize_async_calls(blocking=blocking, no_dist=True)

    def abandon(self) -> None:
        """Drop unfinished writes without a collective; the next `start` starts anew."""
        if self._queue is None:
            return
        is_open = self._queue.get_num_unfinalized_calls() > 0
        if is_open or not self._queue.persistent_caller.is_alive():
            self.close()
            _drain(_results_queue())

    def close(self) -> None:
        """Kill the writing process; without this a program that failed would wait for it."""
        if self._queue is not None:
            self._queue.persistent_caller.kill()
            # From 0.6 on the queue's finalizer would complete them: a collective of one rank.
            self._queue.async_calls.clear()
            self._queue = None


_CALLER_OPTIONS = (
    {"cpu_shm_mode": True}
    if "cpu_shm_mode" in inspect.signature(PersistentAsyncCaller.__init__).parameters
    else {}
)


class _Caller(PersistentAsyncCaller):  # type: ignore[misc]  # NVRx is untyped
    process: Any

    def __init__(self, rank: int) -> None:
        super().__init__(**_CALLER_OPTIONS)
        self.rank = rank  # else asked of a process group that does not exist yet

    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def is_current_async_call_done(self, blocking: bool = False, no_dist: bool = False) -> bool:
        # NVRx's own blocking wait would not notice that the process has died.
        while not super().is_current_async_call_done(blocking=False, no_dist=False):
            if not blocking:
                return False
            time.sleep(0.01)
        return True

    def sync_all_async_calls(self, is_alive: int) -> bool:
        states = torch.tensor([int(is_alive), int(not self.is_alive())], dtype=torch.int)
        dist.all_reduce(states)
        working, dead = states.tolist()
        if dead:
            raise WriterDiedError(f"{dead} ranks lost the process that writes checkpoints")
        return bool(working == 0)

    def kill(self) -> None:
        if self.process is not None:
            _kill_tree(self.process.pid)
            self.process.join()
            self.process = None


def _finalize(writer: Any, metadata: Any, wrapper: Any, done: Done) -> None:
    """Collect what the ranks wrote and complete the checkpoint, or agree that it failed."""
    results, reason = None, None
    try:
        results = writer.retrieve_write_results()
    except RuntimeError as error:
        reason = f"rank {dist.get_rank()}: {error}"
    gathered = wrapper.gather_object((results, reason))
    verdict, size = None, None
    if wrapper.is_coordinator:
        verdict = next((reason for _, reason in gathered if reason), None)
        if verdict is None:
            try:
                writer.finish(metadata, [results for results, _ in gathered])
                size = bytes_in(metadata)
            except OSError as error:
                verdict = f"metadata: {error}"
    done(wrapper.broadcast_object(verdict), size)


def first_failure(error: CheckpointException) -> str:
    """Return what went wrong on the first rank that failed, without the traceback of each."""
    for rank, (failure, _) in error.failures.items():
        return f"rank {rank}: {type(failure).__name__}: {failure}"
    return str(error)


def bytes_in(metadata: Any) -> int:
    """Return the bytes of a complete checkpoint's data, those of all ranks."""
    return sum(stored.length for stored in metadata.storage_data.values())


@contextmanager
def _deaf_to_sigterm() -> Iterator[None]:
    """Start processes that do not hear SIGTERM.

    A launcher sends it to the whole process group, and the last save still needs them.
    """
    resource_tracker.ensure_running()  # the first process would start it, and it unblocks SIGTERM
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _results_queue() -> Any:
    public = getattr(filesystem_async, "get_write_results_queue", None)
    return (public or filesystem_async._get_write_results_queue)()


def _drain(results: Any) -> None:
    try:
        while True:
            results.get_nowait()
    except queue.Empty:
        return


def _kill_tree(process_id: int) -> None:
    try:
        top = psutil.Process(process_id)
        processes = [*top.children(recursive=True), top]
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def _prepare(results: Any, helpers: list[int], training_process: int) -> None:
    """In the writing process: end it and its helpers when the training process dies.

    NVRx 0.4.1 leaves them running after a SIGKILL.
    """
    writing_process = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == writing_process:  # its forked children inherit this handler
            for process_id in helpers:
                _kill_tree(process_id)
            _kill_tree(writing_process)
        os._exit(128 + number)

    signal.signal(signal.SIGUSR1, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the training, which ends this
    set_parent_death_signal = 1  # from linux/prctl.h
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGUSR1)
    if os.getppid() != training_process:  # it died before it could be waited for
        end(signal.SIGUSR1, None)
    # The results' process imports torch when it first sees something of torch, which would
    # delay the first save.
    results.put(MetadataIndex(""))
    results.get()
