"""Severity of the Xids of NVLink 5 (144 to 150) by unit, error status and sub-code.

Facts of NVIDIA's decode table ("XID 144-150 Decode" of its Xid catalog, October 2025). The
error status is a set of bits, the event units' is a number; in both several rows can share a
verdict, so that only the rows that differ from harmless are listed.
"""

from collections.abc import Collection, Iterator, Mapping

XIDS = range(144, 151)
"""The units of NVLink 5: SAW, RLW, TLW, TREX, NVLPW_CTRL, NETIR, MSE."""

_RESET_BITS: Mapping[str, int] = {
    "SAW_MVB": 0x2 | 0x10,
    "RLW_REMAP": 0x40 | 0x80,
    "RLW_RSPCOL": 0x2,
    "RLW_SRC_TRACK": 0x1 | 0x10 | 0x20,
    "RLW_TAGSTATE": 0x2 | 0x20000 | 0x100000,
    "TLW_CTRL": 0x4,
    "TLW_RX": 0x4,
    "TLW_RX_PIPE0": 0x4,
    "TLW_RX_PIPE1": 0x4,
    "TLW_TX": 0x4,
    "TLW_TX_PIPE0": 0x4,
    "TLW_TX_PIPE1": 0x4,
}
_CRASH_BITS: Mapping[str, int] = {
    "RLW_REMAP": 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20,
    "RLW_SRC_TRACK": 0x4 | 0x8,
}
"""The application ends with Xid 45, and Xid 154 says whether anything else is needed."""
_HARMLESS_UNITS: Collection[str] = (
    "RLW_CTRL",
    "RLW_RXPIPE",
    "TREX",
    "NVLPW_CTRL",
    "NVLPW",
    "NETIR_BER_EVENT",
)
_RESET_STATUS: Mapping[str, Collection[int]] = {"NETIR_MFDE_EVENT": (1, 4, 5, 7)}
_RESET_UNITS: Collection[str] = ("NETIR", "NETIR_INT", "MSE_WATCHDOG")
_LINK_UNITS: Collection[str] = ("NETIR_LINK_EVT", "NETIR_LINK_DOWN")
_LINK_RESET: Collection[int] = (
    *(0, 1, 2, 4, 10, 15, 16, 17, 18, 21, 22),
    *(32, 33, 34, 35, 36, 37, 42, 43),
)
_LINK_HARMLESS: Collection[int] = (38, 40)


def severity(unit: str, status: int, number: int | None) -> str | None:
    """Return what NVIDIA's table asks for: reset, application or watch; None where it is silent.

    `status` is the error status and `number` the sub-code.
    """
    if unit in _LINK_UNITS:
        if number in _LINK_RESET:
            return "reset"
        return "watch" if number in _LINK_HARMLESS else None
    if unit in _RESET_UNITS:
        return "reset"
    if unit in _RESET_STATUS:
        return "reset" if status in _RESET_STATUS[unit] else "watch"
    if unit in _HARMLESS_UNITS:
        return "watch"
    if unit not in _RESET_BITS:
        return None
    if status & _RESET_BITS[unit]:
        return "reset"
    return "application" if status & _CRASH_BITS.get(unit, 0) else "watch"


def rules() -> Iterator[tuple[str, str, str]]:
    """Give each unit, what lets it ask for a reset, and what ends the application, in words."""
    yield "`, `".join(_LINK_UNITS), f"sub-code {_listed(_LINK_RESET)}", ""
    yield "`, `".join(_RESET_UNITS), "always", ""
    for unit, numbers in _RESET_STATUS.items():
        yield unit, f"error status {_listed(numbers)}", ""
    for unit, bits in _RESET_BITS.items():
        crash = _CRASH_BITS.get(unit)
        yield unit, f"bit of {bits:#x}", "" if crash is None else f"bit of {crash:#x}"
    yield "`, `".join(_HARMLESS_UNITS), "never", ""


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(str(number) for number in numbers)
