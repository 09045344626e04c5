"""PCI addresses, which drivers, the kernel and NVML each spell in their own way."""

import re

_ADDRESS = re.compile(
    r"(?:PCI:)?(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?"
)


def pci_address(text: str) -> str | None:
    """Return an address as `dddd:bb:dd` in lower case, or None where it is none.

    `PCI:0000:CB:00`, `00000000:CB:00.0` and `cb:00.0` are the same GPU; the function is left out,
    since a GPU has one.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain = int(found[1] or "0", 16)
    return f"{domain:04x}:{found[2]}:{found[3]}".lower()
