"""The HTML form in a real browser as narrow as a phone: nothing of it is cut off."""

from datetime import UTC
from pathlib import Path

import pytest

from browser_pages import chromium
from headway.postmortem.html import html
from headway.postmortem.page import page
from postmortems import written
from worked_example import KILLED

pytestmark = pytest.mark.slow

LONG = f"/opt/pytorch/{'third_party/' * 9}pair.cc:553"
CUT_OFF = "[...document.querySelectorAll('.box')].filter(box => box.scrollWidth > box.clientWidth)"


def test_no_table_is_wider_than_the_screen_though_a_word_of_it_is(tmp_path: Path) -> None:
    text = KILLED.replace(
        "574      exit rank=3 signal=9", f"574 fault exception rank=3 exception={LONG}"
    )
    document = html(page(written(text), UTC))
    assert LONG in document
    file = tmp_path / "postmortem.html"
    file.write_text(document, encoding="utf-8")
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": 390, "height": 844})
        opened.goto(file.as_uri())
        assert opened.locator(".box").count() > 5
        assert opened.evaluate(f"{CUT_OFF}.map(box => box.ariaLabel)") == []
