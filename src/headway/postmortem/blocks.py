"""A document as blocks of plain text, from which every form of it is written.

No text in here is Markdown or HTML: whoever writes a form escapes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list, of things that stand beside each other."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Facts with their names."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table; `marks` stand before the words of its last cell.

    `colour` is that of what it tells about in the figure beside the table.
    """

    cells: Sequence[str]
    colour: str | None = None
    marks: Sequence[str] = ()
    stands_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; columns whose title begins with `#` hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a figure: a stretch in ns from its beginning, with a colour and its words."""

    start: int
    end: int
    colour: str
    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment in a figure, in ns from its beginning."""

    time: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Stretches and moments on one axis of time; `words` say the same to who cannot see it."""

    words: str
    length: int
    parts: Sequence[Part]
    marks: Sequence[Mark]


Block = Text | Bullets | Pairs | Table | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the document under a heading."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole document: its title, the sentence it opens with, its sections, a last line."""

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str
