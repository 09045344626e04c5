"""Post-mortems of a text timeline, without a collector."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.events import Envelope
from headway.ledger import Ledger, ledger
from headway.postmortem.composing import Answers, postmortem
from headway.postmortem.model import Postmortem
from headway.report import report
from timeline import at, timeline

KILLED = """
0        allocation 4
0        attempt A launcher world=4 rank=0..3
0-574    steps 1-574 rank=0..3
500      scheduled c500 rank=0..3
500      finalized c500
574      exit rank=3 signal=9
634      launcher stop_workers
640      exit rank=0..2 signal=15 by=launcher
642      attempt B launcher world=4 rank=0..3
646-654  phase checkpoint_load rank=0..3
654      resumed 500 from=c500 rank=0..3
654-754  steps 501-600 rank=0..3
"""


def answers(envelopes: Iterable[Envelope], until: float, **others: Any) -> Answers:
    """Return what a collector would answer about the only incident of some events."""
    read = ledger(list(envelopes), at(until))
    told = report(read)
    (one,) = told["incidents"]
    return answers_of(one, told, read, **others)


def answers_of(
    one: Mapping[str, Any], told: Mapping[str, Any], read: Ledger, **others: Any
) -> Answers:
    """Return what a collector would answer about an incident of a report.

    `said` are remarks of people, `incident` what is told otherwise of it, the rest as `Answers`.
    """
    began = {attempt["attempt"]: attempt["start"] for attempt in told["attempt_list"]}
    whole = {
        **one,
        "run": told["run"],
        "run_name": told["run_name"],
        "team": None,
        "labels": [],
        "gpu_repeats_in_all_runs": None,
        "as_of": told["as_of"],
        "tries": [{**tried, "began": began.get(tried["attempt"])} for tried in one["tries"]],
        "history": others.pop("said", []),
        **others.pop("incident", {}),
    }
    return Answers(incident=whole, report=told, ledger=read, **others)


def written(text: str = KILLED, until: float = 754, **others: Any) -> Postmortem:
    """Return the post-mortem of the only incident of a timeline."""
    return postmortem(answers(timeline(text), until, **others))


def words(found: Postmortem) -> Sequence[str]:
    """Return the timeline's lines as `source: words`."""
    return [f"{line.source}: {line.words}" for line in found.timeline]
