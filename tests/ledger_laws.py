"""A random run, and all that people see of a ledger: for laws that hold for every ledger."""

import random

from oracle.random_timelines import random_as_of, random_run


def drawn(seed, without=frozenset()):
    envelopes = random_run(seed, without)
    return envelopes, random_as_of(seed, envelopes), random.Random(seed)  # noqa: S311


def told(book):
    """Everything that people see of a ledger."""
    return {
        "categories": dict(book.categories),
        "parts": book.parts,
        "between": (book.start, book.closed_at, book.state),
        "intervals": book.intervals(),
        "steps": book.steps,
        "attempts": book.attempts,
        "checkpoints": book.checkpoints,
        "flags": book.flags,
        "problems": book.problems,
        "gpu_time": book.gpu_time(),
    }
