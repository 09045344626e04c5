"""How a spool lies on disk: what its writer maps and its readers parse.

A folder per producer holds `header` and segments. The header file says who writes (JSON) and
carries slots that change in place: last activity, the open step, the open wait, the open phases.
The writer holds a file lock on it for as long as it lives, so that a reader in another container
can tell a dead producer from a silent one.

A segment is a row of 64-byte aligned blocks, zero where nothing was written yet:

    step   kind, sequence, step, attempt, one record of `headway.step_blocks`, checksum
    frame  kind, length, checksum of the payload, checksum of these three, JSON, zeros

Each checksum starts from a value of its own segment, so no block passes in a wrong place.
"""

import json
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from headway import step_blocks

HEADER = "header"
SEGMENT_SUFFIX = ".segment"
AGENT_MARKER = "agent.json"
"""File in the folder of the spools that the agent keeps fresh while it ships them."""
AGENT_MARKER_SECONDS = 60
"""Age at which the marker no longer counts; the agent renews it well before."""

BLOCK = 64
STEP_KIND = int.from_bytes(b"STEP", "little")
FRAME_KIND = int.from_bytes(b"FACT", "little")
STEP_BODY = struct.Struct("<IIIQ" + step_blocks.LAYOUT.format.removeprefix("<"))
STEP_BLOCK = struct.Struct(f"<{STEP_BODY.size}sI")
STEP_READ = struct.Struct(f"<IIIQ{step_blocks.LAYOUT.size}sI")
FRAME_HEAD = struct.Struct("<III")
FRAME_START = struct.Struct("<IIII")

HEADER_SIZE = 4096
MAGIC = b"HEADWAY1"
SLOTS_AT = 64
NO_STEP = -1
_PHASES_AT, _IDENTITY_AT = 512, 1536
_AREA = struct.Struct("<II")


step_checksum = zlib.adler32
"""Of a step's body. CRC-32 takes a seventh of the microsecond that a step may cost; Adler-32 a
third of that, and over 60 bytes it misses no change of one or two bytes."""


class Slot(IntEnum):
    """A signed 64-bit number of the header, changed in place; times are monotonic ns.

    What has an end before its start is open.
    """

    ACTIVITY = 0
    LAST_STEP = 1
    STEP_START = 2
    STEP_END = 3
    WAIT_START = 4
    WAIT_END = 5
    ATTEMPT = 6
    DROPPED = 7
    DROPPED_WRITTEN = 8
    CLOSED = 9


class Position(NamedTuple):
    """How far a spool was read; JSON writes it as a list, `Position(*list)` restores it."""

    segment: int = 0
    offset: int = 0
    sequence: int = 0
    """Number that the next record will carry; a dead producer's last words need it."""


class OpenPhase(NamedTuple):
    """A phase that was entered and not left, with the monotonic time of its entry."""

    phase: str
    began: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """Who writes a spool."""

    producer: str
    anchor: int
    run: str | None
    """`None` for the node itself."""
    rank: int | None
    node: str | None
    boot_id: str | None
    process_id: int

    def to_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Producer | None":
        """Build it from what `to_json` returned; `None` for anything else."""
        try:
            found = cls(**{item.name: values[item.name] for item in fields(cls)})
        except (KeyError, TypeError):
            return None
        plain = (found.producer, found.anchor, found.process_id)
        fits = [type(value) for value in plain] == [str, int, int]
        return found if fits and isinstance(found.run, str | None) else None


def spool_folder(configured: Path | None) -> Path:
    """Return the folder of the spools: the configured one or `headway` in the temporary folder."""
    if configured is not None:
        return configured
    import tempfile  # slow to import; most settings name a folder

    return Path(tempfile.gettempdir()) / "headway"


def agent_is_shipping(folder: Path) -> bool:
    """Return whether an agent wrote its marker into the folder of the spools lately."""
    try:
        age = time.time() - (folder / AGENT_MARKER).stat().st_mtime
    except OSError:
        return False
    return age < AGENT_MARKER_SECONDS


def salt(producer: str, segment: int) -> int:
    """Return the value from which the checksums of a segment start."""
    return zlib.crc32(f"{producer}/{segment}".encode())


def segment_name(segment: int) -> str:
    """Return the file name of a segment."""
    return f"{segment:08d}{SEGMENT_SUFFIX}"


def frame(payload: bytes, seed: int) -> tuple[bytes, int]:
    """Return the start of a frame and the room that the whole frame takes."""
    head = FRAME_HEAD.pack(FRAME_KIND, len(payload), zlib.crc32(payload, seed))
    start = head + zlib.crc32(head, seed).to_bytes(4, "little")
    return start, -(-(FRAME_START.size + len(payload)) // BLOCK) * BLOCK


def is_header(content: bytes) -> bool:
    """Return whether this is the content of a header file."""
    return len(content) >= HEADER_SIZE and content.startswith(MAGIC)


def identity_area(producer: Producer) -> tuple[int, bytes]:
    """Return where the header says who writes, and the bytes that say it."""
    # A third of the size that escapes would take, so that a long name in any script has room.
    payload = json.dumps(producer.to_json(), ensure_ascii=False)
    return _IDENTITY_AT, _area(payload.encode("utf-8", "surrogatepass"))


def phases_area(phases: list[OpenPhase]) -> tuple[int, bytes]:
    """Return where the header lists the open phases, and the bytes that do.

    The outermost ones are left out where there is no room for all.
    """
    room = _IDENTITY_AT - _PHASES_AT - _AREA.size
    for first in range(len(phases) + 1):
        payload = json.dumps(phases[first:]).encode()
        if len(payload) <= room:
            break
    return _PHASES_AT, _area(payload)


def read_producer(header: bytes) -> Producer | None:
    """Return who writes; `None` where the header is damaged."""
    values = _read_area(header, _IDENTITY_AT, HEADER_SIZE)
    return Producer.from_json(values) if isinstance(values, dict) else None


def read_phases(header: bytes) -> list[OpenPhase]:
    """Return the open phases, the innermost last; none where they are being rewritten."""
    values = _read_area(header, _PHASES_AT, _IDENTITY_AT)
    return [OpenPhase(phase, began) for phase, began in values] if values else []


def _area(payload: bytes) -> bytes:
    return _AREA.pack(len(payload), zlib.crc32(payload)) + payload


def _read_area(header: bytes, begin: int, end: int) -> Any:
    if not is_header(header):
        return None
    length, checksum = _AREA.unpack_from(header, begin)
    begin += _AREA.size
    if length > end - begin or zlib.crc32(header[begin : begin + length]) != checksum or not length:
        return None
    try:
        return json.loads(header[begin : begin + length])
    except ValueError:
        return None
