"""The log of a service: its standard error, as lines for people or as one JSON object a line.

Whatever the services log passes here, and so does the masking of what looks like a secret.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Any

from headway.redaction import masked
from headway.settings import ServiceSettings

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_QUIET = ("alembic", "asyncio", "httpx", "urllib3", "uvicorn.error")
"""Libraries that tell of each connection, or of themselves."""


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        found: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked(record.getMessage()),
        }
        if record.exc_info:
            found["exception"] = masked(self.formatException(record.exc_info))
        return json.dumps(found)


def configure(settings: ServiceSettings, stream: IO[str] | None = None) -> None:
    """Let the process log as its settings say, to its standard error unless a stream is given."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(formatter(settings))
    level = level_of(settings)
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def formatter(settings: ServiceSettings, text: str = _TEXT) -> logging.Formatter:
    """Return what writes a line as the settings say; `text` is the form for people."""
    return _JsonLines() if settings.log_format == "json" else _TextLines(text)


def level_of(settings: ServiceSettings) -> int:
    """Return the level from which on the settings want a line."""
    return logging.getLevelNamesMapping()[settings.log_level.upper()]
