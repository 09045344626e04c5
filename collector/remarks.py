"""What people said: notes and labels, who took charge of an incident, who corrected its cause.

Read from the stored events and kept by what they are about, newest last. Nothing is ever taken
back: a label that was removed stays in the history of its subject.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headway.events import Envelope, IncidentAcknowledged, IncidentCorrected, Note

NOTED, ACKNOWLEDGED, CORRECTED = "noted", "acknowledged", "corrected"
INCIDENT = "incident"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing that a person said about a subject; the time is UTC ns by the collector's clock."""

    time: int
    author: str | None
    action: str
    about: str
    subject: str
    run: str | None = None
    text: str | None = None
    cause: str | None = None
    labels: tuple[str, ...] = ()
    labels_removed: tuple[str, ...] = ()

    def says(self, words: str) -> bool:
        """Whether it holds these words, whatever their case."""
        held = (self.text, self.author, self.cause, *self.labels, *self.labels_removed)
        return any(words.casefold() in one.casefold() for one in held if one is not None)


class Remarks:
    """Finds what people said about runs, incidents, nodes and configurations."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], list[Remark]] = defaultdict(list)

    def add(self, envelopes: Iterable[Envelope]) -> None:
        """Take stored events; those of programs are left out."""
        new = [remark for envelope in envelopes for remark in _remarks(envelope)]
        if not new:
            return
        with self._lock:
            for remark in new:
                about = self._found[remark.about, remark.subject]
                about.append(remark)
                about.sort(key=lambda one: one.time)

    def about(self, about: str, subject: str) -> Sequence[Remark]:
        """Return what was said about one subject, in order of time."""
        with self._lock:
            return tuple(self._found.get((about, subject), ()))

    def all(self) -> Sequence[Remark]:
        """Return everything that was said, in no order."""
        with self._lock:
            return [remark for found in self._found.values() for remark in found]

    def labels(self, about: str, subject: str) -> list[str]:
        """Return the labels that a subject has now, in the order of their names."""
        labels: set[str] = set()
        for remark in self.about(about, subject):
            labels |= {*remark.labels}
            labels -= {*remark.labels_removed}
        return sorted(labels)


def _remarks(envelope: Envelope) -> Iterator[Remark]:
    time, event = envelope.anchor + envelope.monotonic, envelope.event
    if isinstance(event, Note):
        if event.about is not None and event.subject is not None:
            yield Remark(
                time=time,
                author=event.author,
                action=NOTED,
                about=event.about,
                subject=event.subject,
                run=envelope.run,
                text=event.text or None,
                labels=event.labels,
                labels_removed=event.labels_removed,
            )
    elif isinstance(event, IncidentAcknowledged):
        yield Remark(
            time=time,
            author=event.author,
            action=ACKNOWLEDGED,
            about=INCIDENT,
            subject=event.incident,
            run=envelope.run,
        )
    elif isinstance(event, IncidentCorrected):
        yield Remark(
            time=time,
            author=event.author,
            action=CORRECTED,
            about=INCIDENT,
            subject=event.incident,
            run=envelope.run,
            text=event.reason,
            cause=event.cause,
        )
