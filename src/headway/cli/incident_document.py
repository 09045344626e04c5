"""`headway incident --markdown|--html`: the post-mortem of an incident as a document."""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from headway.cli.refusal import Refusal

FORMS = {"markdown": "Markdown", "html": "one HTML file with figures, which loads nothing"}
"""Forms of the document, with what each is."""
_LOCAL = Path("/etc/localtime")


def write_postmortem(answer: Mapping[str, Any], form: str, output: Path | None) -> None:
    """Write a post-mortem, as the read API tells it, to a file or to standard output.

    Raises:
        Refusal: the file cannot be written.
    """
    from headway.postmortem.html import html
    from headway.postmortem.markdown import markdown
    from headway.postmortem.page import page
    from headway.postmortem.reading import postmortem_of

    document = page(postmortem_of(answer), local_zone())
    text = markdown(document) if form == "markdown" else html(document)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refusal(f"cannot write {str(output)!r}: {error.strerror}", "name another file") from (
            error
        )


def local_zone() -> tzinfo:
    """Return the time zone of `TZ`, else of this machine; UTC where neither can be read."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # costs as much as the command line

    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name:
            return ZoneInfo(name)
        with _LOCAL.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
