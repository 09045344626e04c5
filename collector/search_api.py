"""Search over HTTP: what was noted, seen and configured, and what followed a change of settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import INTEGER, NUMBER, TEXT, list_of, object_of, optional
from headway.collector.search_index import of_remarks, of_results
from headway.collector.service import Service
from headway.report import bounds
from headway.search import KINDS, Hit, found, question_of

_MOST_INCIDENTS = 5
"""Incidents after a change that are listed; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A question in words."""

    words: Annotated[
        str,
        Asked(
            sentence="Words that are looked for; what stands in quotes as it is.",
            example="heartbeat timeout",
        ),
    ]
    kind: Annotated[
        tuple[str, ...], Asked(sentence="Only things of this kind.", choices=KINDS)
    ] = ()
    run: Annotated[
        str | None, Asked(sentence="Only what is about this run, by its id or its name.")
    ] = None
    limit: Annotated[int, Asked(sentence="Most things found.", lowest=1, highest=200)] = 20


def search(service: Service, asked: Wanted) -> Answer:
    """What was noted, seen and configured, the best answer first.

    Of a change of settings it tells the incidents until the next one, and the goodput before and
    after.
    """
    question = question_of(asked.words)
    if question.is_empty:
        raise BadQuestion(f"{asked.words!r:.80} holds no word", "Write a word or a number.")
    run = None if asked.run is None else service.ledgers.snapshot(asked.run).run
    snapshots = {
        one.run: one for one in service.ledgers.fleet().snapshots if run is None or one.run == run
    }
    documents = [
        one
        for one in (
            *(
                each
                for snapshot in snapshots.values()
                for each in service.searched.of_run(snapshot)
            ),
            *of_remarks(service.remarks.all()),
            *of_results(service.results.all()),
        )
        if (not asked.kind or one.kind in asked.kind) and (run is None or one.run == run)
    ]
    told = [*islice(_told(service, snapshots, found(documents, question)), asked.limit)]
    return Answer(content=lambda: {"searched": len(documents), "found": told})


def _told(
    service: Service, snapshots: Mapping[str, Snapshot], hits: Sequence[Hit]
) -> Iterator[dict[str, Any]]:
    """Yield what was found; of runs that merely began with the same setting, the newest."""
    alike: set[str] = set()
    for hit in hits:
        one = hit.document
        snapshot = snapshots.get(one.run or "")
        followed = None
        if one.kind == "configuration" and snapshot is not None:
            followed = _followed(service, snapshot, one.subject)
            if followed is None and hit.line in alike:
                continue
            alike.add(hit.line)
        yield _object(hit, snapshot, followed)


def _object(
    hit: Hit, snapshot: Snapshot | None, followed: Mapping[str, Any] | None
) -> dict[str, Any]:
    one = hit.document
    return {
        "kind": one.kind,
        "run": one.run,
        "about": one.about,
        "subject": one.subject,
        "attempt": None if snapshot is None else _number(snapshot, one.subject),
        "time": one.time,
        "title": one.title,
        "line": hit.line,
        "score": hit.score,
        "followed": followed,
    }


def _number(snapshot: Snapshot, attempt: str) -> int | None:
    """Return the number of an attempt; None of other things."""
    attempts: Sequence[Mapping[str, Any]] = snapshot.report["attempt_list"]
    return next((one["number"] for one in attempts if one["attempt"] == attempt), None)


def _followed(service: Service, snapshot: Snapshot, attempt: str) -> dict[str, Any] | None:
    """Return what came after a change of settings, until the next one."""
    known = service.fleet_shares.periods(snapshot)
    place = next((n for n, one in enumerate(known) if one.attempt == attempt), 0)
    if not place:
        return None
    before, after = known[place - 1], known[place]
    last = len(known) == place + 1
    met = [
        one
        for one in snapshot.report["incidents"]
        if after.start <= one["opened"] and (last or one["opened"] < after.end)
    ]
    return {
        "start": after.start,
        "end": after.end,
        "attempts": len(after.attempts),
        "attempt_before": before.attempts.start,
        "incidents": len(met),
        "first_incidents": [
            {name: one[name] for name in ("incident", "opened", "cause", "headline")}
            for one in met[:_MOST_INCIDENTS]
        ],
        "goodput_before": bounds(before.training_goodput),
        "goodput": bounds(after.training_goodput),
    }


_FOLLOWED = object_of(
    start=INTEGER,
    end=INTEGER,
    attempts=INTEGER,
    attempt_before=INTEGER,
    incidents=INTEGER,
    first_incidents=list_of(object_of(incident=TEXT, opened=INTEGER, cause=TEXT, headline=TEXT)),
    goodput_before=schemas.RANGE,
    goodput=schemas.RANGE,
)
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/search",
        search,
        object_of(
            searched=INTEGER,
            found=list_of(
                object_of(
                    kind={**TEXT, "enum": list(KINDS)},
                    run=optional(TEXT),
                    about=TEXT,
                    subject=TEXT,
                    attempt=optional(INTEGER),
                    time=INTEGER,
                    title=TEXT,
                    line=TEXT,
                    score=NUMBER,
                    followed=optional(_FOLLOWED),
                )
            ),
        ),
    ),
)
