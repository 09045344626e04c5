"""The records of a spool as envelopes: consecutive steps of an attempt travel in one."""

from collections.abc import Mapping
from typing import Any

from headway import step_blocks
from headway.events import Envelope, Steps
from headway.exporter.spooling.blocks import StepBlock
from headway.exporter.spooling.layout import Producer
from headway.wire import WireError, build, decode_fields

MOST_STEPS = 1000
"""Most steps in one envelope."""


class JoinedRecords:
    """Collects blocks into envelopes and joins consecutive steps."""

    def __init__(self, producer: Producer) -> None:
        """Start with none."""
        self._producer = producer
        self._envelopes: list[Envelope] = []
        self._steps: list[StepBlock] = []
        self.records = 0
        self.sequence = 0
        """The sequence number after the last record."""

    def add(self, block: "StepBlock | Mapping[str, Any] | None") -> bool:
        """Take a block; return whether it could be understood."""
        if block is None:
            return False
        if isinstance(block, StepBlock):
            self._add_step(block)
        else:
            try:
                envelope = self._event(block)
            except WireError:
                return False
            self._join()
            self._envelopes.append(envelope)
            self.sequence = envelope.last_sequence + 1
        self.records += 1
        return True

    def envelopes(self) -> list[Envelope]:
        """Return everything taken so far."""
        self._join()
        return self._envelopes

    def _add_step(self, block: StepBlock) -> None:
        if self._steps:
            last = self._steps[-1]
            follows = (last.sequence + 1, last.step + 1, last.attempt)
            if follows != block[:3] or len(self._steps) == MOST_STEPS:
                self._join()
        self._steps.append(block)
        self.sequence = block.sequence + 1

    def _join(self) -> None:
        if not self._steps:
            return
        first, last = self._steps[0], self._steps[-1]
        newest = step_blocks.Step(*step_blocks.LAYOUT.unpack(last.packed))
        end = newest.start + newest.duration
        event = Steps(
            first_step=first.step,
            version=step_blocks.VERSION,
            packed=b"".join(step.packed for step in self._steps),
        )
        self._steps = []
        self._envelopes.append(
            Envelope(
                producer=self._producer.producer,
                anchor=self._producer.anchor,
                first_sequence=first.sequence,
                last_sequence=last.sequence,
                run=self._producer.run,
                attempt=attempt_name(last.attempt),
                rank=self._producer.rank,
                node=self._producer.node,
                boot_id=self._producer.boot_id,
                wall=self._producer.anchor + end,
                monotonic=end,
                event=event,
            )
        )

    def _event(self, values: Mapping[str, Any]) -> Envelope:
        name, fields = values.get("name"), values.get("fields")
        if not isinstance(name, str) or not isinstance(fields, dict):
            raise WireError("a frame needs 'name' and 'fields'")
        envelope = {
            **self._producer.to_json(),
            **{key: values.get(key) for key in ("attempt", "rank", "monotonic", "wall")},
            "first_sequence": values.get("sequence"),
            "last_sequence": values.get("sequence"),
        }
        return build(envelope, name, decode_fields(name, fields))


def attempt_name(number: int) -> str | None:
    """Return the attempt that blocks and header carry as a number."""
    return f"{number % 2**64:016x}" if number else None
