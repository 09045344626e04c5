"""How soon a page is delivered, and whether the right ones are: `scripts/bench alerts [--json]`.

The right ones are judged on months of simulated fleet, whose truth the simulator knows.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paging.delivery import delivery
from benchmarks.paging.page import page
from benchmarks.paging.quality import DAYS, RUNS, numbers, quality


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench alerts", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="pages of each way; default 5, 0: none")
    parser.add_argument(
        "--seeds",
        type=numbers,
        default=numbers("11-30"),
        help="months to judge, such as 11-30 (the default) or 1,4; those up to 10 are for "
        "fixing thresholds; none: ''",
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="months that are judged at a time; default 2"
    )
    parser.add_argument("--page", type=Path, help="write the judgement as a page of Markdown")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found: dict[str, Any] = delivery(options.runs) if options.runs else {}
    met = all(one["met"] for one in found.values())
    if options.seeds:
        found["quality"] = quality(options.seeds, RUNS, DAYS, options.processes)
        if options.page is not None:
            options.page.write_text(page(found["quality"]), encoding="utf-8")
    if options.json:
        print(json.dumps(found))
    else:
        for name, one in found.items():
            print(f"{name}: {_words(one)}")
    sys.exit(0 if met else 1)


def _words(figures: Mapping[str, Any]) -> str:
    plain = {
        key: value
        for key, value in figures.items()
        if isinstance(value, int | float | bool | str | None)
    }
    nested = [
        f"{key} ({_words(value)})"
        for key, value in figures.items()
        if key in ("pages", "tickets") and isinstance(value, Mapping)
    ]
    return ", ".join([*(f"{key} {value}" for key, value in plain.items()), *nested])


if __name__ == "__main__":
    main()
