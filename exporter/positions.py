"""What the collector acknowledged, per producer, in one file that is replaced atomically.

Losing the file costs nothing but a second delivery, which the collector recognises; so it is not
forced to the disk at each change, and an unreadable one counts as empty.
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


def write_atomically(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file so that a reader sees the old or the new one, never a torn one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, sort_keys=True), encoding="ascii")
    temporary.replace(path)
