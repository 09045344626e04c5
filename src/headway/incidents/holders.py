"""Which GPU each rank of an attempt works on, and whose a faulty GPU is.

What the rank itself recorded counts; else the devices that its process may see and its rank within
the node, read in the node's own list of GPUs; else the rank within the node is the GPU's number.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headway.events import AttemptStarted, RankDevice
from headway.incidents.gpu_names import Slice, address_of, uuid_of
from headway.incidents.inventory import Boot, Gpu, Inventory
from headway.ledger.attempts import Attempt
from headway.ledger.intake import Stamped

_OWN = "the rank recorded its GPU"
_VISIBLE = "by the devices that the rank may see"
_LOCAL = "by its rank within the node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A rank and its GPU (None: not known, unless it has none), and how that is known."""

    rank: int
    boot: Boot
    gpu: Gpu | None = None
    slice: Slice | None = None
    without: bool = False
    process_id: int | None = None
    rule: str = ""

    @property
    def uuid(self) -> str | None:
        """UUID of its GPU."""
        return None if self.gpu is None else self.gpu.uuid

    def holds(self, gpu: Gpu, slice_: Slice | None) -> bool | None:
        """Whether a GPU, or a slice of it, is this rank's; None if nothing tells."""
        if self.without:
            return False
        same = None if self.gpu is None else self.gpu.is_same(gpu)
        if same and slice_ is not None and self.slice is not None:
            return self.slice.may_be(slice_)
        return same


class Place(NamedTuple):
    """Whether a faulty GPU is one of the attempt's, whose, how that is known and how surely.

    `gpu` is what the rank calls it, if it knows its UUID.
    """

    ours: bool
    certain: bool = True
    rank: int | None = None
    rule: str | None = None
    gpu: str | None = None


ELSEWHERE = Place(ours=False)


class Holders:
    """The ranks of a run and what they said about their GPUs."""

    def __init__(self, facts: Iterable[Stamped], inventory: Inventory) -> None:
        self._inventory = inventory
        self._starts: dict[tuple[str | None, int], Stamped] = {}
        self._devices: dict[tuple[int, str | None], list[Stamped]] = {}
        self._known: dict[tuple[str, str | None], list[Holder]] = {}
        for fact in facts:
            rank, record = fact.envelope.rank, fact.envelope.event
            if rank is None:
                continue
            if isinstance(record, AttemptStarted):
                self._starts[fact.attempt, rank] = fact
            elif isinstance(record, RankDevice):
                self._devices.setdefault((rank, fact.envelope.node), []).append(fact)

    def on(self, attempt: Attempt, node: str | None) -> Sequence[Holder]:
        """Return the ranks that an attempt has on a node, in their order."""
        key = attempt.identity, node
        if key not in self._known:
            ranks = sorted(rank for rank, log in attempt.ranks.items() if log.node == node)
            self._known[key] = [self._holder(attempt, rank, node) for rank in ranks]
        return self._known[key]

    def _holder(self, attempt: Attempt, rank: int, node: str | None) -> Holder:
        start = self._starts.get((attempt.identity, rank))
        said = self._said(rank, node, start, attempt.end)
        record = None if start is None else start.envelope.event
        first = start or said
        holder = Holder(
            rank=rank,
            boot=Boot(node, None if first is None else first.envelope.boot_id),
            process_id=record.process_id if isinstance(record, AttemptStarted) else None,
        )
        return self._deduced(holder, start) if said is None else self._own(holder, said)

    def _said(self, rank: int, node: str | None, start: Stamped | None, end: int) -> Stamped | None:
        """Return what a rank last recorded of its GPU in the boot in which its attempt ran.

        An attempt within the same process need not say it again.
        """
        said = self._devices.get((rank, node), ())
        for fact in reversed(said[: bisect_right(said, end, key=lambda fact: fact.time)]):
            if start is None or fact.envelope.boot_id == start.envelope.boot_id:
                return fact
        return None

    def _own(self, holder: Holder, said: Stamped) -> Holder:
        """Return a rank with the GPU that it recorded itself."""
        record = said.envelope.event
        assert isinstance(record, RankDevice)  # noqa: S101  # only these are kept
        named = self._inventory.named(holder.boot, record.device, said.time)
        if named.address is None and record.pci_address is not None:
            named = replace(named, address=address_of(record.pci_address))
        name = record.slice or record.device
        found = self._inventory.of_slice(holder.boot, name, said.time)
        gpu, slice_ = (named, None) if found is None else found
        return replace(holder, gpu=gpu, slice=slice_, rule=_OWN)

    def _deduced(self, holder: Holder, start: Stamped | None) -> Holder:
        """Return a rank with the GPU that its place among the node's ranks gives it."""
        record = None if start is None else start.envelope.event
        if start is None or not isinstance(record, AttemptStarted):
            return holder
        if record.visible_devices is None:
            return self._numbered(holder, record.local_rank, start.time, _LOCAL)
        names = _visible(record.visible_devices)
        if not names:
            return replace(holder, without=True)
        # a process that sees one device works on it, whatever its rank
        place = 0 if len(names) == 1 else record.local_rank
        if place is None or place >= len(names):
            return holder
        name = names[place]
        if name.isdecimal():
            return self._numbered(holder, int(name), start.time, _VISIBLE)
        sliced = self._inventory.of_slice(holder.boot, name, start.time)
        if sliced is not None:
            return replace(holder, gpu=sliced[0], slice=sliced[1], rule=_VISIBLE)
        uuid = uuid_of(name)
        if uuid is None:
            return holder
        gpu = self._inventory.of_uuid(holder.boot, uuid, start.time)
        return replace(holder, gpu=gpu or Gpu(boot=holder.boot, uuid=uuid), rule=_VISIBLE)

    def _numbered(self, holder: Holder, index: int | None, time: int, rule: str) -> Holder:
        if index is None:
            return holder
        return replace(holder, gpu=self._inventory.of_index(holder.boot, index, time), rule=rule)


def _visible(text: str) -> list[str]:
    """Return the devices of CUDA_VISIBLE_DEVICES; the first that is none ends the list."""
    found = []
    for name in (part.strip() for part in text.split(",")):
        if not (name.isdecimal() or name[:4].upper() in ("GPU-", "MIG-")):
            break
        found.append(name)
    return found


def place_of(
    holders: Sequence[Holder], gpu: Gpu, slice_: Slice | None, named: Holder | None
) -> Place:
    """Say whose a GPU is among the ranks that an attempt has on its node.

    `named` is the rank whose process the driver names: it decides where names of GPUs do not.
    """
    verdicts = [(holder, holder.holds(gpu, slice_)) for holder in holders]
    certain = [holder for holder, holds in verdicts if holds]
    if named is not None and named in certain:
        return Place(True, True, named.rank, named.rule, named.uuid)
    if certain:
        alone = len(certain) == 1
        rank = certain[0].rank if alone else None
        return Place(True, True, rank, certain[0].rule, certain[0].uuid)
    unknown = any(holds is None for _, holds in verdicts)
    by_address = gpu.uuid is None or any(
        holder.gpu is not None and holder.gpu.uuid is None for holder in holders
    )
    if named is not None and (unknown or by_address):
        return Place(True, True, named.rank, "the driver names the rank's process", named.uuid)
    if unknown:
        return Place(True, False, None, "which rank works on the GPU is not known")
    return ELSEWHERE
