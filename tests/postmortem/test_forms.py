"""Markdown and HTML say the same, show any text as it is, and ask nobody for anything."""

import re
from dataclasses import asdict, replace
from datetime import UTC
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from headway.postmortem.blocks import Bullets, Document, Pairs, Row, Section, Table, Text
from headway.postmortem.html import html
from headway.postmortem.markdown import markdown
from headway.postmortem.page import page
from headway.postmortem.plain_text import LONGEST, line
from headway.postmortem.reading import postmortem_of
from postmortems import written

NASTY = (
    "<script>alert(1)</script>",
    "| a | b |",
    "**bold** _it_ `code` ~~no~~ [link](http://x) ![i](http://x/p.png)",
    "# heading",
    "- item",
    "1. one",
    "12) twelve",
    "> quote",
    "&lt;b&gt; &amp; &#60;",
    "\\",
    "a\nb\r\n\tc",
    "$x^2$ ==mark==",
    "https://example.org/?a=1&b=2",
    '" onmouseover="alert(1)',
    "\u202egnp.exe",
    "\ud800",
    "\x00\x1b[31mred",
    "n\u0153ud-\u4e2d\u6587-\U0001f4a5",
    "x" * 1_500,
)
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=80)).filter(
    lambda text: bool(line(text))
)


def document(*given: str) -> Document:
    """Return a document with texts in every place in which there can be one."""
    first, second, third = given
    return Document(
        title=first,
        lead=second,
        sections=(
            Section(
                title=third,
                blocks=(
                    Text(words=first),
                    Bullets(items=[second, third]),
                    Pairs(rows=[(first, second)]),
                    Table(
                        columns=(f"c {third}", f"#c {first}"),
                        rows=[
                            Row(cells=(second, third), marks=(first,)),
                            Row(cells=(first, first)),
                        ],
                    ),
                ),
            ),
        ),
        foot=second,
    )


def expected(*given: str) -> list[str]:
    """Return the texts of such a document in its order."""
    first, second, third = map(line, given)
    said = (first, second, third, first, second, third)
    pairs = (first, second)
    table = (line(f"c {third}"), line(f"c {first}"), second, first, third, first, first)
    return [*said, *pairs, *table, second]


class Read(HTMLParser):
    """Collects the text, the elements and the attributes of an HTML document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._skipping = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        self._skipping = tag in ("style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._skipping = False

    def handle_data(self, data: str) -> None:
        if not self._skipping and data.strip():
            self.texts.append(data.strip())


def plain(tokens: list[Token]) -> list[str]:
    """Return the texts of inline tokens as they would be seen, one for each stretch."""
    found: list[str] = []
    for token in tokens:
        if token.type != "inline":
            continue
        parts = [""]
        for child in token.children or ():
            if child.type in ("strong_open", "strong_close", "em_open", "em_close"):
                parts.append("")
            elif child.type in ("text", "text_special"):
                parts[-1] += child.content
            else:
                raise AssertionError(f"{child.type} in {token.content!r}")
        found += [part.strip() for part in parts if part.strip()]
    return found


@settings(max_examples=40)
@given(texts, texts, texts)
def test_markdown_shows_any_text_as_it_is(first: str, second: str, third: str) -> None:
    tokens = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .parse(markdown(document(first, second, third)))
    )
    told = [re.sub(r"^: ", "", one) for one in plain(tokens)]
    assert told == expected(first, second, third)
    assert {one.type for one in tokens} <= {
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
        *("table_open", "table_close", "thead_open", "thead_close", "tbody_open", "tbody_close"),
        *("tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close"),
    }


@settings(max_examples=40)
@given(texts, texts, texts)
def test_html_shows_any_text_as_it_is(first: str, second: str, third: str) -> None:
    read = Read(html(document(first, second, third)))
    assert read.texts == expected(first, second, third)
    assert not {"script", "img", "iframe", "link", "a", "object"} & set(read.elements)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "src"]


@given(st.text())
def test_any_text_becomes_one_line_that_a_file_can_hold(text: str) -> None:
    safe = line(text)
    assert "\n" not in safe
    assert len(safe) <= LONGEST
    safe.encode()


def test_a_whole_post_mortem_loads_nothing() -> None:
    text = html(page(written(), UTC))
    assert "default-src 'none'" in text
    assert not re.search(r"(?:https?:)?//|url\(|@import|<script", text)
    assert text.count("<svg") == 1


def test_both_forms_say_the_same() -> None:
    found = page(written(), UTC)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(found))
    in_markdown = {one for one in plain(tokens) if len(one) > 12}
    in_html = " ".join(Read(html(found)).texts)
    missing = [one for one in in_markdown if one.removeprefix(": ") not in in_html]
    assert missing == []


@pytest.mark.parametrize(
    ("zone", "opened", "names"),
    [
        (UTC, "2026-09-21 14:22:54 UTC", "Times are in UTC,"),
        (
            ZoneInfo("Europe/Berlin"),
            "2026-09-21 16:22:54 CEST (2026-09-21 14:22:54 UTC)",
            "Times are in CEST (UTC+02:00),",
        ),
        (
            ZoneInfo("Asia/Kolkata"),
            "2026-09-21 19:52:54 IST (2026-09-21 14:22:54 UTC)",
            "Times are in IST (UTC+05:30),",
        ),
    ],
)
def test_times_are_in_the_readers_zone_beside_utc(zone: ZoneInfo, opened: str, names: str) -> None:
    text = markdown(page(written(), zone))
    assert f"- **Opened**: {opened}\n" in text
    assert names in text


def test_what_is_unknown_reads_so() -> None:
    found = written()
    bare = replace(
        found,
        team=None,
        attempt=None,
        recovered=None,
        caught_up=None,
        closed=None,
        timeline=(),
        num_lines=0,
        phases=(),
        similar=(),
        alerts=None,
        gaps=(),
        questions=(),
        verdict=replace(found.verdict, signature=None),
        cost=replace(found.cost, rollback_steps=None, rollback_ns=None, share=None, gpus=None),
        suspect=replace(found.suspect, rank=None, node=None, gpu=None, node_record=None),
        recovery=replace(found.recovery, tries=(), num_tries=0, restored=None, layer=None),
        configuration=replace(found.configuration, broken=None, last=None),
    )
    text = markdown(page(bare, UTC))
    for line_ in (
        "- **Recovered**: never",
        "- **Rolled back**: unknown",
        "No phase has taken any time.",
        "The evidence accuses no rank, no node and no GPU.",
        "No attempt to recover has begun.",
        "No attempt is known, so that nothing can be compared.",
        "Unknown: no book of alerts could be read.",
        "None is known.",
    ):
        assert f"{line_}\n" in text
    assert html(page(bare, UTC)).endswith("</html>\n")


def test_a_post_mortem_comes_back_as_it_was_sent() -> None:
    found = written()
    assert postmortem_of(asdict(found)) == found
    assert postmortem_of({**asdict(found), "later": 1}) == found
