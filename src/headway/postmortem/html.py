"""A document as one HTML file that asks nobody for anything: styles and figures are inside it."""

from collections.abc import Iterator, Sequence
from html import escape

from headway.postmortem.blocks import (
    Block,
    Bullets,
    Document,
    Figure,
    Pairs,
    Row,
    Table,
    Text,
)
from headway.postmortem.figures import svg
from headway.postmortem.plain_text import line

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: CanvasText; background: Canvas; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.lead { font-size: 1.1rem; font-weight: 600; }
.box { overflow-x: auto; margin: 0 0 0.9rem; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.9rem 0.35rem 0.4rem;
  border-bottom: 1px solid rgba(123,135,148,0.35); overflow-wrap: break-word; }
td:last-child { min-width: 14rem; overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; } .short { white-space: nowrap; }
.key { display: inline-block; width: 0.7rem; height: 0.7rem; margin-right: 0.4rem;
  border-radius: 2px; outline: 1px solid rgba(123,135,148,0.9); }
.first { background: rgba(213,94,0,0.14); box-shadow: inset 3px 0 #D55E00; font-weight: 600; }
.badge { display: inline-block; font-size: 0.75rem; font-weight: 600; border: 1px solid;
  border-radius: 4px; padding: 0 0.35rem; margin-right: 0.4rem; }
svg { width: 100%; height: auto; min-width: 30rem; } svg text { font: 13px system-ui, sans-serif;
  fill: CanvasText; } svg .on-bar { fill: #000; paint-order: stroke; stroke: #fff;
  stroke-width: 3px; stroke-linejoin: round; } svg .mark { stroke: CanvasText; stroke-width: 1; }
svg rect { stroke: rgba(123,135,148,0.9); stroke-width: 0.5; }
.foot { font-size: 0.85rem; margin-top: 2.5rem; }
@media (max-width: 640px) { th, td { padding-right: 0.4rem; }
  .wide thead { display: none; } .wide tr { display: block;
  padding: 0.5rem 0.3rem; border-bottom: 1px solid rgba(123,135,148,0.35); }
  .wide td { display: inline-block; border: none; padding: 0 0.8rem 0 0; text-align: left;
  white-space: normal; } .wide td:empty { display: none; }
  td:last-child { min-width: 0; white-space: normal; } .wide td:last-child { display: block; }
  .wide td::before { content: attr(data-label) " "; font-weight: 400; opacity: 0.7; }
  svg { min-width: 0; } svg text, svg .mark { display: none; } }
@media print { body { margin: 0; max-width: none; } .box { overflow: visible; } }
"""
_WIDE = 5
"""Columns from which on a table is stacked on a narrow screen, each cell with its heading."""
_SHORT = 28
"""Letters up to which a cell stays on one line."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for it: nothing."""


def html(document: Document) -> str:
    """Return a document as a whole HTML file."""
    return "".join(_pieces(document))


def escaped(text: str) -> str:
    """Return any text so that HTML shows it as it is."""
    return escape(line(text))


def _pieces(document: Document) -> Iterator[str]:
    title = escaped(document.title)
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{title}</h1>\n<p class="lead">{escaped(document.lead)}</p>\n'
    )
    for section in document.sections:
        yield f"<section>\n<h2>{escaped(section.title)}</h2>\n"
        yield from (_block(block, section.title) for block in section.blocks)
        yield "</section>\n"
    yield f'<p class="foot">{escaped(document.foot)}</p>\n</main>\n</body>\n</html>\n'


def _block(block: Block, title: str) -> str:
    match block:
        case Text():
            return f"<p>{escaped(block.words)}</p>\n"
        case Bullets():
            items = "".join(f"<li>{escaped(item)}</li>\n" for item in block.items)
            return f"<ul>\n{items}</ul>\n"
        case Pairs():
            rows = "".join(
                f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(value)}</td></tr>\n'
                for name, value in block.rows
            )
            return _boxed(title, f"<tbody>\n{rows}</tbody>") if rows else ""
        case Table():
            return _table(title, block.columns, block.rows) if block.rows else ""
        case Figure():
            return f'<div class="box">{svg(block)}</div>\n' if block.length else ""


def _table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    kinds = [' class="number"' if column.startswith("#") else "" for column in columns]
    head = "".join(
        f'<th scope="col"{kind}>{escaped(column.removeprefix("#"))}</th>'
        for column, kind in zip(columns, kinds, strict=True)
    )
    labels = [""] * len(columns)
    if len(columns) >= _WIDE:
        labels = [f' data-label="{escaped(column.removeprefix("#"))}"' for column in columns]
    body = "".join(_row(row, kinds, labels) for row in rows)
    whole = f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}</tbody>"
    return _boxed(title, whole, wide=len(columns) >= _WIDE)


def _row(row: Row, kinds: Sequence[str], labels: Sequence[str]) -> str:
    marks = "".join(f'<span class="badge">{escaped(mark)}</span>' for mark in row.marks)
    *cells, last = map(escaped, row.cells)
    if row.colour is not None:
        cells[0] = f'<span class="key" style="background:{escaped(row.colour)}"></span>{cells[0]}'
    written = "".join(
        f"<td{kind or _kind(text)}{label}>{cell}</td>"
        for text, cell, kind, label in zip(
            row.cells, (*cells, marks + last), kinds, labels, strict=True
        )
    )
    return f'<tr class="first">{written}</tr>\n' if row.stands_out else f"<tr>{written}</tr>\n"


def _kind(text: str) -> str:
    """Return the class of a cell that had better not be broken."""
    return ' class="short"' if len(text) <= _SHORT else ""


def _boxed(title: str, table: str, *, wide: bool = False) -> str:
    """Return a table in a box that scrolls, by keyboard too; the title names the box."""
    named = f'role="region" aria-label="{escaped(title)}" tabindex="0"'
    kind = ' class="wide"' if wide else ""
    return f'<div class="box" {named}><table{kind}>\n{table}\n</table></div>\n'
