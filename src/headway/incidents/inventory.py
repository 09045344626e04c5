"""Which GPUs a node has, as its driver listed them in one boot: a reboot may number them anew."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.events import GpuPresent
from headway.incidents.gpu_names import Address, Slice, address_of, instances_of, slice_of, uuid_of
from headway.ledger.intake import Stamped


class Boot(NamedTuple):
    """One boot of one node; an imported log does not say of which boot it is."""

    node: str | None
    boot: str | None

    def may_be(self, other: "Boot") -> bool:
        """Whether both can be the same."""
        unknown = None in (self.boot, other.boot)
        return self.node == other.node and (unknown or self.boot == other.boot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as far as it is known; address and index mean something within `boot` alone."""

    boot: Boot
    uuid: str | None = None
    address: Address | None = None
    index: int | None = None
    slices: Mapping[str, Slice | None] = field(default_factory=dict)

    def is_same(self, other: "Gpu") -> bool | None:
        """Whether both are the same GPU; None if nothing tells.

        The UUID wins: in a container a GPU may have another address than on its node.
        """
        if self.uuid is not None and other.uuid is not None:
            return self.uuid == other.uuid
        if not self.boot.may_be(other.boot):
            return None
        if self.address is not None and other.address is not None:
            return self.address == other.address
        comparable = self.index is not None and other.index is not None
        return self.index == other.index if comparable else None

    @property
    def name(self) -> str | None:
        """UUID, or else the address."""
        return self.uuid or (None if self.address is None else str(self.address))


class _Said(NamedTuple):
    """One record of a GPU by its time in ns, and by its words where times are equal."""

    time: int
    words: tuple[int, str, str]
    gpu: Gpu


class Inventory:
    """The GPUs of every boot of every node."""

    def __init__(self, listed: Iterable[Stamped]) -> None:
        self._said: dict[Boot, dict[str, list[_Said]]] = defaultdict(lambda: defaultdict(list))
        self._boots: dict[str | None, list[tuple[int, str]]] = defaultdict(list)
        for fact in listed:
            record = fact.envelope.event
            if isinstance(record, GpuPresent):
                self._take(fact, record)

    def _take(self, fact: Stamped, record: GpuPresent) -> None:
        boot = Boot(fact.envelope.node, fact.envelope.boot_id)
        instances = dict(zip(record.slices, record.instances, strict=False))
        gpu = Gpu(
            boot=boot,
            uuid=uuid_of(record.device) or record.device,
            address=address_of(record.pci_address),
            index=record.index,
            slices={name: instances_of(instances.get(name, "")) for name in record.slices},
        )
        said = _Said(fact.time, (record.index, record.pci_address, record.device), gpu)
        insort(self._said[boot][record.device], said, key=_told)
        insort(self._boots[boot.node], (fact.time, boot.boot or ""))

    def of_index(self, boot: Boot, index: int, time: int) -> Gpu:
        """Return the GPU with a number, as known at a time in ns."""
        listed = (one.gpu for one in self._at(boot, time) if one.gpu.index == index)
        return next(listed, Gpu(boot=boot, index=index))

    def of_address(self, boot: Boot, address: Address, time: int) -> Gpu | None:
        """Return the GPU at a PCI address of the node, as known at a time in ns."""
        return next((one.gpu for one in self._at(boot, time) if one.gpu.address == address), None)

    def of_uuid(self, boot: Boot, prefix: str, time: int) -> Gpu | None:
        """Return the only GPU whose UUID begins so, as CUDA allows to write it."""
        found = [one.gpu for one in self._at(boot, time) if (one.gpu.uuid or "").startswith(prefix)]
        return found[0] if len(found) == 1 else None

    def of_slice(self, boot: Boot, name: str, time: int) -> tuple[Gpu, Slice | None] | None:
        """Return the GPU that has a MIG slice of this name, and the slice's instances."""
        legacy = slice_of(name)
        if legacy is not None:
            uuid, instances = legacy
            return self.of_uuid(boot, uuid, time) or Gpu(boot=boot, uuid=uuid), instances
        for one in self._at(boot, time):
            if name in one.gpu.slices:
                return one.gpu, one.gpu.slices[name]
        return None

    def named(self, boot: Boot, device: str, time: int) -> Gpu:
        """Return the GPU that a record of the node names by UUID or PCI address."""
        address, uuid = address_of(device), uuid_of(device)
        if address is not None:
            return self.of_address(boot, address, time) or Gpu(boot=boot, address=address)
        found = None if uuid is None else self.of_uuid(boot, uuid, time)
        return found or Gpu(boot=boot, uuid=uuid or device)

    def _at(self, boot: Boot, time: int) -> list[_Said]:
        """Return what is known of each GPU, what was said last first.

        What was first said later holds before, too: an agent may start after the ranks.
        """
        if boot.boot is None:
            boot = self._boot_at(boot.node, time)
        current = []
        for said in self._said.get(boot, {}).values():
            known = [one for one in said if one.time <= time]
            current.append(known[-1] if known else said[0])
        return sorted(current, key=_told, reverse=True)

    def _boot_at(self, node: str | None, time: int) -> Boot:
        """Return the boot in which a node was last heard of by a time in ns, else its first."""
        heard = self._boots.get(node)
        if not heard:
            return Boot(node, None)
        place = bisect_right(heard, time, key=lambda one: one[0])
        return Boot(node, heard[max(place - 1, 0)][1] or None)


def _told(said: _Said) -> tuple[int, tuple[int, str, str]]:
    return said.time, said.words
