"""Numbers that can say what they mean and where they come from."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

_LABEL = "What these numbers mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What something on a page means, and the question that gives it."""

    title: str
    definition: str
    query: str
    """An API path, as `source.query` writes it, or SQL."""


@dataclass(slots=True)
class Row:
    """Numbers side by side, explained together behind one button at their end."""

    explanations: list[Explanation] = field(default_factory=list)

    def number(
        self,
        title: str,
        value: str,
        *,
        definition: str,
        query: str,
        delta: str | None = None,
        **options: Any,
    ) -> None:
        """Show one number as a card; `delta` is the smaller line below it.

        `options` are those of `st.metric`, such as `delta_color` where a delta is good or bad.
        """
        look: dict[str, Any] = {
            "border": True,
            "height": "stretch",
            "delta_color": "off",
            "delta_arrow": "off",
        }
        st.metric(title, value, delta=delta, help=definition, **(look | options))
        self.explanations.append(Explanation(title=title, definition=definition, query=query))


@contextmanager
def row(key: str) -> Iterator[Row]:
    """Show the numbers of this block side by side, and then the button that explains them."""
    found = Row()
    with st.container(horizontal=True, gap="small", key=f"stats-{key}"):
        yield found
    if found.explanations:
        with st.popover(_LABEL, type="tertiary", key=f"meaning-{key}"):
            for one in found.explanations:
                _explain(one)


def heading(title: str, definition: str, query: str, *, key: str) -> None:
    """Show the heading of a chart or table with the button that explains it beside it."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"heading-{key}"):
        st.header(title, anchor=False, width="content")
        with st.popover("About", type="tertiary", key=f"meaning-{key}"):
            _explain(Explanation(title=title, definition=definition, query=query))


def _explain(one: Explanation) -> None:
    st.markdown(f"**{one.title}**")
    st.text(one.definition)
    st.code(one.query, language=None, wrap_lines=True)
