"""The statistics that a network driver keeps beside the kernel's own, as `ethtool -S` prints them.

Asked by the ioctl of `linux/ethtool.h`: how many there are, their names, their values. Of a driver
that has none, and where sockets are not allowed, there are none.
"""

import ctypes
import fcntl
import socket
import struct
from collections.abc import Callable

_SIOCETHTOOL = 0x8946
_GDRVINFO, _GSTRINGS, _GSTATS = 0x03, 0x1B, 0x1D
_STATISTICS = 1
"""Set of strings that names the statistics (ETH_SS_STATS)."""
_DRVINFO_SIZE, _NUMBER_AT = 196, 180
"""Size of `struct ethtool_drvinfo` and place of `n_stats` in it."""
_NAME = 32
_MOST = 10_000
_SLACK = 1_024
"""Room for statistics that the driver adds between two questions: it writes them all."""

Ioctl = Callable[[bytes, ctypes.Array[ctypes.c_char]], None]
"""Lets the kernel fill a buffer for an interface; raises OSError where it will not."""


def statistics(interface: str, ioctl: Ioctl | None = None) -> dict[str, int]:
    """Return each statistic of an interface by its name; `ioctl` is the kernel's by default."""
    try:
        if ioctl is not None:
            return _asked(interface.encode(), ioctl)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            return _asked(interface.encode(), lambda name, buffer: _ioctl(asking, name, buffer))
    except OSError:
        return {}


def _asked(interface: bytes, ioctl: Ioctl) -> dict[str, int]:
    about = ctypes.create_string_buffer(struct.pack("=I", _GDRVINFO), _DRVINFO_SIZE)
    ioctl(interface, about)
    (number,) = struct.unpack_from("=I", about, _NUMBER_AT)
    if not 0 < number <= _MOST:
        return {}
    room = number + _SLACK
    head = struct.pack("=III", _GSTRINGS, _STATISTICS, number)
    names = ctypes.create_string_buffer(head, len(head) + room * _NAME)
    ioctl(interface, names)
    first = struct.pack("=II", _GSTATS, number)
    values = ctypes.create_string_buffer(first, len(first) + room * 8)
    ioctl(interface, values)
    found = {}
    for place in range(number):
        at = len(head) + place * _NAME
        name = names.raw[at : at + _NAME].partition(b"\0")[0].decode("ascii", "replace").strip()
        (found[name],) = struct.unpack_from("=Q", values, len(first) + 8 * place)
    return found


def _ioctl(asking: socket.socket, interface: bytes, buffer: ctypes.Array[ctypes.c_char]) -> None:
    # struct ifreq: 16 bytes of name, then a union of 24 whose first member is a pointer.
    request = struct.pack("=16sQ16x", interface, ctypes.addressof(buffer))
    fcntl.ioctl(asking, _SIOCETHTOOL, request)
