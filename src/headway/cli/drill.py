"""`headway drill`: one fault on a real training, and what Headway says of it."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from headway.cli.drill_plan import FAULTS, LAYERS, PLACES, SAVES, Drill, left_out, usual_place
from headway.cli.refusal import Refusal


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "drill",
        help="break a real training on purpose, and see what is told of it",
        description="Train a small FSDP model on two ranks of this machine under a recovery "
        "layer, break it once, and print the ledger and the incident. The same seed breaks it at "
        "the same step. See docs/drills.md.",
    )
    parser.add_argument(
        "--layer",
        required=True,
        choices=LAYERS,
        help=f"What brings the training back: {', '.join(LAYERS)}.",
    )
    parser.add_argument(
        "--fault",
        choices=FAULTS,
        default="none",
        help=f"What happens to it: {', '.join(FAULTS)}. Default: none.",
    )
    parser.add_argument(
        "--at",
        choices=PLACES,
        help=f"Where the fault strikes: {', '.join(PLACES)}. Default: step; save for a fault of a "
        "checkpoint.",
    )
    parser.add_argument(
        "--save",
        choices=SAVES,
        default="async",
        help="Write checkpoints while training waits, or beside it. Default: async.",
    )
    parser.add_argument(
        "--seed", type=int, default=42, metavar="N", help="Seed of the step. Default: 42."
    )
    parser.add_argument(
        "--kernel-line",
        action="append",
        default=[],
        metavar="LINE",
        help="Line of the kernel, such as `NVRM: Xid (PCI:0000:1b:00): 79, ...`, that the agent of "
        "the struck rank's node reads when the fault strikes. May be given several times.",
    )
    parser.add_argument(
        "--kernel-line-after",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="Time from the fault to the stamp of these lines; negative: before it. Default: 0.",
    )
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object as the last line."
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="PATH",
        help="Folder for database, spools, checkpoints and logs. Default: a temporary folder that "
        "is removed.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run one drill from start to end."""
    at = arguments.at or usual_place(arguments.fault)
    drill = Drill(
        layer=arguments.layer,
        fault=arguments.fault,
        at=at,
        save=arguments.save,
        seed=arguments.seed,
        kernel_lines=tuple(arguments.kernel_line),
        kernel_lines_after=arguments.kernel_line_after,
    )
    reason = left_out(drill.layer, drill.fault, drill.at)
    if reason is not None:
        raise Refusal(f"no drill of {drill.fault} at {at} under {drill.layer}", reason)
    if drill.kernel_lines and drill.fault == "none":
        raise Refusal("a kernel line comes with a fault", "name one with --fault")
    from headway.cli.drill_layers import check
    from headway.cli.drill_run import DrillRun, told
    from headway.cli.incident_text import print_incident
    from headway.cli.ledger_text import print_report
    from headway.cli.processes import adopt_orphans, end_descendants
    from headway.cli.staging import ignore_signals, signals_raise, state_folder

    check(drill)
    adopt_orphans()
    with signals_raise(), state_folder("drill", arguments.keep, once=True) as folder:
        staged = DrillRun(drill, folder)
        try:
            report, incidents = staged.run()
            output = sys.stderr if arguments.json else None
            print_report(report, output)
            for incident in incidents:
                print_incident(incident, output)
            if arguments.json:
                print(json.dumps(told(drill, report), sort_keys=True), flush=True)
        finally:
            ignore_signals()
            staged.stop()
            end_descendants()
            staged.close()
    return 0
