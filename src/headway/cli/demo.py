"""`headway demo`: a real resilient training on this machine, with every service beside it."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from headway.cli.refusal import Refusal


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "demo",
        help="train for real with faults, and watch",
        description="Train a small FSDP model with NVRx on this machine, with seeded faults, "
        "beside a collector, an agent and a dashboard; print the ledger and keep serving.",
    )
    parser.add_argument("--steps", type=int, default=300, metavar="N", help="Steps. Default: 300.")
    parser.add_argument(
        "--checkpoint-every",
        type=int,
        default=20,
        metavar="N",
        help="Steps between two checkpoints. Default: 20.",
    )
    parser.add_argument(
        "--faults", type=int, default=5, metavar="N", help="Exceptions to inject. Default: 5."
    )
    parser.add_argument(
        "--seed", type=int, default=42, metavar="N", help="Seed of the faults. Default: 42."
    )
    parser.add_argument(
        "--ranks", type=int, default=2, metavar="N", help="Ranks to train with. Default: 2."
    )
    parser.add_argument(
        "--prometheus",
        action="store_true",
        help="Run Prometheus and Alertmanager beside it, with Headway's rules and routes.",
    )
    parser.add_argument(
        "--once", action="store_true", help="Stop everything when the training has ended."
    )
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object as the last line."
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="PATH",
        help="Folder for database, spools, checkpoints and logs. Default: .headway/demo/TIME; "
        "with --once a temporary folder that is removed.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo from start to end."""
    from headway.cli.demo_run import Demo, outcome
    from headway.cli.ledger_text import print_report
    from headway.cli.monitoring import Monitoring
    from headway.cli.processes import adopt_orphans, end_descendants
    from headway.cli.staging import ignore_signals, signals_raise, state_folder

    for name in ("steps", "checkpoint_every", "ranks"):
        if getattr(arguments, name) < 1:
            option = f"--{name.replace('_', '-')}"
            raise Refusal(f"{option} is {getattr(arguments, name)}", "give a number from 1 on")
    if arguments.faults < 0:
        raise Refusal(f"--faults is {arguments.faults}", "give a number from 0 on")
    if arguments.prometheus:
        Monitoring.check_installed()
    adopt_orphans()
    with signals_raise(), state_folder("demo", arguments.keep, once=arguments.once) as folder:
        demo = Demo(folder)
        try:
            demo.start_services()
            print(f"collector: {demo.collector}", file=sys.stderr, flush=True)
            print(f"dashboard: {demo.dashboard}", file=sys.stderr, flush=True)
            if arguments.prometheus:
                beside = demo.start_monitoring()
                print(f"prometheus: {beside.prometheus}", file=sys.stderr, flush=True)
                print(f"alertmanager: {beside.alertmanager}", file=sys.stderr, flush=True)
            report = demo.train(
                steps=arguments.steps,
                checkpoint_every=arguments.checkpoint_every,
                faults=arguments.faults,
                seed=arguments.seed,
                ranks=arguments.ranks,
            )
            print_report(report, sys.stderr if arguments.json else None)
            if arguments.json:
                print(json.dumps(outcome(report), sort_keys=True), flush=True)
            if not arguments.once:
                print(f"dashboard: {demo.dashboard}  (Ctrl-C stops)", file=sys.stderr, flush=True)
                demo.serve()
        finally:
            ignore_signals()
            demo.stop()
            end_descendants()
    return 0
