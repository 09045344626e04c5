"""The two looks of the pages, light and dark, and how Streamlit is told about them.

Category colours are not here: they come from `headway.metrics` and serve both looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.metrics import CATEGORIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The neutral colours of one look."""

    background: str
    panel: str
    text: str
    border: str
    accent: str


LOOKS: Mapping[str, Look] = {
    "light": Look(
        background="#FFFFFF",
        panel="#F4F6F8",
        text="#1F2933",
        border="#D5DBE1",
        accent="#0067A3",
    ),
    "dark": Look(
        background="#14181D",
        panel="#1E252C",
        text="#E4E9EE",
        border="#39434E",
        accent="#6BBDEB",
    ),
}

NEUTRAL = "#7B8794"
"""Totals and reference marks; readable on both backgrounds."""
EDGE = "rgba(123,135,148,0.9)"
"""Outline that keeps the palest and the darkest category visible on both backgrounds."""
WARNING = "#D55E00"
"""Data that is older than it should be; readable on both backgrounds."""
INCIDENT = "#D55E00"
"""Marks of incidents in every figure; readable on both backgrounds."""
GRID = "rgba(123,135,148,0.25)"


def theme_options() -> Mapping[str, Any]:
    """Return Streamlit's theme settings for both looks; the reader's system chooses one."""
    options: dict[str, Any] = {
        "theme.paddingTop": "1rem",
        "theme.paddingBottom": "3rem",
        "theme.baseRadius": "6px",
        "theme.showWidgetBorder": True,
        "theme.metricValueFontSize": "1.65rem",
        "theme.headingFontSizes": ["1.75rem", "1.25rem", "1.1rem", "1rem", "1rem", "1rem"],
        "theme.headingFontWeights": [600, 600, 600, 600, 600, 600],
    }
    colours = [category.colour for category in CATEGORIES.values()]
    for name, look in LOOKS.items():
        options |= {
            f"theme.{name}.backgroundColor": look.background,
            f"theme.{name}.secondaryBackgroundColor": look.panel,
            f"theme.{name}.textColor": look.text,
            f"theme.{name}.borderColor": look.border,
            f"theme.{name}.primaryColor": look.accent,
            f"theme.{name}.linkColor": look.accent,
            f"theme.{name}.chartCategoricalColors": colours,
        }
    return options
