"""The published lines of tests/data/gpu and their meanings, written down by hand."""

from collections.abc import Mapping
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "gpu" / "xid_lines.txt"
LINES = [row.split("\t")[0] for row in _FILE.read_text(encoding="utf-8").splitlines()]
YEAR = 2025
"""Year of the stamps that name none."""

Meaning = tuple[int | str, str | None, int | None, str | None, str | None, float | None]
# Code (of a fault without number its kind), device, process id, process, time, seconds since boot;
# a line that is no fault is None.
MEANINGS: Mapping[int, Meaning | None] = {
    1: (13, "0000:cb:00", None, None, "2024-08-30T11:43:09", None),
    2: (13, "0000:cb:00", None, None, "2024-08-30T11:43:09", None),
    3: (13, "0000:cb:00", None, None, "2024-08-30T11:43:09", None),
    4: (109, "0000:cb:00", 1797828, "pt_main_thread", "2024-08-30T11:43:14", None),
    5: (13, "000b:00:00", 3737626, "xid_trigger", None, None),
    6: (13, "0000:01:00", None, None, None, 31609.61523),
    7: (13, "0000:01:00", None, None, None, 31609.615374),
    8: (32, "0000:01:00", None, None, None, 31609.615516),
    9: (31, "0000:08:00", 169800, "chrome", None, None),
    10: (43, "0000:00:05", 1045242, "pt_main_thread", "2024-07-31T23:14:18", None),
    11: (94, "0000:00:08", None, None, "2024-08-09T13:32:56", None),
    12: (43, "0009:01:00", 3188489, "trigger_xid", None, 1231741.378609),
    13: (31, "0000:0a:00", 13332, "cuda_plot_k32_v", None, 14328.198504),
    14: (62, "0000:0a:00", None, None, None, 14370.687545),
    15: (45, "0000:0a:00", None, None, None, 14370.688139),
    16: (38, "0000:07:00", 326, "modprobe", "2025-04-15T07:56:59", None),
    17: (109, "0000:07:00", 326, "modprobe", "2025-04-15T07:56:59", None),
    18: (109, "0000:02:00", 8494, "RenderThread", "2025-09-18T20:07:01", None),
    19: (48, "0000:07:00", None, None, "2025-12-02T10:43:35", 240314.528856),
    20: (48, "0000:52:00", None, None, None, 430954.509105),
    21: (94, "0000:52:00", None, None, None, 430954.533994),
    22: (63, "0000:10:1c", 1850, None, "2025-05-19T07:08:57", 680111.646286),
    23: (64, "0000:90:1c", None, None, "2025-05-29T01:37:38", 257087.812628),
    24: (63, "0000:10:1c", 1896, None, None, None),
    25: (74, "0003:00:00", None, None, None, 449410.332316),
    26: (79, "0000:91:00", None, None, None, 6781741.548779),
    27: (20034, "0000:06:00", None, None, None, 6781753.400584),
    28: (20034, "0000:07:00", None, None, None, 6781753.404848),
    29: (20034, "0000:05:00", None, None, None, 6781753.406566),
    30: (12028, "0000:84:00", None, None, "2025-01-25T10:34:54.859532", None),
    31: (94, "0000:cb:00", 538578, "python", "2026-02-02T22:52:45", None),
    32: (137, "0000:4c:00", None, None, "2026-02-02T22:52:45", None),
    33: (94, "0000:4c:00", None, None, "2026-02-02T22:52:45", None),
    34: (79, "0000:01:00", 71039, "Media", "2025-04-19T09:27:03", None),
    35: (79, "0000:01:00", 1122, None, "2025-10-06T17:59:27", None),
    36: None,
    37: ("fallen_off_bus", None, None, None, None, None),
    38: ("fallen_off_bus", "0000:01:00", None, None, "2025-04-19T09:27:03", None),
    39: (119, "0000:9b:00", 2024380, "nvidia-smi", "2025-02-23T16:24:18", None),
    40: None,
    41: (119, "0001:6c:00", 10200, "NvmlTaskRunner", "2026-04-26T23:12:26", None),
    42: (119, "0002:00:00", 1582259, "nvc:[driver]", None, 16450076.435595),
    43: (120, "0000:02:00", None, None, "2025-04-19T13:16:41", None),
    44: (45, "0000:dc:00", 1818990, "python3", None, None),
    45: (45, "0000:ed:00", 1818992, "python3", None, None),
    46: (45, "0002:00:00", 2864945, "kit", None, 16450076.463693),
    47: (149, "0019:01:00", None, None, None, None),
    48: (145, "0018:01:00", None, None, None, None),
    49: (149, "0000:00:00", None, None, None, None),
    50: (144, "0000:01:00", None, None, None, None),
    51: (149, "0008:01:00", None, None, None, None),
    52: (154, "0009:01:00", None, None, None, 171167.621162),
    53: (145, "0000:c5:00", None, None, None, None),
    54: (137, "...", None, None, None, None),
    55: (154, "0000:04:00", None, None, None, None),
    56: (154, "0000:01:00", None, None, None, None),
    57: (94, "0000:01:00", 7194, None, None, None),
    58: (94, "0000:01:00", 7062, None, None, None),
    59: (79, "0000:3b:00", 9, "a", None, None),
    60: (79, "0000:01:00", None, None, None, None),
    61: (8, "0000:01:00", None, None, None, None),
    62: (44, "0000:08:00", None, None, None, 94.573839),
    63: (32, "0000:01:00", None, None, None, 24128.828315),
    64: (31, "0000:00:06", 79749, "exe", None, None),
    65: None,
    66: None,
    67: ("gsp_heartbeat", "GPU6", None, None, None, 24.302465),
    68: ("reset_required", None, None, None, "2026-01-11T09:52:01", None),
    69: None,
}
SXIDS = (27, 28, 29, 30)
NO_XID = tuple(
    number for number, meaning in MEANINGS.items() if meaning is None or isinstance(meaning[0], str)
)
