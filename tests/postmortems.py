"""Post-mortems of a text timeline, without a collector."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.events import Envelope
from headway.ledger import Ledger, ledger
from headway.postmortem.composing import Answers, postmortem
from headway.postmortem.model import Postmortem
from headway.report import report
from timeline import at, timeline
from worked_example import KILLED


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
