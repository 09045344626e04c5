"""Kills collector, agent and ranks at random: `scripts/chaos --kills N [--seed S] [--json]`.

A tenth of the kills strike a real training, the others simulated producers with real recorders.
Succeeds where nothing acknowledged was lost or counted twice, every database could be opened
again, and each run's ledger equals that of the recorded truth to the nanosecond.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from chaos.run import disturb


def main() -> int:
    """Run and print; return 0 where nothing went wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=20, help="kills in all; default: 20")
    parser.add_argument("--seed", type=int, help="schedule to repeat; default: the time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"--kills must be at least 1, got {options.kills}")
    seed = time.time_ns() % 10**6 if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="headway-chaos-") as folder:
        found = disturb(Path(folder), options.kills, Random(seed))  # noqa: S311  # a schedule
    found = {"seed": seed, **found}
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:>20}  {value}")
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
