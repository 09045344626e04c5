"""Figures as small SVG, drawn by hand: no library, no script, no request, sharp on any screen.

The libraries that draw the dashboard's figures would put megabytes of program into a document that
has one bar to show, or need a browser to turn it into a picture.
"""

from collections.abc import Iterator
from html import escape

from headway.postmortem.blocks import Figure, Mark, Part
from headway.postmortem.plain_text import line

_WIDTH, _TOP, _BAR = 1000, 46, 34
_LETTER = 7.2
"""Width of a letter, at most."""
_GAP = 2


def svg(figure: Figure) -> str:
    """Return a figure: its stretches as one bar, its moments above it."""
    words = escape(line(figure.words))
    height = _TOP + _BAR + 2
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{words}">'
        f"<title>{words}</title>{''.join(_drawn(figure))}</svg>"
    )


def _drawn(figure: Figure) -> Iterator[str]:
    for part in figure.parts:
        yield _bar(part, figure.length)
    reached = {0: -1.0, 1: -1.0}
    for mark in sorted(figure.marks, key=lambda one: one.time):
        yield _mark(mark, figure.length, reached)


def _bar(part: Part, length: int) -> str:
    left, right = (_WIDTH * time / length for time in (part.start, part.end))
    width = max(right - left, 1.5)
    name = escape(line(part.name))
    label = ""
    if width > _LETTER * len(part.name) + 12:
        label = (
            f'<text x="{left + width / 2:.1f}" y="{_TOP + _BAR / 2 + 5:.1f}" '
            f'text-anchor="middle" class="on-bar">{name}</text>'
        )
    return (
        f'<g><title>{escape(line(part.words))}</title><rect x="{left:.1f}" y="{_TOP}" '
        f'width="{width:.1f}" height="{_BAR}" fill="{escape(part.colour)}"/>{label}</g>'
    )


def _mark(mark: Mark, length: int, reached: dict[int, float]) -> str:
    """Draw a moment in the first of two rows in which its words have room."""
    x = _WIDTH * mark.time / length
    words = line(mark.words)
    width = _LETTER * len(words)
    ends = x + width > _WIDTH
    left = x - width if ends else x
    row = 1 if left > reached[1] else 0
    reached[row] = left + width + _GAP
    y = 14 + 20 * row
    anchor, shift = ("end", -4) if ends else ("start", 4)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 10}" y2="{_TOP + _BAR}" class="mark"/>'
        f'<text x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
    )
