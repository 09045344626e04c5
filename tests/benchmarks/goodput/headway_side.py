"""Headway asked about one case: prints its costs as JSON.

The events are those that its recorder and agent would send: steps in blocks of up to 1,000, cut
by every other record, or each alone (`per_step`); decoded (`events`) or in the collector's
database.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.goodput.measure import Cost, cheapest, peak_mb, resident_mb
from benchmarks.goodput.runs import (
    CASES,
    EVALUATION,
    LOAD,
    SAVE,
    SECOND,
    START_UP,
    TrainingAttempt,
    attempts,
    productive,
)
from headway.events import (
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Envelope,
    Event,
    PhaseEnded,
    RankExited,
    Resumed,
    RunStarted,
    Steps,
)
from headway.ledger import Ledger, Timeline
from headway.ledger.steps import BLOCK
from headway.report import report
from headway.step_blocks import VERSION
from headway.storage.store import EventStore

RUN = "bench-1"
AT_ONCE = 1000


def main() -> None:
    """Measure the case, source and step records that are named."""
    case, source, records = sys.argv[1:]
    imported = resident_mb()
    run = list(attempts(CASES[case]))
    per_step = records == "per_step"
    envelopes = list(run_envelopes(run, 1 if per_step else AT_ONCE))
    told = resident_mb()
    as_of = run[-1].busy_until + SECOND
    if source == "database":
        _print({"first_s": _from_database(envelopes, as_of).cpu_s})
        return
    first, (timeline, ledger) = cheapest(lambda _: _ask(envelopes, as_of))
    answered = peak_mb()
    restarts, found = len(ledger.attempts) - 1, ledger.categories["productive"]
    numbers = iter(range(10**6))
    polled, _ = cheapest(lambda _: _poll(timeline, run[-1], next(numbers)))
    reported, _ = cheapest(lambda _: report(_poll(timeline, run[-1], next(numbers))))
    _print(
        {
            "first_s": first.cpu_s,
            "poll_s": polled.cpu_s,
            "poll_runs": polled.runs,
            "report_poll_s": reported.cpu_s,
            "input_mb": told - imported,
            "added_mb": answered - told,
            "import_mb": imported,
            "restarts": restarts,
            "productive_s": found / SECOND,
            "true_productive_s": productive(run) / SECOND,
        }
    )


def run_envelopes(run: list[TrainingAttempt], most: int) -> Iterator[Envelope]:
    """Yield the envelopes of a run in order; `most` is the number of steps in one."""
    yield _envelope("agent", 1, run[0].start, RunStarted(run_name="bench"))
    exits = 1
    for attempt in run:
        yield from attempt_envelopes(attempt, most)
        if attempt.end is not None:
            exits += 1
            exited = RankExited(exit_code=1, by="itself")
            yield _envelope("agent", exits, attempt.end, exited, attempt.number)


def attempt_envelopes(attempt: TrainingAttempt, most: int) -> Iterator[Envelope]:
    """Yield the envelopes of one rank in one attempt."""
    producer, sequence = f"attempt {attempt.number}", 1
    for time, event in _before(attempt):
        yield _envelope(producer, sequence, time, event, attempt.number)
        sequence += 1
    position = 0
    for row, time, event in _between(attempt):
        for end in (*range(position + most, row, most), row):
            if position < end:
                yield _steps(attempt, position, end, sequence)
                sequence += end - position
                position = end
        if event is not None:
            yield _envelope(producer, sequence, time, event, attempt.number)
            sequence += 1


def next_step(last: TrainingAttempt, number: int) -> Envelope:
    """Return the record of a step after those of the last attempt."""
    start = last.busy_until + 2 * SECOND * number
    row = np.array([(start, 2 * SECOND, 0, np.nan, -1)], BLOCK)
    completed = last.completed_before + len(last.starts) + number + 1
    event = Steps(first_step=completed, version=VERSION, packed=row.tobytes())
    sequence = 10**9 + number
    return _envelope(f"attempt {last.number}", sequence, start + 2 * SECOND, event, last.number)


def _before(attempt: TrainingAttempt) -> Iterator[tuple[int, Event]]:
    yield attempt.start, AttemptStarted(layer="scheduler", world_size=1)
    yield attempt.start + START_UP, PhaseEnded(phase="model", duration=START_UP)
    yield attempt.loaded, PhaseEnded(phase="checkpoint_load", duration=LOAD)
    name = f"step-{attempt.completed_before}" if attempt.completed_before else None
    yield attempt.loaded, Resumed(completed=attempt.completed_before, checkpoint=name)


def _between(attempt: TrainingAttempt) -> Iterator[tuple[int, int, Event | None]]:
    """Yield how many steps came before each event, its time, and the event; last the end."""
    events: list[tuple[int, int, Event]] = []
    for step, begin in attempt.saves:
        name, row = f"step-{step}", step - attempt.completed_before
        scheduled = CheckpointScheduled(checkpoint=name, step=step, blocking=SAVE)
        events.append((row, begin + SAVE, scheduled))
        finalized = CheckpointFinalized(checkpoint=name, step=step)
        events.append((row, begin + SAVE, finalized))
    for step, begin in attempt.evaluations:
        ended = PhaseEnded(phase="evaluation", duration=EVALUATION)
        events.append((step - attempt.completed_before, begin + EVALUATION, ended))
    yield from sorted(events, key=lambda item: item[:2])
    yield len(attempt.starts), attempt.busy_until, None


def _steps(attempt: TrainingAttempt, first: int, end: int, sequence: int) -> Envelope:
    block = np.zeros(end - first, BLOCK)
    block["start"] = attempt.starts[first:end]
    block["duration"] = attempt.durations[first:end]
    block["loss"], block["samples"] = np.nan, -1
    block["data_wait"][0] = 0 if first else attempt.starts[0] - attempt.loaded
    event = Steps(
        first_step=attempt.completed_before + first + 1, version=VERSION, packed=block.tobytes()
    )
    time = int(attempt.starts[end - 1] + attempt.durations[end - 1])
    producer = f"attempt {attempt.number}"
    return _envelope(producer, sequence, time, event, attempt.number, end - first)


def _envelope(
    producer: str,
    sequence: int,
    time: int,
    event: Event,
    attempt: int | None = None,
    count: int = 1,
) -> Envelope:
    return Envelope(
        producer=producer,
        anchor=0,
        first_sequence=sequence,
        last_sequence=sequence + count - 1,
        run=RUN,
        attempt=None if attempt is None else f"attempt {attempt}",
        rank=None if attempt is None else 0,
        node="node-0",
        boot_id="boot-0",
        wall=time,
        monotonic=time,
        event=event,
    )


def _ask(envelopes: list[Envelope], as_of: int) -> tuple[Timeline, Ledger]:
    timeline = Timeline(RUN)
    timeline.add(envelopes)
    ledger = timeline.ledger(as_of)
    _read(ledger)
    return timeline, ledger


def _poll(timeline: Timeline, last: TrainingAttempt, number: int) -> Ledger:
    envelope = next_step(last, number)
    timeline.add([envelope])
    ledger = timeline.ledger(envelope.wall + SECOND)
    _read(ledger)
    return ledger


def _read(ledger: Ledger) -> None:
    """Ask for what the other library returns: the ratio and where the rest of the time went."""
    dict(ledger.categories)
    asdict(ledger.training_goodput)


def _from_database(envelopes: list[Envelope], as_of: int) -> Cost:
    """Measure how a collector that starts answers from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.duckdb"
        store = EventStore.open(path)
        for first in range(0, len(envelopes), 10_000):
            store.append(envelopes[first : first + 10_000])
        store.close()
        envelopes.clear()
        return cheapest(lambda _: _rebuild(path, as_of))[0]


def _rebuild(path: Path, as_of: int) -> None:
    store = EventStore.open(path)
    timeline = Timeline(RUN)
    timeline.add(store.envelopes())
    _read(timeline.ledger(as_of))
    store.close()


def _print(found: dict[str, float]) -> None:
    print(json.dumps(found))


if __name__ == "__main__":
    main()
