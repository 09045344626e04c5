"""Steps in columns, as they travel, back in records: many at once, with numpy.

The same as `headway.step_blocks.from_columns`, which producers can afford and a collector cannot.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headway import step_blocks

_FIELDS = 5


def in_records(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of a `steps` record with its steps as packed records.

    What is no such record stays as it is: building the event says what is wrong with it.
    """
    packed = attributes.get("packed")
    if attributes.get("version") != step_blocks.COLUMNS or not isinstance(packed, bytes):
        return attributes
    if not packed or len(packed) % step_blocks.LAYOUT.size:
        return attributes
    return {**attributes, "version": step_blocks.VERSION, "packed": from_columns(packed)}


def from_columns(columns: bytes) -> bytes:
    """Return the packed records of whole columns."""
    count = len(columns) // step_blocks.LAYOUT.size
    by_byte = np.frombuffer(columns, np.uint8).reshape(_FIELDS, 8, count)
    folded = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<u8").reshape(_FIELDS, count)
    signs = (-(folded & 1).astype(np.int64)).astype(np.uint64)
    idle, durations, waits, _, gained = (folded >> np.uint64(1)) ^ signs  # modulo 2**64
    ends = np.cumsum(idle + waits + durations, dtype=np.uint64)
    records = np.empty((count, _FIELDS), "<u8")
    records[:, 0] = ends - durations
    records[:, 1] = durations
    records[:, 2] = waits
    records[:, 3] = folded[3]  # the loss as it is
    records[:, 4] = np.cumsum(gained, dtype=np.uint64)
    return records.tobytes()
