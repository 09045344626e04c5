"""A document as Markdown, as GitHub and most other places read it.

Whatever a log line says stays text: what Markdown or HTML would take for a mark is escaped.
"""

import re
from collections.abc import Iterator, Sequence

from headway.postmortem.blocks import Block, Bullets, Document, Figure, Pairs, Row, Table, Text
from headway.postmortem.plain_text import line

_MARKS = re.compile(r"([\\`*_\[\]|~$^=])")
_BEGINS = re.compile(r"([-+#>]|\d+(?=[.)]))")
"""What begins a list, a heading or a quotation where it stands first."""


def markdown(document: Document) -> str:
    """Return a document as Markdown, with a line feed at its end."""
    return "\n".join(_lines(document)) + "\n"


def inside(text: str) -> str:
    """Return any text so that Markdown shows it as it is, where it does not begin a line."""
    safe = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", safe)


def escaped(text: str) -> str:
    """Return any text so that Markdown shows it as it is, also where it begins a line."""
    safe = inside(text)
    first = _BEGINS.match(safe)
    if first is None:
        return safe
    at = first.end() if first[1].isdigit() else 0
    return f"{safe[:at]}\\{safe[at:]}"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {inside(document.title)}"
    yield ""
    yield f"**{inside(document.lead)}**"
    for section in document.sections:
        yield ""
        yield f"## {inside(section.title)}"
        for block in section.blocks:
            written = [*_block(block)]
            if written:
                yield ""
                yield from written
    yield ""
    yield f"*{inside(document.foot)}*"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield escaped(block.words)
        case Bullets():
            for item in block.items:
                yield f"- {escaped(item)}"
        case Pairs():
            for name, value in block.rows:
                yield f"- **{inside(name)}**: {inside(value)}"
        case Table():
            yield from _table(block.columns, block.rows)
        case Figure():
            return  # the table beside it says the same


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    yield _joined(inside(column.removeprefix("#")) for column in columns)
    yield _joined("---:" if column.startswith("#") else "---" for column in columns)
    for row in rows:
        *cells, last = map(inside, row.cells)
        marks = "".join(f"**{inside(mark)}** " for mark in row.marks)
        yield _joined([*cells, f"{marks}{last}"])


def _joined(cells: Iterator[str] | Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
