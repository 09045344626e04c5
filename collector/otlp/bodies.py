"""Bodies of OTLP requests as they arrive: inflated piece by piece, never beyond a limit."""

import zlib

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
ENCODINGS = ("", "identity", "gzip")
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class MalformedRequest(ValueError):  # noqa: N818  # the condition reads as a name
    """A body that is no OTLP request; sending it again cannot help."""


class UnknownForm(ValueError):  # noqa: N818  # the condition reads as a name
    """A content type or encoding that is not OTLP's."""


class TooLarge(ValueError):  # noqa: N818  # the condition reads as a name
    """A body that holds too much; smaller batches help."""


def check_form(content_type: str, encoding: str) -> None:
    """Refuse what cannot be read, before any of it is.

    Raises:
        UnknownForm: unknown content type or encoding.
    """
    if content_type not in (PROTOBUF, JSON):
        raise UnknownForm(f"unknown content type {content_type!r}; known: {PROTOBUF}, {JSON}")
    if encoding not in ENCODINGS:
        raise UnknownForm(f"unknown content encoding {encoding!r}; known: gzip, identity")


class Body:
    """One body; `size` is what it holds so far, inflated, in bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        """Start empty; `encoding` is one of `ENCODINGS`."""
        self.size = 0
        self._limit = limit
        self._pieces: list[bytes] = []
        self._inflater = zlib.decompressobj(_GZIP_WINDOW) if encoding == "gzip" else None

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the body.

        Raises:
            MalformedRequest: no gzip stream.
            TooLarge: more than the limit, after inflating.
        """
        if self._inflater is None:
            self._add(chunk)
            return
        try:
            while chunk:
                if self._inflater.eof:  # a gzip file may have several members
                    self._inflater = zlib.decompressobj(_GZIP_WINDOW)
                self._add(self._inflater.decompress(chunk, self._limit - self.size + 1))
                chunk = self._inflater.unused_data
        except zlib.error as error:
            raise MalformedRequest(f"the body is no gzip stream: {error}") from error

    def _add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._limit:
            self._pieces.clear()
            raise TooLarge(f"the body holds more than {self._limit} bytes")
        self._pieces.append(piece)

    def whole(self) -> bytes:
        """Return the body, now that all of it is here.

        Raises:
            MalformedRequest: the gzip stream ends early.
        """
        if self._inflater is not None and not self._inflater.eof:
            raise MalformedRequest("the gzip stream ends early")
        return b"".join(self._pieces)
