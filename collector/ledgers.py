"""The ledgers of all runs, kept current from the events that are stored.

A ledger is computed when somebody asks for its run and something changed: new events, or time
itself while the run is live, and then at most once a second. Who asks for all runs computes only a
little; the `Refresher` does the rest. Knows no database and reads an injected clock.
"""

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headway.blocks import Part, source
from headway.collector.node_feed import MOST_READINGS, NodeFeed, Stay
from headway.collector.run_ledger import (
    LedgerFailed,
    RunLedger,
    Snapshot,
    StillComputing,
    StoredRun,
)
from headway.events import Envelope
from headway.expiry import Expiry
from headway.ledger.segments import FrozenSegment
from headway.settings import GOODPUT_TARGET

_SECOND = 10**9
_LAG = 3 * _SECOND
"""From this age on, in ns, who asks for all runs does more to have them newer."""
_LITTLE = 30_000_000
"""CPU time in ns that who asks for all runs may take to compute what changed."""
_MORE = 150_000_000
"""The same, in ns, for ledgers older than `_LAG`, as after a time when nobody asked."""
_ROOM = 0.9
"""Share of the limit up to which runs stay once it is reached."""
Stored = Callable[[str, Mapping[str, Stay]], tuple[Sequence[FrozenSegment], Iterable[Envelope]]]
"""Reads a run's segments and events from the store, and what its nodes told of their memory."""
_LIGHT = 32 * 2**20
"""Bytes of events from which on a ledger may take long, though nobody computed it yet."""
_PATIENCE = 5.0
"""Seconds to wait for another thread that computes what was asked for."""


class NoSuchRun(LookupError):  # noqa: N818  # the condition reads as a name
    """A run id or name of which no event is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The ledgers of all runs, the newest run first; those that failed are left out.

    Equal versions have equal snapshots. No run is shown as it was before `as_of`, in UTC ns.
    """

    version: str
    as_of: int
    snapshots: tuple[Snapshot, ...]


class Ledgers:
    """The timelines of all runs, found by run id or by name."""

    def __init__(
        self,
        clock: Callable[[], int],
        stored: Stored | None = None,
        limit: int = 0,
        target: float = GOODPUT_TARGET,
    ) -> None:
        """Start without any run; `clock` gives the time in UTC nanoseconds.

        `stored` reads a run's segments and events again, so that beyond about `limit` bytes runs
        that are over, and those that nobody asked about for longest, are let go. `target` is the
        training goodput that runs are to reach.
        """
        self.asked = -float("inf")
        """When somebody last asked for all runs, in seconds of the monotonic clock."""
        self._clock = clock
        self._stored = stored
        self._limit = limit
        self._target = target
        self._lock = threading.Lock()
        self._runs: dict[str, RunLedger] = {}
        self._unsettled: set[RunLedger] = set()
        self._feed = NodeFeed(None if stored is None else MOST_READINGS)
        self._computing = threading.Lock()
        self._opening = uuid.uuid4().hex[:12]
        self._num_computed = 0
        self._shown: tuple[int, Fleet] | None = None

    def restore(self, segments: Mapping[str, Sequence[FrozenSegment]]) -> None:
        """Take what is left of expired steps by run, before any event of it."""
        for run, listed in segments.items():
            self._run(run).restore(listed)

    def await_news(self) -> None:
        """Note that what is known by now was read from the store: agents may know more."""
        with self._lock:
            for run in self._runs.values():
                run.restored = self._clock()

    def add(self, parts: Sequence[Part], leaving: Callable[[str], None] | None = None) -> None:
        """Take stored events; those of a node go to the runs that have ranks on it.

        `leaving` is called with a run before it is let go, where no ledger tells of it as it is.
        """
        by_run: dict[str, list[Part]] = defaultdict(list)
        for part in parts:
            run, _ = source(part)
            if run is not None:
                by_run[run].append(part)
        for run, group in by_run.items():
            found = self._run(run)
            found.add(group)
            with self._lock:
                self._unsettled.add(found)
        with self._lock:
            given = self._feed.add(parts)
            for run, told in given.by_run.items():
                if told:
                    self._runs[run].add_of_nodes(told)
                    self._unsettled.add(self._runs[run])
            for run in given.lacking:
                self._runs[run].read_anew()
                self._unsettled.add(self._runs[run])
        self._make_room(leaving)

    def _make_room(self, leaving: Callable[[str], None] | None) -> None:
        """Let go of runs while they take too much; the one that was asked for last stays."""
        if self._stored is None:
            return
        with self._lock:
            held = [(name, run) for name, run in self._runs.items() if run.weight]
        total = sum(run.weight for _, run in held)
        if total <= self._limit:
            return
        held.sort(key=lambda one: (not one[1].settled, one[1].used, one[1].started or 0))
        for name, run in held[:-1]:
            if total <= self._limit * _ROOM:
                break
            weight = run.weight
            if leaving is not None and run.is_stale(self._clock()):
                leaving(name)
            if run.let_go():
                total -= weight

    def _again(self, run: str) -> StoredRun:
        """Read all of a run again."""
        if self._stored is None:
            raise AssertionError("nothing is let go that cannot be read again")
        with self._lock:
            of_nodes, stays = self._feed.of_run(run), self._feed.stays(run)
        segments, events = self._stored(run, stays)
        return StoredRun(segments, events, of_nodes)

    def expire(self, run: str, found: Expiry) -> None:
        """Let go of a run's raw records that are no longer stored."""
        with self._lock:
            known = self._runs.get(run)
        if known is not None:
            known.expire(found)
            with self._lock:
                self._unsettled.add(known)

    def of_node(self, node: str) -> Sequence[Envelope]:
        """Return what a node told of its GPUs and its health, in order of time."""
        with self._lock:
            return self._feed.rare(node)

    def num_of_node(self, node: str) -> int:
        """Return how many events `of_node` has."""
        with self._lock:
            return self._feed.num_rare(node)

    def num_of_nodes(self) -> int:
        """Return how many events of nodes have arrived, of which `of_node` leaves some out."""
        with self._lock:
            return self._feed.num_events

    def nodes(self) -> list[str]:
        """Return the nodes on which a run had a rank, or which told of themselves."""
        with self._lock:
            return self._feed.nodes()

    def runs(self) -> list[str]:
        """Return the ids of all runs."""
        with self._lock:
            return list(self._runs)

    def snapshot(self, run: str) -> Snapshot:
        """Return the current ledger of a run, given by its id or, the newest of it, by its name.

        One that takes long to compute may be a second old.

        Raises:
            NoSuchRun: neither an id nor a name of a known run.
            LedgerFailed: a defect of the ledger.
            StillComputing: another thread has been at it for seconds.
        """
        return self._known(run).recent(_PATIENCE)

    def compute(self, run: str) -> Snapshot:
        """Return the current ledger of a run for which nobody asked; raises what `snapshot` does.

        So it is let go again sooner than one that somebody asked for.
        """
        return self._known(run).snapshot(_PATIENCE)

    def _known(self, run: str) -> RunLedger:
        with self._lock:
            if run in self._runs:
                return self._runs[run]
            named = [item for item in self._runs.values() if item.name == run]
            if not named:
                raise NoSuchRun(f"no event of a run {run!r} has arrived")
            return max(named, key=lambda item: item.started or 0)

    def snapshots(self) -> list[Snapshot]:
        """Return the ledgers of all runs as `fleet` does."""
        return list(self.fleet().snapshots)

    def fleet(self) -> Fleet:
        """Return the ledgers of all runs, each as exact as can be had for a little work.

        A run that is new is always there. Where more live runs changed than can be computed in a
        few milliseconds, they are shown as the `Refresher` left them, usually a second ago.

        Raises:
            StillComputing: ledgers that nobody computed yet have kept another thread for seconds.
        """
        self.asked = time.monotonic()
        now = self._clock()
        stale = self.stale(now)
        if stale:
            self._compute(stale, now)
        return self._fleet(now)

    def last(self) -> Fleet:
        """Return the ledgers of all runs before the end, for which there is no time to lose.

        What takes long to compute stays as it was, and is left out where it never was.
        """
        now, spent = self._clock(), 0
        for run in self.stale(now):
            if spent + run.cost <= _MORE and run.weight <= _LIGHT:
                with suppress(LedgerFailed, StillComputing):
                    run.snapshot(0.0)
                spent += run.cost
        return self._fleet(now)

    def stale(self, now: int) -> list[RunLedger]:
        """Return the runs whose ledger would be another at a time in UTC ns, the oldest first."""
        with self._lock:
            found = [run for run in self._unsettled if run.is_stale(now)]
        return sorted(found, key=lambda run: run.as_of)

    def _run(self, run: str) -> RunLedger:
        with self._lock:
            if run not in self._runs:
                self._runs[run] = RunLedger(
                    run,
                    self._clock,
                    self._count_computed,
                    None if self._stored is None else self._again,
                    self._target,
                )
            return self._runs[run]

    def _count_computed(self) -> None:
        with self._lock:
            self._num_computed += 1

    def _compute(self, stale: Sequence[RunLedger], now: int) -> None:
        """Compute what was never computed, and of the rest what takes little time."""
        deadline = time.monotonic() + _PATIENCE
        if not self._computing.acquire(timeout=_PATIENCE):
            _check_time_for(stale)
            return
        try:
            stale = [run for run in stale if run.is_stale(now)]
            little = sum(run.cost for run in stale) <= _LITTLE
            spent = 0
            for run in stale:
                if run.as_of == 0:
                    if time.monotonic() > deadline:
                        _check_time_for(stale)
                    with suppress(LedgerFailed):
                        run.snapshot(_PATIENCE)
                elif little or (now - run.as_of > _LAG and spent + run.cost <= _MORE):
                    spent += run.cost
                    with suppress(LedgerFailed, StillComputing):
                        run.snapshot(_PATIENCE)
        finally:
            self._computing.release()

    def _fleet(self, now: int) -> Fleet:
        with self._lock:
            self._unsettled = {run for run in self._unsettled if not run.settled}
            as_of = min((run.as_of for run in self._unsettled), default=now)
            if self._shown is None or self._shown[0] != self._num_computed:
                newest_first = sorted(
                    self._runs.values(), key=lambda run: run.started or 0, reverse=True
                )
                fleet = Fleet(
                    version=f"{self._opening}-{self._num_computed}",
                    as_of=as_of,
                    snapshots=tuple(run.latest for run in newest_first if run.latest is not None),
                )
                self._shown = self._num_computed, fleet
            return replace(self._shown[1], as_of=as_of)


def _check_time_for(runs: Sequence[RunLedger]) -> None:
    """Refuse to show all runs while there are some of which nothing was ever computed.

    Raises:
        StillComputing: there are.
    """
    new = sum(run.as_of == 0 for run in runs)
    if new:
        raise StillComputing(f"the ledgers of {new} runs are still to be computed")
