"""Damaged requests for the decoders of OTLP: `scripts/fuzz [--inputs N] [--first SEED] [--json]`.

A decoder may take an input or refuse it with one of its own three errors, in little time and
memory; anything else is a failure, printed with the seed that makes the input again.
"""

import argparse
import json
import resource
import sys
import time
import traceback
from collections import Counter
from typing import Any

from fuzzing.inputs import Input, make
from headway.collector.otlp.bodies import (
    Body,
    MalformedRequest,
    TooLarge,
    UnknownForm,
    check_form,
)
from headway.collector.otlp_api import SIGNALS

LIMIT = 64 * 1024
"""Largest inflated body, as small as the inputs are."""
LONGEST = 1.0
"""Seconds of CPU time beyond which an input counts as a failure."""
_REFUSALS = (MalformedRequest, TooLarge, UnknownForm)


def take(given: Input) -> str:
    """Decode an input as the collector does; return what became of it."""
    try:
        check_form(given.content_type, given.encoding)
        body = Body(given.encoding, LIMIT)
        for at in range(0, len(given.content), 500):
            body.feed(given.content[at : at + 500])
        decoded = SIGNALS[f"/v1/{given.signal}"].decode(
            body.whole(), content_type=given.content_type, limit=LIMIT, received=1
        )
    except _REFUSALS as error:
        return type(error).__name__
    if decoded.quarantined:
        return "quarantined"
    return "taken" if decoded.envelopes else "refused" if decoded.num_refused else "empty"


def fuzz(first: int, count: int) -> dict[str, Any]:
    """Return what became of some inputs, the longest time one took, and the failures."""
    outcomes: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    longest = 0.0
    for seed in range(first, first + count):
        given = make(seed)
        begin = time.process_time()
        try:
            outcomes[take(given)] += 1
        except Exception:
            # Whatever it is, it is what is looked for.
            failures.append({"seed": seed, "why": traceback.format_exc(limit=-3)})
        lasted = time.process_time() - begin
        longest = max(longest, lasted)
        if lasted > LONGEST:
            failures.append({"seed": seed, "why": f"{lasted:.1f} s"})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {
        "inputs": count,
        "first": first,
        "outcomes": dict(outcomes),
        "longest_s": longest,
        "peak_memory_mb": peak,
        "failures": failures,
    }


def main() -> int:
    """Fuzz and print; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="default a million")
    parser.add_argument("--first", type=int, default=0, help="first seed; default 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = fuzz(options.first, options.inputs)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
