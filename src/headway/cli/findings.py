"""What `headway doctor` found: one sentence each, with how bad it is and what to do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headway.redaction import masked
from headway.settings import SettingError

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    verdict: str
    sentence: str
    next_step: str | None = None


def fine(subject: str, sentence: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(subject=subject, verdict=OK, sentence=sentence)


def warning(subject: str, sentence: str, next_step: str) -> Finding:
    """Return that something works, and not as one would want."""
    return Finding(subject=subject, verdict=WARNING, sentence=sentence, next_step=next_step)


def problem(subject: str, sentence: str, next_step: str) -> Finding:
    """Return that something does not work."""
    return Finding(subject=subject, verdict=PROBLEM, sentence=sentence, next_step=next_step)


def guarded(subject: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield what a look finds; one that breaks is itself a finding and ends no other."""
    try:
        yield from look()
    except SettingError as error:
        yield problem(subject, masked(str(error)), "correct the setting")
    except Exception as error:  # a doctor who faints helps nobody
        yield problem(
            subject,
            masked(f"could not be looked at: {type(error).__name__}: {error}"),
            "please report this",
        )
