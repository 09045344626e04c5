"""Finding what was written, seen and configured by words, in any script.

A word matches where a word of the text begins with it, whatever its case; in scripts that put no
spaces between words, wherever it stands. Rare words weigh more than frequent ones, those of a
title twice. What stands in quotes must be there as it is.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KINDS = ("configuration", "incident", "note", "result")
"""What can be found: changed settings, incidents with their evidence, notes, attached results."""
MOST_WORDS = 32
"""Words of a question that count; the others are left out."""
_LONGEST_LINE = 1_000
_MOST_LINES = 200
_WORTH_SHOWING = 0.5
"""Part of the best score from which on something is shown."""
_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201d]+)\u201d|\u00ab([^\u00bb]+)\u00bb')
_COMMON_TEXT = """
a about after all an and any are as at be been before but by can change changed changes did do does
ever for from had happen happened happens has have how i in is it its last me most much my of off on
or our set since so than that the their them then there these they this time to was we were what
when where which while who why will with you
"""
_COMMON = frozenset(_COMMON_TEXT.split())
"""Words of questions that tell nothing of what is looked for."""


@dataclass(frozen=True, slots=True)
class Document:
    """Something that can be found; the time is UTC ns, `lines` are shown where they match.

    `subject` is the identity of what to open: an incident, an attempt, or what a note is about.
    """

    kind: str
    run: str | None
    about: str
    subject: str
    time: int
    title: str
    lines: tuple[str, ...]
    terms: str
    title_terms: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found, with the line that says most of what was asked."""

    document: Document
    score: float
    line: str


@dataclass(frozen=True, slots=True)
class Question:
    """Words and quoted phrases that are looked for, as `terms_of` spells them."""

    words: tuple[str, ...]
    phrases: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return not self.words and not self.phrases


def document(
    kind: str,
    run: str | None,
    about: str,
    subject: str,
    time: int,
    title: str,
    lines: Iterable[str],
) -> Document:
    """Return a document with its words; of very long ones only the beginning."""
    kept = tuple(
        line[:_LONGEST_LINE] for _, line in zip(range(_MOST_LINES), lines, strict=False) if line
    )
    title_terms = terms_of(title)
    return Document(
        kind=kind,
        run=run,
        about=about,
        subject=subject,
        time=time,
        title=title,
        lines=kept,
        terms=title_terms + "".join(map(terms_of, kept)),
        title_terms=title_terms,
    )


def terms_of(text: str) -> str:
    """Return the words of a text, each after a space: `NCCL_timeout=30` is ` nccl timeout 30`."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(f" {word}" for word in _WORD.findall(folded))


def question_of(text: str) -> Question:
    """Return what a text asks for: its telling words and its quoted phrases."""
    phrases = tuple(terms for found in _QUOTED.findall(text) if (terms := terms_of("".join(found))))
    words = tuple(dict.fromkeys(terms_of(_QUOTED.sub(" ", text)).split()))
    telling = tuple(word for word in words if word not in _COMMON)
    # who asks for nothing but common words means them
    chosen = telling if telling or phrases else words
    return Question(words=tuple(map(_stem, chosen[:MOST_WORDS])), phrases=phrases)


def found(documents: Sequence[Document], question: Question) -> list[Hit]:
    """Return the documents that answer best, the newest first among equals."""
    left = [one for one in documents if all(_says(one.terms, each) for each in question.phrases)]
    if not question.words:
        hits = [Hit(one, 1.0, _line(one, question)) for one in left]
    else:
        weights = {
            word: math.log(
                1 + len(documents) / max(sum(_holds(one.terms, word) for one in left), 1)
            )
            for word in question.words
        }
        scored = [
            (sum(weight * _places(one, word) for word, weight in weights.items()), one)
            for one in left
        ]
        best = max((score for score, _ in scored), default=0.0)
        hits = [
            Hit(one, score, _line(one, question))
            for score, one in scored
            if score > 0 and score >= best * _WORTH_SHOWING
        ]
    hits.sort(key=lambda hit: (-hit.score, -hit.document.time, hit.document.subject))
    return hits


def _places(one: Document, word: str) -> int:
    return _holds(one.terms, word) + _holds(one.title_terms, word)


def _holds(terms: str, word: str) -> bool:
    return (f" {word}" if word.isascii() else word) in terms


def _says(terms: str, phrase: str) -> bool:
    """Whether a phrase is there, as whole words where a script puts spaces between them."""
    first = phrase if phrase[1].isascii() else phrase[1:]
    return (f"{first} " if phrase[-1].isascii() else first) in f"{terms} "


def _stem(word: str) -> str:
    """Return a word without the s of a plural, which matches both."""
    if word.isascii() and len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _line(one: Document, question: Question) -> str:
    """Return the line that holds most of what is looked for, the title where none holds as much."""

    def held(line: str) -> int:
        terms = terms_of(line)
        return sum(_holds(terms, word) for word in question.words) + sum(
            _says(terms, phrase) for phrase in question.phrases
        )

    return max((*one.lines, one.title), key=held)
