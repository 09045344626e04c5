"""A fleet's history for the benchmark of queries: many runs, each with faults and checkpoints.

Every run has one recorded rank of a node's eight. It trains, dies twice, goes on from its newest
checkpoint and completes, but for the newest runs, which live.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from headway import events, step_blocks
from headway.events import Envelope, Event

SECOND = 10**9
STEP = SECOND // 10
_WAIT = STEP // 20
_EVERY = 500
"""Steps between two checkpoints."""
_BREAK = 90 * SECOND
"""From a death to the first step after it."""
_APART = 900 * SECOND
"""From the begin of one run to the next: a thousand end within the time that raw steps are kept."""


@dataclass(slots=True)
class Rank:
    """One recorded rank; its clock stands at `now`, in ns since its anchor."""

    run: str
    node: str
    producer: str
    anchor: int
    rank: int = 0
    attempt: str = "a1"
    now: int = 0
    sequence: int = 0

    def tell(self, event: Event, count: int = 1) -> Envelope:
        """Return an event as this rank records it now."""
        self.sequence += count
        return Envelope(
            producer=self.producer,
            anchor=self.anchor,
            first_sequence=self.sequence - count + 1,
            last_sequence=self.sequence,
            run=self.run,
            attempt=self.attempt,
            rank=self.rank,
            node=self.node,
            boot_id="boot",
            wall=self.anchor + self.now,
            monotonic=self.now,
            event=event,
        )

    def steps(self, first: int, count: int) -> Envelope:
        """Return completed steps in one record."""
        packed = np.empty(count, [("t", "<i8", 3), ("loss", "<f8"), ("samples", "<i8")])
        places = np.arange(count)
        packed["t"][:, 0] = self.now + places * STEP + _WAIT
        packed["t"][:, 1] = STEP - _WAIT
        packed["t"][:, 2] = _WAIT
        packed["loss"] = 1 / (first + places)
        packed["samples"] = (first + places) * 64
        self.now += count * STEP
        version = step_blocks.VERSION
        told = events.Steps(first_step=first, version=version, packed=packed.tobytes())
        return self.tell(told, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How much there is: runs, steps of each, steps of one record, live ones among the runs."""

    runs: int
    steps: int
    record: int
    live: int
    nodes: int
    end: int
    """When it is now, UTC ns."""

    @property
    def length(self) -> int:
        """Return how long a run takes in ns."""
        return self.steps * STEP + 2 * _BREAK + 60 * SECOND

    def rank(self, number: int) -> Rank:
        """Return the rank of a run; the last ones began so that they live now."""
        live = number >= self.runs - self.live
        begin = self.end - self.length // 2 if live else self.end - (self.runs - number) * _APART
        begin -= 0 if live else self.length
        return Rank(
            run=f"train-{number % 10}-{number:06d}",
            node=f"node-{number % self.nodes:03d}",
            producer=f"{number:032x}",
            anchor=begin,
        )

    def envelopes(self, number: int) -> Iterator[Envelope]:
        """Yield what one run recorded up to now."""
        rank = self.rank(number)
        for envelope in self._course(rank, number):
            if rank.anchor + envelope.monotonic > self.end:
                return
            yield envelope

    def _course(self, rank: Rank, number: int) -> Iterator[Envelope]:
        labels = {"team": f"team-{number % 7}", "cluster": f"cluster-{number % 3}"}
        yield rank.tell(events.RunStarted(run_name=rank.run.rpartition("-")[0]))
        yield rank.tell(
            events.RunConfigured(
                labels=labels, target_step=self.steps, checkpoint_interval=_EVERY, world_size=8
            )
        )
        done, saved, deaths = 0, 0, 0
        breaks = [self.steps * 2 // 5, self.steps * 4 // 5]
        while done < self.steps:
            rank.attempt = f"{rank.run}-{deaths + 1}"
            yield rank.tell(events.AttemptStarted(layer="launcher", world_size=8, local_rank=0))
            rank.now += 30 * SECOND
            if saved:
                checkpoint = f"step-{saved}"
                yield rank.tell(events.CheckpointLoaded(checkpoint=checkpoint, step=saved))
                yield rank.tell(events.Resumed(completed=saved, checkpoint=checkpoint))
                done = saved
            until = breaks[deaths] if deaths < len(breaks) else self.steps
            while done < until:
                count = min(self.record, until - done, _EVERY - done % _EVERY)
                yield rank.steps(done + 1, count)
                done += count
                if done % _EVERY == 0:
                    saved = done
                    checkpoint = f"step-{done}"
                    yield rank.tell(
                        events.CheckpointScheduled(
                            checkpoint=checkpoint, step=done, blocking=SECOND // 50
                        )
                    )
                    yield rank.tell(events.CheckpointFinalized(checkpoint=checkpoint, step=done))
            if done < self.steps:
                rank.now += 5 * SECOND
                fault = events.Fault(kind="exception", exception="RuntimeError", step=done + 1)
                yield rank.tell(fault)
                yield self._xid(rank)
                yield rank.tell(events.RankExited(exit_code=1, by="itself"))
                rank.now += _BREAK - 35 * SECOND
                deaths += 1
        yield rank.tell(events.RunEnded(reason="completed"))

    def _xid(self, rank: Rank) -> Envelope:
        """Return what the node's kernel said shortly before a death."""
        told = events.GpuXid(device="0000:3b:00.0", code=79)
        own = Rank(
            run="",
            node=rank.node,
            producer=f"{rank.producer[16:]}{rank.now:016x}",
            anchor=rank.anchor,
        )
        own.now = rank.now - 2 * SECOND
        return replace(own.tell(told), run=None, rank=None, attempt=None)


def wide(ranks: int, end: int) -> list[Rank]:
    """Return the ranks of one run on nodes of eight GPUs that began a minute before `end`, ns."""
    return [
        Rank(
            run="wide-1",
            node=f"wide-{number // 8:03d}",
            producer=f"{2**64 + number:032x}",
            anchor=end - 60 * SECOND,
            rank=number,
        )
        for number in range(ranks)
    ]
