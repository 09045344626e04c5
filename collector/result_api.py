"""Results of benchmarks and drills over HTTP, attached to the configurations of attempts."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint, NotKnown
from headway.collector.paging import Cursor, Limit, page
from headway.collector.results import Result, content_of
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.events import ResultAttached
from headway.redaction import masked_values

LONGEST_CONTENT = 50_000
"""Most characters of a result."""
_LONGEST_TITLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfResults:
    """A question about attached results."""

    run: Annotated[str | None, Asked(sentence="Only those of this run, by its id.")] = None
    configuration: Annotated[
        str | None, Asked(sentence="Only those of this attempt's configuration, by its id.")
    ] = None
    title: Annotated[str | None, Asked(sentence="Only those of this benchmark or drill.")] = None
    limit: Limit = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """Somebody attaches a result."""

    title: Annotated[str, Asked(sentence="Name the benchmark or drill.", example="ingest")]
    content: Annotated[str, Asked(sentence="What it printed, a JSON object as a text.")]
    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]
    run: Annotated[
        str | None, Asked(sentence="Id or name of the run whose configuration produced it.")
    ] = None
    attempt: Annotated[
        int | None, Asked(sentence="Number of the attempt; default: the newest.", lowest=1)
    ] = None
    configuration: Annotated[
        str | None, Asked(sentence="Id of the attempt, instead of the run.")
    ] = None


def results(service: Service, asked: PageOfResults) -> Answer:
    """Results of benchmarks and drills with their numbers, the newest first."""
    found = [
        one
        for one in service.results.all()
        if (asked.run is None or one.run == asked.run)
        and (asked.configuration is None or one.configuration == asked.configuration)
        and (asked.title is None or one.title == asked.title)
    ]
    shown, after = page(found, _place, asked)
    return Answer(content=lambda: {"results": [*map(_object, shown)], "next": after})


def attach(service: Service, asked: NewResult) -> Answer:
    """Keep a result with the configuration that produced it; the same one is kept once."""
    snapshot, attempt = _attempt(service, asked)
    title = asked.title.strip()
    if len(title) > _LONGEST_TITLE:
        raise BadQuestion(
            f"the title has {len(title)} characters, more than {_LONGEST_TITLE}", "Shorten it."
        )
    event = ResultAttached(
        title=title,
        content=json.dumps(_content(asked.content), ensure_ascii=False, sort_keys=True),
        configuration=attempt,
        author=asked.author.strip(),
    )
    if not _same(service, event):
        service.own_events.record(service.committer, snapshot.run, event)
    (kept,) = _same(service, event)
    return Answer(content=lambda: {"result": _object(kept)})


def _content(given: str) -> dict[str, Any]:
    """Return what was printed, without secrets.

    Raises:
        BadQuestion: no JSON object, or a long one.
    """
    if len(given) > LONGEST_CONTENT:
        raise BadQuestion(
            f"the result has {len(given)} characters, more than {LONGEST_CONTENT}",
            "Attach the figures alone, and note where the rest lies.",
        )
    try:
        return masked_values(content_of(given))
    except ValueError as error:
        raise BadQuestion(
            f"the result is no JSON object: {error!s:.80}", "Attach one object, such as {...}."
        ) from error


def _attempt(service: Service, asked: NewResult) -> tuple[Snapshot, str]:
    """Return the run and the attempt whose configuration is meant.

    Raises:
        BadQuestion: neither or both are named.
        NotKnown: there is no such attempt.
        NoSuchRun: there is no such run.
    """
    if (asked.run is None) == (asked.configuration is None):
        raise BadQuestion("of which configuration?", "Name a run, or the id of an attempt.")
    if asked.run is not None:
        snapshot = service.ledgers.snapshot(asked.run)
        attempts = snapshot.report["attempt_list"]
        number = len(attempts) if asked.attempt is None else asked.attempt
        if not 0 < number <= len(attempts):
            raise NotKnown(
                f"{snapshot.run} has {len(attempts)} attempts and no {number}",
                f"`headway report {snapshot.run}` lists them.",
            )
        return snapshot, attempts[number - 1]["attempt"]
    wanted = str(asked.configuration)
    for snapshot in service.ledgers.snapshots():
        if any(one["attempt"] == wanted for one in snapshot.report["attempt_list"]):
            return snapshot, wanted
    raise NotKnown(
        f"no attempt {wanted!r:.80} is known here",
        "A configuration is named by its attempt: `headway ask what-changed` lists them.",
    )


def _same(service: Service, event: ResultAttached) -> list[Result]:
    """Return what is attached already with the same content."""
    wanted = event.configuration, event.title, event.content
    return [
        one
        for one in service.results.all()
        if (one.configuration, one.title, one.content) == wanted
    ][:1]


def _object(one: Result) -> Mapping[str, Any]:
    return asdict(one) | {"content": json.loads(one.content)}


def _place(one: Result) -> tuple[int, str, str]:
    return -one.time, one.title, one.content


_RESULT = schemas.named(
    "Result",
    object_of(
        time=schemas.INTEGER,
        run=schemas.TEXT,
        configuration=schemas.TEXT,
        title=schemas.TEXT,
        author=optional(schemas.TEXT),
        numbers=map_of(schemas.NUMBER),
        content=map_of(schemas.ANYTHING),
    ),
)
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/results",
        results,
        object_of(results=list_of(_RESULT), next=schemas.NEXT),
    ),
    Endpoint.post(
        "/api/v1/results",
        attach,
        object_of(result=_RESULT),
    ),
)
