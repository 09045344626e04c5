"""How soon a page is delivered: `scripts/bench alerts [--runs N] [--json]`."""

import argparse
import json
import sys

from benchmarks.paging.delivery import delivery


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench alerts", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="pages of each way; default 5")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = delivery(options.runs)
    if options.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            words = ", ".join(f"{key} {value}" for key, value in figures.items())
            print(f"{name}: {words}")
    sys.exit(0 if all(one["met"] for one in found.values()) else 1)


if __name__ == "__main__":
    main()
