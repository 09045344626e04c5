"""One GPU, many spellings of its PCI address."""

import pytest

from headway.kernel_log.addresses import pci_address


@pytest.mark.parametrize(
    "text",
    ["0000:cb:00", "PCI:0000:cb:00", "0000:CB:00.0", "00000000:CB:00.0", "cb:00.0", " cb:00 "],
)
def test_every_spelling_of_an_address_is_the_same_gpu(text: str) -> None:
    assert pci_address(text) == "0000:cb:00"


@pytest.mark.parametrize(
    ("text", "address"),
    [("0018:01:00", "0018:01:00"), ("000B:00:00.0", "000b:00:00"), ("0000:10:1c", "0000:10:1c")],
)
def test_domain_and_device_are_kept(text: str, address: str) -> None:
    assert pci_address(text) == address


@pytest.mark.parametrize(
    "text", ["...", "", "GPU-7", "invalid-bdf.0", "0000:cb:00.9", "0000:xx:00"]
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert pci_address(text) is None
