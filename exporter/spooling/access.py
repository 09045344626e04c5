"""Who may read a spool: its owner, root, and where the recorder is told so its group.

An agent has to read a spool's files and to delete them, which asks for the right to write to its
folder.
"""

import os
import stat
from pathlib import Path

from headway.exporter.spooling.layout import HEADER

SHARED_FILE = 0o640
"""Mode of the files of a spool that its group may read."""
PRIVATE_FILE = 0o600
_GROUP = stat.S_IRWXG


def share(folder: Path) -> None:
    """Let the group of a new spool's folder read and empty it.

    Raises:
        OSError: the folder belongs to somebody else.
    """
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | _GROUP)


def is_open(folder: Path) -> bool:
    """Return whether this is a spool that this process may read and empty."""
    try:
        if not (folder / HEADER).is_file():
            return False
    except OSError:
        return False
    return os.access(folder, os.W_OK) and os.access(folder / HEADER, os.R_OK)


def closed_spools(folder: Path) -> list[Path]:
    """Return the spools that others wrote and that this process may not read or not empty."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
    return [path for path in paths if _is_spool(path) and not is_open(path)]


def refusal(folder: Path) -> str:
    """Say why a spool is left alone and what lets an agent take it."""
    try:
        owner = f"user {folder.stat().st_uid}"
    except OSError:
        owner = "another user"
    return (
        f"the spool {str(folder)!r} belongs to {owner} and is closed to this agent of user "
        f"{os.geteuid()}: run the agent as root or as that user, or give both a common group, make "
        "the folder of the spools that group's (chmod g+rwxs) and set "
        "HEADWAY_RECORDER_SHARED=true for the training"
    )


def _is_spool(path: Path) -> bool:
    try:
        return (path / HEADER).is_file()
    except PermissionError:
        return True  # a folder that is closed whole
    except OSError:
        return False
