"""Pages of a list: so many items after the one that the last page ended with.

A cursor is the key of that item, so that what is added or taken away meanwhile moves nothing.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol, TypeVar

from headway.collector.endpoint import Asked, BadQuestion

MOST = 1_000

T = TypeVar("T")
Key = tuple[Any, ...]


Limit = Annotated[int, Asked(sentence="Most items of a page.", lowest=1, highest=MOST)]
Cursor = Annotated[str | None, Asked(sentence="Where to go on: `next` of the page before.")]


class Paged(Protocol):
    """A question that is answered in pages."""

    @property
    def limit(self) -> int:
        """Most items of a page."""

    @property
    def cursor(self) -> str | None:
        """Where to go on."""


def page(
    items: Sequence[T], key: Callable[[T], Key], asked: Paged
) -> tuple[Sequence[T], str | None]:
    """Return a page of items in ascending order of their keys, and the cursor of the next one.

    Raises:
        BadQuestion: the cursor is not one of these.
    """
    ordered = sorted(items, key=key)
    begin = 0
    if asked.cursor is not None:
        after = key_of(asked.cursor)
        if ordered and [*map(type, after)] != [*map(type, key(ordered[0]))]:
            raise foreign(asked.cursor)
        begin = sum(key(item) <= after for item in ordered)
    shown = ordered[begin : begin + asked.limit]
    more = begin + asked.limit < len(ordered)
    return shown, cursor_of(key(shown[-1])) if more else None


def cursor_of(key: Key) -> str:
    """Return a key as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def key_of(cursor: str) -> Key:
    """Return the key in a cursor.

    Raises:
        BadQuestion: it holds none.
    """
    try:
        found = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise foreign(cursor) from error
    if not isinstance(found, list):
        raise foreign(cursor)
    return tuple(found)


def foreign(cursor: str) -> BadQuestion:
    """Return the refusal of a cursor that no page of this endpoint gave."""
    return BadQuestion(f"cursor {cursor!r:.80} is not one of these pages", "Begin without one.")
