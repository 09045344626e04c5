"""The handle that `Recorder.step` returns: the only code that runs at every training step.

One object serves all steps of a recorder, and what is normal takes no branch into other code:
about a microsecond per step is the budget. Reads of shared state are laid out so that an
exception raised by another thread (NVRx restarts that way) leaves it consistent.
"""

import math
import time
from typing import TYPE_CHECKING

from headway.exporter.spooling.layout import (
    BLOCK,
    STEP_BLOCK,
    STEP_BODY,
    STEP_KIND,
    Slot,
    step_checksum,
)
from headway.step_blocks import UNKNOWN_SAMPLES

if TYPE_CHECKING:
    from types import TracebackType

    from headway.exporter.recording.unusual_steps import UnusualSteps
    from headway.exporter.spooling.writer import SpoolWriter

_LAST_STEP, _STEP_START, _STEP_END = (
    int(Slot.LAST_STEP),
    int(Slot.STEP_START),
    int(Slot.STEP_END),
)
NO_NUMBER = -(2**63)
"""The number before the first step, which may be any."""
LARGEST_SAMPLES = 2**63 - 1
_NAN = math.nan
_pack, _put, _checksum = STEP_BODY.pack, STEP_BLOCK.pack_into, step_checksum
_now = time.monotonic_ns


class StepTimer:
    """Measures one step; set `loss` (a float) and `samples` (consumed so far) inside the block."""

    __slots__ = (
        "attempt",
        "data_wait",
        "loss",
        "number",
        "samples",
        "slots",
        "start",
        "unusual",
        "writer",
    )

    def __init__(self, unusual: "UnusualSteps") -> None:
        """Make a handle that records nothing until it has a writer."""
        self.unusual = unusual
        self.writer: SpoolWriter | None = None
        self.slots: memoryview | None = None
        self.attempt = 0
        self.number = NO_NUMBER
        """The step, and outside a step the one before the next."""
        self.start = 0
        self.data_wait = 0
        self.loss: float | None = None
        self.samples: int | None = None

    def __enter__(self) -> "StepTimer":
        """Start the step."""
        slots = self.slots
        if slots is not None:
            slots[_STEP_START] = self.start = _now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        """Record the step as completed, unless an exception cut it short."""
        end = _now()
        start, slots, writer = self.start, self.slots, self.writer
        if not start or slots is None or writer is None:
            return
        self.start = 0
        slots[_STEP_END] = end
        if error is not None:
            self.unusual.cut_short(start, end, error)
            return
        loss, samples, data_wait = self.loss, self.samples, self.data_wait
        if loss is None:
            loss = _NAN
        elif type(loss) is not float or loss - loss != 0.0:
            loss = self.unusual.plain_loss(loss, self.number)
        if samples is None:
            samples = UNKNOWN_SAMPLES
        elif type(samples) is not int or not 0 <= samples <= LARGEST_SAMPLES:
            samples = self.unusual.plain_samples(samples)
        self.data_wait = 0
        number = self.number
        duration = end - start
        try:
            offset = writer.offset
            if writer.busy or offset >= writer.end:
                writer.step(number, self.attempt, start, duration, data_wait, loss, samples)
            else:
                writer.busy = True
                try:
                    sequence = writer.sequence
                    body = _pack(
                        STEP_KIND,
                        sequence,
                        number,
                        self.attempt,
                        start,
                        duration,
                        data_wait,
                        loss,
                        samples,
                    )
                    _put(writer.map, offset, body, _checksum(body, writer.salt))
                    writer.offset = offset + BLOCK
                    writer.sequence = sequence + 1
                finally:
                    writer.busy = False
                if writer.pending:
                    writer.drain()
        except Exception as failure:  # the boundary that protects the training
            self.unusual.suppressed(failure)
        slots[_LAST_STEP] = number
