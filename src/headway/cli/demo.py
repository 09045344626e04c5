"""`headway demo`: a real resilient training on this machine, with every service beside it."""

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
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
    from headway.cli.processes import adopt_orphans, end_descendants

    for name in ("steps", "checkpoint_every", "ranks"):
        if getattr(arguments, name) < 1:
            option = f"--{name.replace('_', '-')}"
            raise Refusal(f"{option} is {getattr(arguments, name)}", "give a number from 1 on")
    if arguments.faults < 0:
        raise Refusal(f"--faults is {arguments.faults}", "give a number from 0 on")
    adopt_orphans()
    with _signals_raise(), _folder(arguments) as folder:
        demo = Demo(folder)
        try:
            demo.start_services()
            print(f"collector: {demo.collector}", file=sys.stderr, flush=True)
            print(f"dashboard: {demo.dashboard}", file=sys.stderr, flush=True)
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
            _ignore_signals()
            demo.stop()
            end_descendants()
    return 0


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the demo through its `finally`.

    A script that starts the demo with `&` hands it a SIGINT that is ignored, and yet `kill -INT`
    must end it; a SIGHUP that is ignored is the wish of `nohup`.
    """

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, leave)
    if before[signal.SIGHUP] is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    """Let nothing interrupt the clean-up: an impatient second Ctrl-C would leave children."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder of the demo's state; a temporary one is kept when something went wrong.

    Raises:
        Refusal: the folder cannot be written, or holds something.
    """
    temporary = arguments.once and arguments.keep is None
    if temporary:
        folder = Path(tempfile.mkdtemp(prefix="headway-demo-"))
    else:
        default = Path(".headway") / "demo" / time.strftime("%Y%m%dT%H%M%S")
        folder = (default if arguments.keep is None else arguments.keep).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            used = any(folder.iterdir())
        except OSError as error:
            raise Refusal(
                f"cannot use the folder {str(folder)!r}: {error.strerror}",
                "name another with --keep",
            ) from error
        if used:
            raise Refusal(f"{str(folder)!r} is not empty", "name a new folder with --keep")
    try:
        yield folder
    except BaseException:
        print(f"state and logs: {folder}", file=sys.stderr)
        raise
    if temporary:
        shutil.rmtree(folder)
    else:
        print(f"state and logs: {folder}", file=sys.stderr)
