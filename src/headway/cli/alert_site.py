"""Reads the site's alerts file for whichever command needs it."""

from pathlib import Path

from headway.alerts.site import Site, SiteError, site
from headway.cli.refusal import Refusal


def site_of(path: Path) -> Site:
    """Return what an alerts file says.

    Raises:
        Refusal: a file that cannot be read, or says what cannot be used.
    """
    try:
        return site(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"cannot read the alerts file {str(path)!r}: {error}",
            "name another one, or leave it out to have all alerts in the log",
        ) from error
    except SiteError as error:
        raise Refusal(f"{path}: {error}", "correct the file; docs/alerts.md shows one") from error
