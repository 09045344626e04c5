"""Results of benchmarks and drills, by the configuration that produced them."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.comparison.results import numbers_of
from headway.events import Envelope, ResultAttached


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
        """Take stored events; others than attached results are left out."""
        new = [result for envelope in envelopes if (result := _result(envelope)) is not None]
        with self._lock:
            self._found += new

    def all(self) -> Sequence[Result]:
        """Return every result, in no order."""
        with self._lock:
            return tuple(self._found)


def _result(envelope: Envelope) -> Result | None:
    event = envelope.event
    if not isinstance(event, ResultAttached) or envelope.run is None:
        return None
    try:
        numbers = numbers_of(json.loads(event.content))
    except ValueError:  # some other program sent it
        numbers = {}
    return Result(
        time=envelope.anchor + envelope.monotonic,
        run=envelope.run,
        configuration=event.configuration,
        title=event.title,
        author=event.author,
        numbers=numbers,
        content=event.content,
    )
