"""The form of every page that `headway generate` writes."""

from collections.abc import Iterable

_MARKER = "<!-- Written by `headway generate`; change the declaration instead. -->"


def page(parts: Iterable[str]) -> str:
    """Return a page of these parts that says where it comes from."""
    return "\n\n".join([_MARKER, *parts]) + "\n"
