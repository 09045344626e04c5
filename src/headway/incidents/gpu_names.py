"""What a GPU is called: a UUID, or a PCI address in one of the forms in which it is written."""

import re
from typing import NamedTuple

_PCI = re.compile(
    r"(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-7])?", re.IGNORECASE
)
_LEGACY_SLICE = re.compile(r"MIG-(GPU-[0-9a-f-]+)/(\d+)/(\d+)", re.IGNORECASE)


class Address(NamedTuple):
    """A PCI address without its function, which is 0 for every GPU."""

    domain: int
    bus: int
    device: int

    def __str__(self) -> str:
        """Return the form of `lspci` and `sysfs`."""
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.0"


class Slice(NamedTuple):
    """A MIG slice by its instances; the compute instance may be unknown."""

    gpu_instance: int
    compute_instance: int | None

    def may_be(self, other: "Slice") -> bool:
        """Whether both can be the same."""
        known = None not in (self.compute_instance, other.compute_instance)
        same = not known or self.compute_instance == other.compute_instance
        return self.gpu_instance == other.gpu_instance and same


def address_of(text: str) -> Address | None:
    """Return the PCI address that a text is; None if it is none.

    The kernel writes `PCI:0000:cb:00`, NVML `00000000:CB:00.0`, `lspci` `cb:00.0`.
    """
    found = _PCI.fullmatch(text.strip())
    if found is None:
        return None
    domain, bus, device = found.groups(default="0")
    return Address(int(domain, 16), int(bus, 16), int(device, 16))


def uuid_of(text: str) -> str | None:
    """Return the UUID of a GPU as NVML writes it; None if the text is none."""
    text = text.strip()
    return f"GPU-{text[4:].lower()}" if text[:4].upper() == "GPU-" and text[4:] else None


def slice_of(text: str) -> tuple[str, Slice] | None:
    """Return GPU and instances of a slice named in the old way, `MIG-GPU-<uuid>/1/0`."""
    found = _LEGACY_SLICE.fullmatch(text.strip())
    uuid = None if found is None else uuid_of(found[1])
    if found is None or uuid is None:
        return None
    return uuid, Slice(int(found[2]), int(found[3]))


def instances_of(text: str) -> Slice | None:
    """Return the slice of `2/0`, GPU and compute instance; None if the text is none."""
    first, slash, last = text.partition("/")
    if not slash or not (first.isdecimal() and last.isdecimal()):
        return None
    return Slice(int(first), int(last))
