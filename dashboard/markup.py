"""Small pieces of HTML for the pages: tables, share bars and notices. All text is escaped.

Tables are plain HTML because they must hold links, survive a phone's width and be read aloud;
colours are inherited, so one piece serves the light and the dark look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from headway import metrics
from headway.dashboard.palette import EDGE, NEUTRAL, WARNING
from headway.wording import percent

STYLE = f"""<style>
.hw-box {{ overflow-x: auto; }}
.hw-table {{ border-collapse: collapse; width: 100%; font-size: 0.9rem; text-wrap: balance;
  font-variant-numeric: tabular-nums; }}
.hw-table th {{ text-align: left; font-weight: 600; opacity: 0.75; }}
.hw-table.hw-narrow {{ width: auto; }}
.hw-table th, .hw-table td {{ padding: 0.45rem 1rem 0.45rem 0; vertical-align: middle;
  border-bottom: 1px solid rgba(123,135,148,0.35); }}
.hw-table tbody tr:last-child > * {{ border-bottom: none; }}
.hw-table .hw-number {{ text-align: right; }}
.hw-table td.hw-number, .hw-table td.hw-short {{ white-space: nowrap; }}
.hw-table a {{ display: inline-block; white-space: normal; overflow-wrap: anywhere;
  width: max-content; max-width: 15rem; }}
.hw-table small {{ display: inline-block; opacity: 0.78; white-space: normal; }}
.hw-table tr > :last-child {{ padding-right: 0; }}
.hw-table td.hw-wide {{ min-width: 16rem; }}
.hw-table td.hw-wide a {{ max-width: 26rem; }}
@media (max-width: 640px) {{
  .hw-table td.hw-wide {{ min-width: 0; }}
  .hw-table td.hw-wide, .hw-table td.hw-short {{ white-space: normal; overflow-wrap: anywhere; }}
  .hw-table a {{ max-width: 9rem; }}
  .hw-table.hw-stacked {{ width: 100%; }}
  .hw-table.hw-stacked td:empty {{ display: none; }}
  .hw-table.hw-stacked thead {{ position: absolute; clip-path: inset(50%); }}
  .hw-table.hw-stacked tr {{ display: grid; gap: 0.3rem 0.8rem; padding: 0.6rem 0;
    grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr));
    border-bottom: 1px solid rgba(123,135,148,0.35); }}
  .hw-table.hw-stacked tr:last-child {{ border-bottom: none; }}
  .hw-table.hw-stacked td {{ border: none; padding: 0; text-align: left; white-space: normal;
    min-width: 0; overflow-wrap: anywhere; }}
  .hw-table.hw-stacked td:is(:first-child, .hw-wide, :has(.hw-bar)) {{ grid-column: 1 / -1; }}
  .hw-table.hw-stacked td a {{ max-width: 100%; }}
  .hw-table.hw-stacked td::before {{ content: attr(data-label); display: block;
    font-size: 0.75rem; opacity: 0.78; }}
}}
[class*="st-key-stats"] > div {{ flex: 1 1 11rem; width: auto; }}
.hw-table a {{ color: inherit; text-decoration: underline; text-underline-offset: 3px;
  font-weight: 600; }}
.hw-bar {{ display: flex; height: 0.9rem; min-width: 9rem; overflow: hidden; border-radius: 3px;
  outline: 1px solid {EDGE}; }}
.hw-bar span {{ height: 100%; flex: none; }}
.hw-legend {{ display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; font-size: 0.85rem;
  padding-top: 0.3rem; }}
.hw-key {{ display: inline-block; width: 0.7rem; height: 0.7rem; margin-right: 0.4rem;
  outline: 1px solid {EDGE}; border-radius: 2px; }}
[data-testid="stCaptionContainer"] {{ color: inherit; opacity: 0.78; }}
.hw-lead {{ font-size: 1.1rem; line-height: 1.5; max-width: 60rem; margin: 0;
  overflow-wrap: anywhere; }}
.hw-lead a {{ color: inherit; font-weight: 600; text-decoration: underline;
  text-underline-offset: 3px; }}
[class*="st-key-stats"] [data-testid="stMetricDelta"] * {{ white-space: normal; }}
.hw-facts {{ display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.9rem; margin: 0;
  overflow-wrap: anywhere; }}
.hw-facts a {{ color: inherit; text-decoration: underline; text-underline-offset: 3px; }}
[data-stale="true"] {{ opacity: 1 !important; }}
@media (max-width: 640px) {{ [class*="st-key-stats"] > div {{ flex-basis: 9rem; }}
  [data-testid="stMetricValue"], [data-testid="stMetricValue"] * {{ font-size: 1.15rem;
  white-space: normal; }} }}
.hw-age {{ font-size: 0.85rem; opacity: 0.78; margin: 0; }}
.hw-age::before {{ content: ""; display: inline-block; width: 0.55rem; height: 0.55rem;
  border-radius: 50%; margin-right: 0.45rem; background: {NEUTRAL}; }}
.hw-age.hw-stale {{ opacity: 1; font-weight: 600; }}
.hw-age.hw-stale::before {{ background: {WARNING}; }}
.hw-wait {{ display: block; height: 3rem; margin: 0.8rem 0; border-radius: 6px; opacity: 0.15;
  background: {NEUTRAL}; }}
.hw-foot {{ font-size: 0.85rem; opacity: 0.78; margin: 1.5rem 0 0; }}
.st-key-stats-fleet > div {{ flex-basis: max(11rem, 22%) !important; }}
@media (max-width: 640px) {{ .st-key-stats-fleet > div {{ flex-basis: 9rem !important; }} }}
[data-testid="stMetricLabel"] p {{ white-space: normal; }}
.hw-links {{ font-size: 0.9rem; margin: 0; }}
.hw-links a {{ color: inherit; }}
.hw-notice {{ border-left: 3px solid {EDGE}; padding: 0.3rem 0 0.3rem 1rem; max-width: 48rem; }}
.hw-notice p {{ margin: 0.2rem 0; }}
</style>"""
_MOST_BESIDE = 3
"""Columns of a table that fit beside each other on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """Text that is HTML already."""

    html: str


Cell = str | Markup


def table(
    label: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    wide: Sequence[int] = (),
    narrow: bool = False,
) -> str:
    """Return a table; columns that start with `#` hold numbers, `wide` ones may wrap.

    On a phone the cells of each row stand below each other, each with its column's name, where
    there are more than fit beside each other. What is wider still scrolls in a box of its own, by
    keyboard too; `label` names that box.
    """
    stacked = len(columns) > _MOST_BESIDE
    name = " ".join(
        ["hw-table", *(["hw-narrow"] if narrow else []), *(["hw-stacked"] if stacked else [])]
    )

    def kind(index: int) -> str:
        if columns[index].startswith("#"):
            return ' class="hw-number"'
        return ' class="hw-wide"' if index in wide else ' class="hw-short"'

    head = "".join(
        f'<th scope="col"{kind(index)}>{escape(column.removeprefix("#"))}</th>'
        for index, column in enumerate(columns)
    )
    said = [
        f' data-label="{escape(column.removeprefix("#"))}"' if stacked else "" for column in columns
    ]
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind(index)}{said[index]}>{_html(cell)}</td>" for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="hw-box" role="region" tabindex="0" aria-label="{escape(label)}">'
        f'<table class="{name}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def address(page: str, **parameters: object) -> str:
    """Return the address of a page in a state, as it is linked from another page.

    `address("incident", incident="abc")` is `incident?incident=abc`; `None` is left out.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{page}?{urlencode(given, quote_via=quote)}" if given else page


def link(address: str, text: str) -> Markup:
    """Return a link to an address of this dashboard."""
    return Markup(html=f'<a href="{escape(address)}" target="_self">{escape(text)}</a>')


def outside_link(url: str, text: str) -> Markup:
    """Return a link that leaves the dashboard, or the text alone where it is no web address."""
    if not url.startswith(("https://", "http://")):
        return Markup(html=escape(text))
    return Markup(
        html=f'<a href="{escape(url)}" target="_blank" rel="noopener noreferrer">{escape(text)}</a>'
    )


def links(text: str, found: Sequence[Markup]) -> str:
    """Return a line of links after a few words."""
    return f'<p class="hw-links">{escape(text)} {", ".join(one.html for one in found)}</p>'


def two_lines(first: Cell, second: Cell) -> Markup:
    """Return a cell with a second line, which is smaller; an empty one is left out."""
    more = f"<br><small>{_html(second)}</small>" if second else ""
    return Markup(html=_html(first) + more)


def colours(meanings: Mapping[str, str]) -> str:
    """Return what colours mean, by name."""
    parts = "".join(
        f'<span><span class="hw-key" style="background:{colour}"></span>{escape(name)}</span>'
        for name, colour in meanings.items()
    )
    return f'<div class="hw-legend">{parts}</div>'


def run_link(run: str, text: str) -> Markup:
    """Return the link to the Run page of one run."""
    return link(address("run", run=run), text)


def key(category: metrics.Category) -> Markup:
    """Return a category's title with its colour."""
    return Markup(
        html=f'<span class="hw-key" style="background:{category.colour}"></span>'
        f"{escape(category.title)}"
    )


def share_bar(categories: Mapping[str, int]) -> Markup:
    """Return the ledger of one run as one bar, productive first; every part says its share."""
    whole = sum(categories.values())
    named = [(metrics.category(name), categories[name]) for name in in_order(categories)]
    words = [f"{category.title} {percent(ns / whole)}" for category, ns in named]
    spans = "".join(
        f'<span style="width:{100 * ns / whole:.3f}%;background:{category.colour}" '
        f'title="{escape(word)}: {escape(category.description)}"></span>'
        for (category, ns), word in zip(named, words, strict=True)
    )
    return Markup(
        html=f'<div class="hw-bar" role="img" aria-label="{escape(", ".join(words))}">{spans}</div>'
    )


def legend(names: Sequence[str]) -> str:
    """Return the colours of the given categories with their titles."""
    keys = "".join(f"<span>{key(metrics.category(name)).html}</span>" for name in names)
    return f'<div class="hw-legend">{keys}</div>'


def in_order(categories: Mapping[str, Any]) -> list[str]:
    """Return the categories that hold time in reading order."""
    names = [*metrics.CATEGORIES, *sorted(set(categories) - set(metrics.CATEGORIES))]
    return [name for name in names if categories.get(name)]


def lead(text: Cell) -> str:
    """Return the sentence that opens a page."""
    return f'<p class="hw-lead">{_html(text)}</p>'


def spoken(text: str, marked: Mapping[str, Markup | None]) -> Markup:
    """Return a sentence in which some of its words are links, or stand out where they are none.

    Words that are not in the sentence are left out; each is marked where it first stands.
    """
    found = {words: place for words in marked if words and (place := text.find(words)) >= 0}
    parts, done = [], 0
    for words, place in sorted(found.items(), key=lambda item: (item[1], -len(item[0]))):
        if place < done:
            continue  # within words that are marked already
        instead = marked[words]
        shown = f"<b>{escape(words)}</b>" if instead is None else instead.html
        parts += [escape(text[done:place]), shown]
        done = place + len(words)
    return Markup(html="".join(parts) + escape(text[done:]))


def age(text: str, *, stale: bool) -> str:
    """Return how old the data of a page is; `stale` where it is older than it should be."""
    return f'<p class="hw-age{" hw-stale" if stale else ""}" role="status">{escape(text)}</p>'


def waiting(text: str) -> str:
    """Return what stands in the place of an answer that is not there yet."""
    bars = '<span class="hw-wait"></span>' * 3
    return f'<div role="status"><p class="hw-age">{escape(text)}</p>{bars}</div>'


def foot(text: str) -> str:
    """Return what stands below every page."""
    return f'<p class="hw-foot">{escape(text)}</p>'


def notice(sentence: str, next_step: str) -> str:
    """Return what is missing and what to do about it."""
    # the collector's go on after "headway: " and end without a full stop
    words = sentence[:1].upper() + sentence[1:].removesuffix(".") + "."
    return (
        f'<div class="hw-notice" role="status"><p><b>{escape(words)}</b></p>'
        f"<p>{escape(next_step)}</p></div>"
    )


def facts(cells: Sequence[Cell]) -> str:
    """Return short facts and links side by side."""
    return f'<p class="hw-facts">{"".join(f"<span>{_html(cell)}</span>" for cell in cells)}</p>'


def _html(cell: Cell) -> str:
    return cell.html if isinstance(cell, Markup) else escape(cell)
