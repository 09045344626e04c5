"""Saved questions over HTTP: list them, and ask one with values for its parameters."""

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint, NotKnown
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.collector.sql_api import ROWS, Counted, Rows, rows_of
from headway.storage.questions import QUESTIONS, QuestionRefused, bound, parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class AllQuestions:
    """A question about what can be asked by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuestion:
    """One saved question."""

    question: Annotated[str, Asked(sentence="Name of the question.")]
    parameter: Annotated[
        tuple[str, ...],
        Asked(
            sentence="Value of a parameter as name=value; times in UTC ns.",
            example="cause=gpu_fault",
        ),
    ] = ()
    counted: Counted = 0
    limit: Rows = 10_000


def questions(service: Service, asked: AllQuestions) -> Answer:
    """Saved questions with their parameters and their SQL."""
    found = [asdict(question) for question in QUESTIONS.values()]
    return Answer(content=lambda: {"questions": found})


def question(service: Service, asked: SavedQuestion) -> Answer:
    """The answer to a saved question."""
    found = QUESTIONS.get(asked.question)
    if found is None:
        raise NotKnown(
            f"there is no saved question {asked.question!r}",
            f"These are: {', '.join(QUESTIONS)}.",
        )
    try:
        values = bound(found, parsed(asked.parameter))
    except QuestionRefused as error:
        raise BadQuestion(str(error), error.next_step) from error
    answer = service.store.reading.sql.ask(
        found.sql, asked.limit, values, counted=bool(asked.counted)
    )
    # How long it took is told, too, but makes it no other answer.
    return replace(rows_of(answer), version=_digest(answer.table, answer.total))


def _digest(table: pyarrow.Table, total: int | None) -> str:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found = hashlib.blake2b(sink.getvalue(), digest_size=12)
    found.update(repr(total).encode())
    return found.hexdigest()


_PARAMETER = object_of(
    name=schemas.TEXT,
    sentence=schemas.TEXT,
    kind=schemas.TEXT,
    default=schemas.ANYTHING,
    choices=list_of(schemas.TEXT),
    lowest=schemas.INTEGER,
    highest=schemas.INTEGER,
)
_QUESTION = object_of(
    name=schemas.TEXT,
    title=schemas.TEXT,
    asks=schemas.TEXT,
    notes=schemas.TEXT,
    parameters=list_of(_PARAMETER),
    sql=schemas.TEXT,
)
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/questions",
        questions,
        object_of(questions=list_of(_QUESTION)),
    ),
    Endpoint.get(
        "/api/v1/questions/{question}",
        question,
        ROWS,
        bulk=True,
    ),
)
