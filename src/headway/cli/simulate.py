"""`headway simulate`: a made-up run whose true ledger is known, as events or as a comparison."""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.events import Envelope
from headway.settings import AgentSettings

if TYPE_CHECKING:
    from headway.simulate import Simulated
    from headway.simulate.plan import Plan

_USED = ("endpoint", "token", "ca_file", "batch")


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "simulate",
        help="make up a run whose true ledger is known",
        description="Make up a run whose true ledger is known. Without an option its events are "
        "printed, one JSON object a line; with one of the options it is told what became of them "
        "and how the ledger compares with the truth.",
    )
    parser.add_argument(
        "preset", metavar="PRESET", nargs="?", help="Name of the run; without it they are listed."
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="Number that fixes every chance. Default: 0."
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="Write the events to this file.")
    parser.add_argument(
        "--ship", action="store_true", help="Send the events to the running collector."
    )
    parser.add_argument(
        "--json", action="store_true", help="Print truth and ledger as one JSON object."
    )
    add_settings(parser, AgentSettings, only=_USED)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate one preset and hand its events over."""
    import sys

    from headway.simulate import simulate
    from headway.simulate.presets import PRESETS

    if arguments.preset is None:
        for name, make in PRESETS.items():
            print(f"{name:<22} {_size(make(arguments.seed))}")
        return 0
    if arguments.preset not in PRESETS:
        raise Refusal(
            f"there is no preset {arguments.preset!r}", f"choose one of: {', '.join(PRESETS)}"
        )
    made = simulate(PRESETS[arguments.preset](arguments.seed), arguments.seed)
    if arguments.out is not None:
        try:
            with arguments.out.open("w", encoding="ascii") as file:
                _write(made.events, file)
        except OSError as error:
            raise Refusal(
                f"cannot write {str(arguments.out)!r}: {error.strerror}", "name another file"
            ) from error
    if arguments.ship:
        _ship(made.events, settings_of(AgentSettings, arguments))
    if arguments.json:
        print(json.dumps(comparison(made), sort_keys=True))
    elif arguments.out is None and not arguments.ship:
        _write(made.events, sys.stdout)
    else:
        _summarise(made, arguments)
    return 0


def comparison(made: "Simulated") -> dict[str, Any]:
    """Return the true ledger beside Headway's as JSON values; durations in ns."""
    from headway.incidents import incidents
    from headway.ledger import ledger

    truth, read = made.truth, ledger(made.events, made.end)
    training, infrastructure = read.training_goodput, read.infrastructure_goodput
    steps = read.steps
    return {
        "run": made.run,
        "events": len(made.events),
        "truth": {
            "elapsed_ns": truth.elapsed,
            "categories": {name: truth.categories.get(name, 0) for name in read.categories},
            "training_goodput": truth.training_goodput,
            "infrastructure_goodput": truth.infrastructure_goodput,
            "attempts": truth.attempts,
            "failed_starts": truth.failed_starts,
            "steps": {
                "highest": truth.highest_step,
                "executed": truth.executed_steps,
                "surviving": truth.surviving_steps,
            },
            "incidents": dict(Counter(incident.cause for incident in truth.incidents)),
            "labels": dict(Counter(incident.labels[0] for incident in truth.incidents)),
        },
        "headway": {
            "elapsed_ns": read.elapsed,
            "categories": dict(read.categories),
            "training_goodput": {"low": training.low, "high": training.high},
            "infrastructure_goodput": {"low": infrastructure.low, "high": infrastructure.high},
            "attempts": len(read.attempts),
            "failed_starts": sum(item.outcome != "progressed" for item in read.attempts),
            "steps": {
                "highest": steps.highest,
                "executed": steps.executed,
                "surviving": steps.surviving,
            },
            "incidents": dict(Counter(incident.cause for incident in incidents(read))),
        },
    }


def _size(plan: "Plan") -> str:
    from headway.wording import count, counted, duration

    length = counted(plan.target_step, "step") if plan.duration is None else duration(plan.duration)
    return f"{count(plan.nodes * plan.gpus_per_node)} GPUs, {length}"


def _write(events: Sequence[Envelope], file: IO[str]) -> None:
    from headway import wire

    for envelope in events:
        file.write(json.dumps(wire.to_json(envelope)) + "\n")


def _ship(events: Sequence[Envelope], settings: AgentSettings) -> None:
    from headway.exporter.shipping import NotTakenError, Shipper

    refused = Path(tempfile.gettempdir()) / "headway-simulated-refused"
    shipper = Shipper(
        endpoint=settings.endpoint,
        token=settings.token,
        refused=refused,
        ca_file=settings.ca_file,
    )
    try:
        for first in range(0, len(events), settings.batch):
            done = shipper.ship(events[first : first + settings.batch])
            if done.refused:
                raise Refusal(
                    f"the collector refused {done.refused} records; they are kept in {refused}",
                    "its answer is in the log above; both sides should be of one version",
                )
    except NotTakenError as error:
        raise Refusal(str(error), "then run this again; nothing is counted twice") from error
    finally:
        shipper.close()


def _summarise(made: "Simulated", arguments: argparse.Namespace) -> None:
    from headway import wording

    found = comparison(made)
    truth, read = found["truth"], found["headway"]
    print(f"{made.run}: {len(made.events)} events over {wording.duration(truth['elapsed_ns'])}")
    print(f"{'category':<16} {'truth':>16} {'headway':>16}")
    for name, amount in truth["categories"].items():
        if amount or read["categories"][name]:
            own = wording.duration(read["categories"][name])
            print(f"{name:<16} {wording.duration(amount):>16} {own:>16}")
    if arguments.out is not None:
        print(f"the events are in {arguments.out}")
    if arguments.ship:
        print(f"see: headway report {made.run}")
