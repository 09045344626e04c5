"""The 18 scored probes as Headway is told them: prints which it has right as JSON.

A probe is right when every variant of it has every category to the nanosecond, and where it is
about restarts, their number and that of the failed starts.
"""

import json
from collections import defaultdict

from headway.ledger import Ledger, ledger
from oracle.probes import RESTARTS, probes

UNSCORED = "12"


def main() -> None:
    """Ask every probe."""
    answers: dict[str, bool] = defaultdict(lambda: True)
    for name, (envelopes, as_of, expected) in probes().items():
        number = name.split()[0]
        if number == UNSCORED:
            continue
        asked = ledger(envelopes, as_of)
        said = {category: time for category, time in asked.categories.items() if time}
        answers[number] &= said == expected and RESTARTS.get(name) in (None, _restarts(asked))
    print(json.dumps({number: {"right": right} for number, right in answers.items()}))


def _restarts(asked: Ledger) -> tuple[int, int]:
    failed = sum(attempt.outcome != "progressed" for attempt in asked.attempts)
    return len(asked.attempts) - 1, failed


if __name__ == "__main__":
    main()
