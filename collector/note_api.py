"""Notes and labels over HTTP: on runs, incidents, nodes and the configurations of attempts.

A note becomes an event, stored before it is answered; it cannot be changed, only followed.
"""

from dataclasses import asdict, dataclass
from typing import Annotated

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint, NotKnown
from headway.collector.incident_api import found_incident
from headway.collector.paging import Cursor, Limit, page
from headway.collector.remarks import Remark
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.events import NOTE_SUBJECTS, Note

LONGEST_TEXT = 10_000
"""Most characters of a note."""
LONGEST_LABEL = 100
"""Most characters of a label."""
_MOST_LABELS = 20
_TAKE_LESS = "Keep what is long elsewhere, and note where."


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfNotes:
    """A question about what people said."""

    about: Annotated[
        str | None, Asked(sentence="Only what is about such a thing.", choices=NOTE_SUBJECTS)
    ] = None
    subject: Annotated[
        str | None, Asked(sentence="Only what is about the run, incident, node or attempt.")
    ] = None
    run: Annotated[
        str | None, Asked(sentence="Only what is about this run and all in it, by its id.")
    ] = None
    search: Annotated[str | None, Asked(sentence="Only what holds these words.")] = None
    limit: Limit = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNote:
    """Somebody notes something, or gives or takes labels."""

    about: Annotated[str, Asked(sentence="What kind of thing it is about.", choices=NOTE_SUBJECTS)]
    subject: Annotated[
        str, Asked(sentence="Name the run, incident, node, or attempt of the configuration.")
    ]
    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]
    text: Annotated[str | None, Asked(sentence="Its words; may be left out with labels.")] = None
    label: Annotated[tuple[str, ...], Asked(sentence="Labels that it gets.")] = ()
    remove_label: Annotated[tuple[str, ...], Asked(sentence="Labels that it loses.")] = ()


def notes(service: Service, asked: PageOfNotes) -> Answer:
    """What people said, the newest first: notes, labels, acknowledgements and corrections."""
    meant = [
        remark
        for remark in service.remarks.all()
        if (asked.about is None or remark.about == asked.about)
        and (asked.subject is None or remark.subject == asked.subject)
        and (asked.run is None or remark.run == asked.run)
        and (asked.search is None or remark.says(asked.search))
    ]
    shown, after = page(meant, _place, asked)
    labels = []
    if asked.about is not None and asked.subject is not None:
        labels = service.remarks.labels(asked.about, asked.subject)
    return Answer(content=lambda: {"notes": [*map(asdict, shown)], "labels": labels, "next": after})


def note(service: Service, asked: NewNote) -> Answer:
    """Record a note or labels; answers with all that was said about the same, the oldest first."""
    text = "" if asked.text is None else asked.text.strip()
    labels, removed = _labels(asked.label), _labels(asked.remove_label)
    if not text and not labels and not removed:
        raise BadQuestion("the note says nothing", "Give it a text or a label.")
    if len(text) > LONGEST_TEXT:
        raise BadQuestion(
            f"the note has {len(text)} characters, more than {LONGEST_TEXT}", _TAKE_LESS
        )
    run, subject = _known(service, asked)
    event = Note(
        text=text,
        author=asked.author.strip(),
        about=asked.about,
        subject=subject,
        labels=labels,
        labels_removed=removed,
    )
    service.own_events.record(service.committer, run, event)
    said = service.remarks.about(asked.about, subject)
    found = {
        "notes": [*map(asdict, said)],
        "labels": service.remarks.labels(asked.about, subject),
        "next": None,
    }
    return Answer(content=lambda: found)


def _labels(given: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(label.strip() for label in given))
    if len(found) > _MOST_LABELS or any(len(label) > LONGEST_LABEL for label in found):
        raise BadQuestion(
            f"labels are at most {_MOST_LABELS} at a time, of {LONGEST_LABEL} characters each",
            _TAKE_LESS,
        )
    return found


def _known(service: Service, asked: NewNote) -> tuple[str | None, str]:
    """Return the run and the identity of what a note is about.

    Raises:
        NotKnown: there is no such thing.
        NoSuchRun: there is no such run.
    """
    if asked.about == "run":
        run = service.ledgers.snapshot(asked.subject).run
        return run, run
    if asked.about == "incident":
        return found_incident(service, asked.subject)["run"], asked.subject
    if asked.about == "node":
        if asked.subject not in service.ledgers.nodes():
            raise NotKnown(
                f"nothing is known of a node {asked.subject!r}",
                "List the nodes with `headway nodes`.",
            )
        return None, asked.subject
    for snapshot in service.ledgers.snapshots():
        if any(one["attempt"] == asked.subject for one in snapshot.report["attempt_list"]):
            return snapshot.run, asked.subject
    raise NotKnown(
        f"no attempt {asked.subject!r} is known here",
        "A configuration is named by its attempt: `headway ask what-changed` lists them.",
    )


def _place(remark: Remark) -> tuple[int, str, str, str]:
    return -remark.time, remark.about, remark.subject, remark.action


_NOTES = object_of(notes=list_of(schemas.REMARK), labels=list_of(schemas.TEXT), next=schemas.NEXT)
ENDPOINTS = (
    Endpoint.get("/api/v1/notes", notes, _NOTES),
    Endpoint.post("/api/v1/notes", note, _NOTES),
)
