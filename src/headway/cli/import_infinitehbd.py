"""`headway import infinitehbd`: what a year of node faults comes to, from StepFun's trace."""

import argparse
import json
from pathlib import Path
from typing import Any

from headway.cli.refusal import Refusal
from headway.wording import counted

SERVERS = 400
"""Servers that the published trace was taken of; most of them never fail in it."""


def add(formats: Any) -> None:
    """Declare the format."""
    parser = formats.add_parser(
        "infinitehbd",
        help="the node faults of StepFun's InfiniteHBD trace",
        description="Read a fault trace of StepFun's InfiniteHBD and print what it comes to: "
        "faults by class, times to repair, time down, and the nodes that fail most. Its days have "
        "no date and its nodes no run, so nothing is sent to the collector.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="The trace, a JSON file.")
    parser.add_argument(
        "--servers",
        metavar="N",
        type=int,
        default=SERVERS,
        help=f"Servers that were watched, also those without a fault. Default: {SERVERS}, "
        "as in the published trace.",
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read a trace and print it."""
    from headway.cli.infinitehbd_text import print_summary, summary
    from headway.fleet.infinitehbd import TraceError, read

    file: Path = arguments.file
    try:
        trace = read(file.read_text("utf-8"))
    except OSError as error:
        raise Refusal(
            f"cannot read {str(file)!r}: {error.strerror}", "name the JSON file of the trace"
        ) from error
    except UnicodeDecodeError as error:
        raise Refusal(f"{str(file)!r} is no text: {error}", "unpack it first") from error
    except TraceError as error:
        raise Refusal(
            f"{str(file)!r} is no fault trace: {error}",
            "fetch infinitehbd_fault_trace.json again; nothing was taken over",
        ) from error
    if arguments.servers < max(len(trace.nodes), 1):
        raise Refusal(
            f"--servers {arguments.servers} is less than the {counted(len(trace.nodes), 'node')} "
            "that the trace names",
            "give the number of all servers that were watched",
        )
    found = summary(trace, arguments.servers)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_summary(found)
    return 0
