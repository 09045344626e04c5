"""A ledger with what every incident asks of it, indexed once."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from headway.events import (
    Allocation,
    AttemptEnded,
    CheckpointFinalized,
    CheckpointLoadFailed,
    CheckpointScheduled,
    CheckpointStaged,
    Envelope,
    Event,
    Fault,
    GpuFault,
    GpuSxid,
    GpuXid,
    RankExited,
    StopAnnounced,
)
from headway.incidents.holders import Holders
from headway.incidents.inventory import Inventory
from headway.incidents.model import Source
from headway.ledger import Ledger
from headway.ledger.account import Account
from headway.ledger.attempts import Attempt, Phase
from headway.ledger.checkpoints import Checkpoint
from headway.ledger.intake import Stamped, order

_TELLING = (Fault, RankExited, AttemptEnded, StopAnnounced)
_SAVING = (CheckpointStaged, CheckpointScheduled, CheckpointFinalized)
GPU_FAULTS = (GpuFault, GpuSxid, GpuXid)


class Reading:
    """Lookups over one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.accounts = ledger.book.accounts
        self._own = [_highest(account) for account in self.accounts]
        self._highest = list(accumulate(self._own, max))
        self.saves: dict[str | None, list[Checkpoint]] = defaultdict(list)
        for save in ledger.book.saves:
            self.saves[save.attempt].append(save)
        self.segments = [segment.attempt for segment in ledger.book.chain]
        self._records: dict[int, Envelope] = {}
        of_machines: list[Stamped] = []
        self._failed_loads: list[tuple[int, str]] = []
        nodes: set[int | None] = set()
        self._saving: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
        for fact in ledger.book.facts:
            record = fact.envelope.event
            if isinstance(record, _TELLING):
                # equal records of two ranks are two: only the object tells them apart
                self._records[id(record)] = fact.envelope
            elif isinstance(record, GPU_FAULTS):
                of_machines.append(fact)
            elif isinstance(record, _SAVING) and fact.envelope.rank is not None:
                self._saving[fact.attempt].append((fact.time, fact.envelope.rank))
            elif isinstance(record, Allocation) and fact.time <= ledger.as_of:
                nodes.add(record.nodes_held)
            elif isinstance(record, CheckpointLoadFailed) and fact.time <= ledger.as_of:
                self._failed_loads.append((fact.time, record.checkpoint))
        worlds = {account.attempt.world_size for account in self.accounts}
        self.only = {
            what for what, known in (("rank", worlds), ("node", nodes)) if {1} <= known <= {0, 1}
        }
        """What the run never had two of, as far as anybody said how many."""
        for fact in ledger.book.of_nodes:
            if isinstance(fact.envelope.event, (*GPU_FAULTS, Fault)):
                of_machines.append(fact)
        known = (fact for fact in of_machines if fact.time <= ledger.as_of)
        self._of_machines = sorted(known, key=order)
        self._times_of_machines = [fact.time for fact in self._of_machines]
        listed = (fact for fact in ledger.book.of_nodes if fact.time <= ledger.as_of)
        self.inventory = Inventory(listed)
        self.agents = {
            fact.envelope.node
            for fact in (*ledger.book.facts, *ledger.book.of_nodes)
            if fact.envelope.rank is None
            and fact.envelope.node is not None
            and fact.time <= ledger.as_of
        }
        """Nodes whose agent was heard: nobody else speaks of a node and of no rank."""
        told = (fact for fact in ledger.book.facts if fact.time <= ledger.as_of)
        self.holders = Holders(told, self.inventory)

    def highest(self, position: int) -> int:
        """Return the highest step completed up to and with an attempt."""
        return self._highest[position]

    def source(self, event: Event) -> Source | None:
        """Return the record in which an event came."""
        envelope = self._records.get(id(event))
        return None if envelope is None else Source(envelope.producer, envelope.first_sequence)

    def rank(self, event: Event) -> int | None:
        """Return the rank that an event is about."""
        envelope = self._records.get(id(event))
        return None if envelope is None else envelope.rank

    def of_machines(self, start: int, end: int) -> list[Stamped]:
        """Return the faults of GPUs and nodes between two times, both included."""
        low = bisect_left(self._times_of_machines, start)
        return self._of_machines[low : bisect_right(self._times_of_machines, end)]

    def saving(self, attempt: Attempt, until: int) -> dict[int, int]:
        """Return when each rank last recorded how far a save was, by a time in ns."""
        return {rank: time for time, rank in self._saving[attempt.identity] if time <= until}

    def failed_load(self, account: Account) -> str | None:
        """Return the checkpoint that an attempt failed to load last."""
        begin, end = account.attempt.begin, account.attempt.end
        low = bisect_left(self._failed_loads, (begin, ""))
        high = bisect_right(self._failed_loads, (end, "\U0010ffff"))
        return self._failed_loads[high - 1][1] if high > low else None

    def own_highest(self, position: int) -> int:
        """Return the highest step that an attempt itself completed."""
        return self._own[position]

    def lineage(self, first: int, base: int) -> Iterator[tuple[int, int | None]]:
        """Yield the segments of the newest state at the end of attempt `first`, newest first.

        Each comes as its position in the chain with the last step that counts of it (None: all);
        they end with the segment that holds the step after `base`.
        """
        book = self.ledger.book
        before = bisect_right(self.segments, first)
        position = before - 1 if before else None
        limit = None
        while position is not None:
            yield position, limit
            segment = book.chain[position]
            limit = segment.base if limit is None else min(limit, segment.base)
            if limit <= base:
                break
            position = book.ancestry.parent(position, limit)


def _highest(account: Account) -> int:
    """Return the highest step that an attempt completed."""
    return 0 if account.steps is None else int(account.steps.number.max())


def phases_of(account: Account, rank: int) -> list[Phase]:
    """Return the phases of a rank; a step completed later closed those left open."""
    own = account.attempt.ranks[rank].phases
    return own if account.steps is None else account.steps.phases.get(rank, own)


def node_of(attempt: Attempt, rank: int | None) -> str | None:
    """Return the node of a rank."""
    log = None if rank is None else attempt.ranks.get(rank)
    return None if log is None else log.node
