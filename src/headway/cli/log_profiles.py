"""Profiles of logs in files, for the commands that read logs."""

from datetime import UTC, tzinfo
from pathlib import Path

from headway.cli.refusal import Refusal
from headway.importing.formats import BESIDE
from headway.importing.profile import ProfileError, read_profile
from headway.importing.rules import Format


def described(path: Path, zone: tzinfo = UTC) -> tuple[tuple[Format, ...], int | None]:
    """Return the formats to read a log with that a profile describes, and its log interval.

    Raises:
        Refusal: there is no such file, or it cannot be used.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"cannot read the profile {str(path)!r}: {error}", "name a TOML file"
        ) from error
    try:
        found, interval = read_profile(text, zone)
    except ProfileError as error:
        raise Refusal(
            f"the profile {str(path)!r} cannot be used: {error}", "docs/importing.md has an example"
        ) from error
    return (found, *BESIDE), interval
