"""What a request of telemetry holds: events, records kept aside, records refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.blocks import Part, expanded, num_records
from headway.events import Envelope
from headway.storage.store import Quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What one request holds, and its inflated size in bytes.

    `quarantined` are Headway's own records that are no events of this version: they are kept.
    `num_refused` counts telemetry of others, which is not kept; `refusal` says why.
    """

    parts: Sequence[Part]
    quarantined: Sequence[Quarantined]
    size: int
    num_refused: int = 0
    refusal: str = ""

    @property
    def envelopes(self) -> list[Envelope]:
        """Return the events one by one."""
        return list(expanded(self.parts))

    @property
    def num_records(self) -> int:
        """Return how many records it holds: 100 steps count 100."""
        return sum(map(num_records, self.parts)) + len(self.quarantined)
