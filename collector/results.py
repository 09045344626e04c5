"""Results of benchmarks and drills, by the configuration that produced them."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.comparison.results import numbers_of
from headway.events import Envelope, ResultAttached

_DEEPEST = 50
"""Objects and lists within each other that a result may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result of an attempt's configuration; the time it was attached is UTC ns.

    `numbers` are those in its content, by their place in it.
    """

    time: int
    run: str
    configuration: str
    title: str
    author: str | None
    numbers: Mapping[str, float]
    content: str


class Results:
    """Finds what was attached to the configurations of runs; any thread may ask."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._found: list[Result] = []

    def add(self, envelopes: Iterable[Envelope]) -> None:
        """Take stored events; others than attached results that can be read are left out."""
        new = [result for envelope in envelopes if (result := _result(envelope)) is not None]
        with self._lock:
            self._found += new

    def all(self) -> Sequence[Result]:
        """Return every result, in no order."""
        with self._lock:
            return tuple(self._found)


def content_of(text: str) -> dict[str, Any]:
    """Return the JSON object that a result is.

    Raises:
        ValueError: it is none, or nothing that could be told in an answer.
    """
    try:
        found = json.loads(text)
        # neither NaN nor half a surrogate, which Python reads and nobody may write
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested without end") from error
    if not isinstance(found, dict):
        raise ValueError("it is not one object, such as {...}")
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _within(one)]
    if level:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return found


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _result(envelope: Envelope) -> Result | None:
    event = envelope.event
    if not isinstance(event, ResultAttached) or envelope.run is None:
        return None
    try:
        content = content_of(event.content)
    except ValueError:  # some other program sent it
        return None
    return Result(
        time=envelope.anchor + envelope.monotonic,
        run=envelope.run,
        configuration=event.configuration,
        title=event.title,
        author=event.author,
        numbers=numbers_of(content),
        content=event.content,
    )
