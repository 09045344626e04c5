"""ml-goodput-measurement asked about one case: prints its costs as JSON."""

import json
import logging
import sys
from typing import Any

from benchmarks.goodput.measure import cheapest, once, peak_mb, resident_mb
from benchmarks.goodput.peer_library import (
    MemoryLogger,
    calculator,
    recorder,
    restore_entry,
    save_entry,
    utc,
)
from benchmarks.goodput.runs import (
    CASES,
    EVALUATION,
    LOAD,
    ORIGIN,
    SAVE,
    SECOND,
    START_UP,
    TrainingAttempt,
    attempts,
    productive,
)


def main() -> None:
    """Measure the case that is named."""
    logging.disable()
    imported = resident_mb()
    run = list(attempts(CASES[sys.argv[1]]))
    logger = MemoryLogger()
    for attempt in run:
        record(logger, attempt)
    told = resident_mb()
    last = run[-1]
    cpu, asked = once(lambda: ask(logger))
    answered = peak_mb()
    polled, _ = cheapest(lambda number: _poll(asked, logger, last, number))
    found = asked._goodput_cache.get_goodput_info()
    print(
        json.dumps(
            {
                "first_s": cpu,
                "poll_s": polled.cpu_s,
                "poll_runs": polled.runs,
                "input_mb": told - imported,
                "added_mb": answered - told,
                "import_mb": imported,
                "restarts": found.number_of_disruptions,
                "productive_s": found.total_productive_time,
                "true_productive_s": productive(run) / SECOND,
            }
        )
    )


def ask(logger: MemoryLogger) -> Any:
    """Return a new calculator that has answered once."""
    asked = calculator(logger)
    asked.get_job_goodput(include_badput_breakdown=True)
    return asked


def record(logger: MemoryLogger, attempt: TrainingAttempt) -> None:
    """Record one attempt in its terms; its step numbers begin at 0."""
    ours = recorder(logger)
    ours.record_job_start_time(_utc(attempt.start))
    ours.record_tpu_init_start_time(_utc(attempt.start))
    ours.record_tpu_init_end_time(_utc(attempt.start + START_UP))
    ours.record_training_preparation_start_time(_utc(attempt.start + START_UP))
    begin = (attempt.loaded - LOAD) / SECOND
    logger.entries.append(restore_entry("bench", attempt.completed_before, begin, LOAD / SECOND))
    ours.record_training_preparation_end_time(_utc(attempt.loaded))
    ours.record_data_loading_start_time(_utc(attempt.loaded))
    ours.record_data_loading_end_time(_utc(attempt.steps_began))
    saves, evaluations = dict(attempt.saves), dict(attempt.evaluations)
    for step, start in enumerate(attempt.starts.tolist(), start=attempt.completed_before):
        ours.record_step_start_time(step, _utc(start))
        if step + 1 in saves:
            saved = saves[step + 1] / SECOND
            logger.entries.append(save_entry("bench", step, saved, SAVE / SECOND))
        if step + 1 in evaluations:
            evaluated = evaluations[step + 1]
            ours.record_custom_badput_event_start_time(_utc(evaluated), "evaluation")
            ours.record_custom_badput_event_end_time(_utc(evaluated + EVALUATION), "evaluation")


def _poll(asked: Any, logger: MemoryLogger, last: TrainingAttempt, number: int) -> None:
    step = last.completed_before + len(last.starts) + number
    start = last.busy_until + 2 * SECOND * number
    recorder(logger).record_step_start_time(step, _utc(start))
    asked.get_job_goodput(include_badput_breakdown=True)


def _utc(time: int) -> Any:
    return utc((time - ORIGIN) / SECOND)


if __name__ == "__main__":
    main()
