"""Bars in plain HTML: where they are drawn and what they say."""

import re
from html import unescape

import pytest

from headway.dashboard import bars
from headway.dashboard.bars import Part, Row


def row(begin: float = 0.0, width: float = 0.5, **said: str) -> Row:
    part = Part(begin=begin, width=width, colour="#009E73")
    return Row(**{"name": "Down", "meaning": ["2 h", "Nothing ran."], **said}, parts=[part])


def place(html: str, kind: str) -> str:
    (found,) = re.findall(f'class="{kind}" style="([^"]*)"', html)
    return found


def test_shares_take_the_whole_width_and_have_an_axis_in_percent() -> None:
    html = bars.html([row(0.25, 0.5)], "Shares", panel="#FFF", shares=True)

    assert place(html, "hw-part").startswith("left:25.000%;width:50.000%;")
    assert re.findall(r">(\d+ %)<", html) == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]


def test_amounts_leave_room_for_their_words_and_need_no_axis() -> None:
    html = bars.html([row(0, 1, amount="9 GPU-h")], "Costs", panel="#FFF")

    assert place(html, "hw-part").startswith("left:0.000%;width:80.000%;")
    assert place(html, "hw-amount") == "left:80.000%"
    assert "hw-axis" not in html


@pytest.mark.parametrize(
    ("begin", "width", "expected"),
    [(0.1, 0.2, "left:30.000%"), (0.9, 0.05, "right:10.000%"), (0.3, 0.69, "right:70.000%")],
)
def test_an_amount_stands_on_the_side_that_has_room(
    begin: float, width: float, expected: str
) -> None:
    html = bars.html([row(begin, width, amount="2 h")], "Shares", panel="#FFF", shares=True)

    assert place(html, "hw-amount") == expected


def test_a_row_is_reached_by_keyboard_and_says_what_it_means_whatever_its_name() -> None:
    html = bars.html([row(name="<b>&", share="3 %")], 'Say "so"', panel="#FFF")

    assert '<li tabindex="0">' in html
    assert 'aria-label="Say &quot;so&quot;"' in html
    said = unescape(re.sub("<[^>]*>", " ", html))
    assert said.split() == ["<b>&", "3", "%", "<b>&", "2", "h", "Nothing", "ran."]
