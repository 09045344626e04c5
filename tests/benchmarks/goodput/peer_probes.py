"""The 18 scored probes as ml-goodput-measurement is told them: prints what it answers as JSON.

The timelines are those of `oracle.probes`; steps count from 0, as its users' loops do, and only
starts can be told. A probe is right when the one figure it is about is within half a second of
the truth; the library's definition of that figure counts, not ours.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from benchmarks.goodput.peer_library import (
    MemoryLogger,
    calculator,
    recorder,
    restore_entry,
    save_entry,
    utc,
)

JOB = "probe"
EPOCH = 1_704_067_200


class Found(NamedTuple):
    """What it answers: seconds, percentages, counts."""

    productive: float
    total: float
    disruptions: int
    step: int
    goodput: float
    badput: Mapping[str, Any]


class Run:
    """A job as its users record it; times in seconds from the origin."""

    def __init__(self) -> None:
        self.logger = MemoryLogger()
        self._recorder = recorder(self.logger, JOB)

    def start(self, at: float) -> None:
        """The job's process started."""
        self._recorder.record_job_start_time(utc(at))

    def end(self, at: float) -> None:
        """The job's process said that it ended."""
        self._recorder.record_job_end_time(utc(at))

    def steps(self, first: int, starts: Iterable[float]) -> None:
        """Steps from a number on began at these times."""
        for number, at in enumerate(starts, start=first):
            self._recorder.record_step_start_time(number, utc(at))

    def initialization(self, begin: float, end: float | None) -> None:
        """The accelerators were initialized."""
        self._recorder.record_tpu_init_start_time(utc(begin))
        if end is not None:
            self._recorder.record_tpu_init_end_time(utc(end))

    def preparation(self, begin: float, end: float) -> None:
        """Training was prepared."""
        self._recorder.record_training_preparation_start_time(utc(begin))
        self._recorder.record_training_preparation_end_time(utc(end))

    def data(self, begin: float, end: float) -> None:
        """A batch was loaded."""
        self._recorder.record_data_loading_start_time(utc(begin))
        self._recorder.record_data_loading_end_time(utc(end))

    def evaluation(self, begin: float, end: float) -> None:
        """An evaluation ran."""
        self._recorder.record_custom_badput_event_start_time(utc(begin), "evaluation")
        self._recorder.record_custom_badput_event_end_time(utc(end), "evaluation")

    def answer(self, asked: Any = None) -> Found:
        """Ask its calculator, by default a new one."""
        asked = asked or calculator(self.logger, job=JOB)
        goodput, _, step = asked.get_job_goodput(include_badput_breakdown=True)
        info = asked._goodput_cache.get_goodput_info()
        return Found(
            productive=info.total_productive_time,
            total=info.total_elapsed_time,
            disruptions=info.number_of_disruptions,
            step=step,
            goodput=goodput,
            badput={kind.name: value for kind, value in info.total_unproductive_time.items()},
        )


def tens(begin: float, count: int) -> list[float]:
    """Return the starts of steps of 10 s."""
    return [begin + 10 * number for number in range(count)]


def _crash() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 15))
    run.start(250)
    run.steps(10, tens(260, 10))
    run.end(360)
    return run.answer()


def _preempted() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 10))
    run.start(3700)
    run.steps(10, tens(3730, 10))
    run.end(3830)
    return run.answer()


def _from_zero() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 50))
    run.start(560)
    run.steps(0, tens(560, 20))
    run.end(760)
    return run.answer()


def _deeper() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 50))
    run.start(560)
    run.steps(40, tens(560, 10))
    run.start(720)
    run.steps(30, tens(720, 70))
    run.end(1420)
    return run.answer()


def _init_loop() -> Found:
    run = Run()
    run.start(0)
    run.initialization(0, 20)
    run.steps(0, tens(20, 25))
    for number in range(10):
        run.start(300 + 70 * number)
        run.initialization(300 + 70 * number, None)
    run.start(1000)
    run.initialization(1000, 1020)
    run.steps(20, tens(1020, 30))
    run.end(1320)
    return run.answer()


def _slow_step_loop() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 6))
    now = 160
    for _ in range(11):
        now += 20
        run.start(now)
        run.steps(5, [now])
        now += 110
    run.steps(6, tens(now, 14))
    run.end(now + 140)
    return run.answer()


def _every_tenth() -> Found:
    run = Run()
    run.start(0)
    for number in range(10):
        run.steps(10 * number, [100 * number])
    run.end(1000)
    return run.answer()


def _ended_by_handler() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 20))
    run.end(200)
    run.start(300)
    run.steps(18, tens(300, 12))
    return run.answer()


def _saves_rolled_back() -> Found:
    run = Run()
    run.start(0)
    now = 0.0
    for number in range(10):
        run.steps(10 * number, tens(now, 10))
        now += 100
        run.logger.entries.append(save_entry(JOB, 10 * number + 9, EPOCH + now, 20))
        now += 20
    run.start(1260)
    run.steps(5, tens(1260, 10))
    run.end(1360)
    return run.answer()


def _nested_load() -> Found:
    run = Run()
    run.start(0)
    run.preparation(0, 100)
    run.logger.entries.append(restore_entry(JOB, 0, EPOCH + 10, 80))
    run.steps(0, tens(100, 5))
    run.end(150)
    return run.answer()


def _waiting_for_data() -> Found:
    run = Run()
    run.start(0)
    for number in range(40):
        run.data(25 * number, 25 * number + 20)
        run.steps(number, [25 * number + 20])
    run.end(1000)
    return run.answer()


def _behind(seconds: float) -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 370))
    run.start(3820 - seconds)
    run.steps(360, tens(3820 - seconds, 360))
    run.end(7420 - seconds)
    return run.answer()


def _evaluation_across_steps() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, [*tens(0, 5), 65, *tens(88, 4)])
    run.evaluation(50, 80)
    run.end(128)
    return run.answer()


def _monitor_restarted() -> Found:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 10))
    first = calculator(run.logger, job=JOB)
    run.answer(first)
    run.steps(10, tens(100, 90))
    run.end(1000)
    return run.answer(_on_the_same_host(run, first))


def _same_name() -> Found:
    yesterday = Run()
    yesterday.start(-86_400)
    yesterday.steps(0, tens(-86_400, 10))
    first = calculator(yesterday.logger, job=JOB)
    yesterday.answer(first)
    run = Run()
    run.start(0)
    run.steps(0, tens(0, 10))
    run.end(100)
    return run.answer(_on_the_same_host(run, first))


def _on_the_same_host(run: Run, first: Any) -> Any:
    return calculator(run.logger, first._goodput_cache._cache_dir, JOB)


def _plain(steps: int) -> Run:
    run = Run()
    run.start(0)
    run.steps(0, tens(0, steps))
    run.end(10 * steps)
    return run


def _late() -> Found:
    run = _plain(20)
    entries = run.logger.entries
    run.logger.entries = entries[:6] + entries[11:] + entries[6:11]
    return run.answer()


def _twice() -> Found:
    run = _plain(20)
    run.logger.entries.append(run.logger.entries[9])
    return run.answer()


def _custom(found: Found) -> float:
    return sum(found.badput.get("CUSTOM_BADPUT_EVENTS", {}).values())


def _sum(found: Found) -> float:
    """Return what it gave away in all, without what it calls asynchronous."""
    flat = (v for k, v in found.badput.items() if k != "DATA_LOADING_ASYNC" and v)
    return found.productive + sum(sum(v.values()) if isinstance(v, dict) else v for v in flat)


PROBES: Mapping[str, tuple[Callable[[], Found], Callable[[Found], float], float]] = {
    "01": (_crash, lambda found: found.productive, 200),
    "02": (_preempted, lambda found: found.productive, 200),
    "03": (_from_zero, lambda found: found.badput["WASTED_PROGRESS_FROM_DISRUPTION"], 500),
    "04": (_deeper, lambda found: found.productive, 1000),
    "05": (_init_loop, lambda found: found.disruptions, 11),
    # It counts a first step's excess as start-up by definition, so the restarts are what is right.
    "06": (_slow_step_loop, lambda found: found.disruptions, 11),
    "07": (_every_tenth, lambda found: found.productive, 1000),
    "08": (_ended_by_handler, lambda found: found.productive, 300),
    "09": (_saves_rolled_back, lambda found: found.productive, 150),
    "10": (_nested_load, _sum, 150),
    "11": (_waiting_for_data, lambda found: found.goodput, 20),
    "13a": (
        lambda: _behind(60),
        lambda found: found.badput["INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"],
        120,
    ),
    "13b": (
        lambda: _behind(600),
        lambda found: found.badput["INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"],
        120,
    ),
    "14": (_evaluation_across_steps, _custom, 30),
    "15": (_monitor_restarted, lambda found: found.step, 99),
    "16": (_same_name, lambda found: found.step, 9),
    "17": (_late, lambda found: found.productive, 200),
    "18": (_twice, lambda found: found.disruptions, 0),
}
"""Each probe with the figure it is about and the truth: seconds, a count, or a percentage."""


def main() -> None:
    """Ask every probe."""
    logging.disable()
    answers = {}
    for name, (build, figure, truth) in PROBES.items():
        try:
            said: float | str = float(figure(build()))
        except (ValueError, KeyError) as error:
            said = repr(error)
        right = isinstance(said, float) and abs(said - truth) < 0.5
        answers[name] = {"right": right, "said": said, "truth": truth}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
