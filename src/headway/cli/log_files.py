"""Old logs as text: which files, in which packing and encoding, piece by piece.

Nothing is held in memory but the piece being read. A packed file that unpacks to absurdly more than
its size is refused; a file that is no text is left out and told of.
"""

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from headway.cli.refusal import Refusal

_CHUNK = 512 * 1024
_HEAD = 65_536
_ABSURD_RATIO = 200
_ABSURD_SIZE = 1024**3
_PACKINGS = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
}
_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins like UTF-16's
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
_BINARY_SHARE = 0.05
_LONG_LINE = 2000
_RANK = re.compile(
    r"(?:^|[/_.-])rank[_-]?(\d{1,6})(?![0-9])|/attempt_\d{1,6}/(\d{1,6})/(?:stdout|stderr)\.log$"
)
_NUMBERS = re.compile(r"(\d+)")
_BROKEN = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, OSError)


@dataclass(slots=True)
class LogFile:
    """One file: `packing` names its compression, `skipped` why it was not read, if so."""

    path: Path
    size: int
    changed: int
    packing: str | None = None
    encoding: str = "utf-8"
    skipped: str | None = None
    torn: str | None = None
    """Why it could not be unpacked to its end."""
    read: int = 0
    """Bytes of the file that were read so far."""

    @property
    def rank(self) -> int | None:
        """The rank that the file's name tells."""
        found = _RANK.search(str(self.path))
        return None if found is None else int(found[1] or found[2])

    def head(self) -> str:
        """Return the begin of its text, to see what it is."""
        text = ""
        for piece in self.pieces():
            text += piece
            if len(text) >= _HEAD:
                break
        self.read = 0
        return text[:_HEAD]

    def pieces(self) -> Iterator[str]:
        """Yield its text.

        Raises:
            Refusal: it unpacks to absurdly much.
        """
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        with self.path.open("rb") as raw:
            plain = _opened(raw, self.packing)
            inflated = 0
            while True:
                try:
                    chunk = cast(io.BufferedReader, plain).read1(_CHUNK)
                except _BROKEN as error:
                    self.torn = str(error) or type(error).__name__
                    chunk = b""
                if not chunk:
                    break
                self.read = raw.tell()
                inflated += len(chunk)
                if inflated > _ABSURD_SIZE and inflated > _ABSURD_RATIO * max(self.size, 1):
                    raise Refusal(
                        f"{str(self.path)!r} unpacks to more than {_ABSURD_RATIO} times its size",
                        "unpack it yourself and import the result, if it is what you expect",
                    )
                yield decoder.decode(chunk)
        rest = decoder.decode(b"", final=True)
        if rest:
            yield rest


def log_files(paths: list[Path]) -> list[LogFile]:
    """Return the files of some paths; of a folder all in it, in natural order.

    Raises:
        Refusal: there is no such file, or none at all.
    """
    found: list[LogFile] = []
    known: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise Refusal(f"there is no file {str(path)!r}", "name a log, or a folder of logs")
        if path.is_dir():
            inside = [
                one
                for one in path.rglob("*")
                if one.is_file() and not any(p.startswith(".") for p in one.relative_to(path).parts)
            ]
        else:
            inside = [path]
        for one in sorted(inside, key=natural):
            if one.resolve() not in known:
                known.add(one.resolve())
                found.append(_looked_at(one))
    if not found:
        raise Refusal("there is no file in what was named", "name a log, or a folder of logs")
    return found


def natural(path: Path) -> list[tuple[int, str]]:
    """Return what sorts `part2` before `part10`."""
    parts = _NUMBERS.split(str(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _looked_at(path: Path) -> LogFile:
    if not path.is_file():
        raise Refusal(f"{str(path)!r} is no ordinary file", "copy what it gives into a file first")
    try:
        about = path.stat()
        with path.open("rb") as raw:
            head = raw.read(8)
    except OSError as error:
        raise Refusal(f"cannot read {str(path)!r}: {error.strerror}") from error
    found = LogFile(path, about.st_size, about.st_mtime_ns)
    found.packing = next((name for mark, name in _PACKINGS.items() if head.startswith(mark)), None)
    if not about.st_size:
        found.skipped = "empty"
        return found
    with path.open("rb") as raw:
        try:
            begin = _begin_of(_opened(raw, found.packing))
        except _BROKEN as error:
            found.skipped = f"cannot be unpacked: {error or type(error).__name__}"
            return found
    wide = _wide(begin)
    if wide is not None:
        found.encoding = wide
    elif _is_binary(begin):
        found.skipped = "no text"
    return found


def _begin_of(plain: IO[bytes]) -> bytes:
    """Return the first bytes, also of a packed file that breaks off within them."""
    begin = b""
    while len(begin) < _HEAD:
        try:
            chunk = cast(io.BufferedReader, plain).read1(_HEAD - len(begin))
        except _BROKEN:
            if begin:
                break
            raise
        if not chunk:
            break
        begin += chunk
    return begin


def _wide(begin: bytes) -> str | None:
    """Return the encoding that a mark tells, or that every second byte is a zero."""
    for mark, name in _WIDE.items():
        if begin.startswith(mark):
            return name
    even, odd = begin[::2], begin[1::2]
    for low, high, name in ((even, odd, "utf-16-le"), (odd, even, "utf-16-be")):
        if 2 * high.count(0) > len(high) and 20 * low.count(0) < len(low) and not _is_binary(low):
            return name
    return None


def _is_binary(begin: bytes) -> bool:
    """Whether bytes are no text: a log may hold a few odd ones, also a hole full of zeros."""
    odd = sum(begin.count(code) for code in (*range(1, 7), *range(14, 27), 28, 29, 30, 31, 127))
    zeros = begin.count(0)
    shown = len(begin) - zeros
    return (
        shown == 0
        or odd > _BINARY_SHARE * shown
        or (zeros > 0 and begin.count(b"\n") * 2000 < shown)
    )


def _opened(raw: IO[bytes], packing: str | None) -> IO[bytes]:
    match packing:
        case "gzip":
            return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        case "xz":
            return cast(IO[bytes], lzma.LZMAFile(raw))
        case "bzip2":
            return cast(IO[bytes], bz2.BZ2File(raw))
        case "zstd":
            return _zstd(raw)
        case _:
            return raw


def _zstd(raw: IO[bytes]) -> IO[bytes]:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(
        raw, read_across_frames=True
    )
    return io.BufferedReader(reader, _CHUNK)
