"""A small fleet for a real collector: runs of two teams, one of them live, and a broken node."""

from collections.abc import Sequence
from dataclasses import replace

from headway.events import Envelope, GpuPresent, GpuXid, Health, RunConfigured, RunEnded
from incident_collector import broken
from records import SECOND, record

HOUR = 3_600 * SECOND
DAY = 24 * HOUR
LONG = 100 * SECOND
"""How long the live run of `broken` has lasted at the time of the collector."""


def finished(run: str, producer: str, later: int, team: str | None) -> list[Envelope]:
    """A run that trained from 4 to 12 s, broke, and was given up at 40 s, moved by some ns."""
    told = [
        *broken(run, producer),
        record(
            15,
            RunConfigured(labels={} if team is None else {"team": team}, world_size=1),
            producer=producer,
            run=run,
        ),
        record(40, RunEnded(reason="failed"), producer=producer, run=run),
    ]
    return [replace(one, anchor=one.anchor + later, wall=one.wall + later) for one in told]


def of_node(envelope: Envelope) -> Envelope:
    return replace(envelope, run=None, rank=None, attempt=None)


def a_fleet() -> Sequence[Envelope]:
    """Return three runs that ended, one of them long ago, a live one, and what its node told."""
    return [
        *finished("old", "aa" * 16, -40 * DAY, "research"),
        *finished("new-1", "bb" * 16, -HOUR, "research"),
        *finished("new-2", "cc" * 16, -2 * HOUR, "product"),
        *broken("live", "dd" * 16),
        *(
            of_node(record(after, event, producer="ee" * 16))
            for after, event in (
                (1, GpuPresent(device="GPU-a", pci_address="0000:01:00.0", index=0)),
                (2, Health(check="gpu", state="disabled", detail="no driver")),
                (30, GpuXid(code=79, device="0000:01:00")),
                (31, GpuXid(code=79, device="0000:01:00")),
            )
        ),
    ]
