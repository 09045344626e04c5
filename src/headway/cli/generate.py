"""`headway generate`: write the files that derive from the declarations, or check them."""

import argparse
import sys
from pathlib import Path
from typing import Any

from headway.cli.refusal import Refusal


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "generate",
        help="write the reference pages",
        description="Write the reference pages under docs/ from the declarations.",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Write nothing; exit with 1 and name the files that are stale.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(),
        metavar="PATH",
        help="Root of the checkout. Default: the current folder.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write or check every generated file."""
    from headway.cli.reference import pages

    root: Path = arguments.directory
    if not (root / "src" / "headway" / "events").is_dir():
        raise Refusal(
            f"{str(root.resolve())!r} is not a checkout of headway",
            "run the command from the root of a checkout, or name it with --directory",
        )
    stale = [
        path
        for path, text in pages().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]
    if arguments.check:
        for path in stale:
            print(f"stale: {path}; run 'headway generate' and commit", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(pages()[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0
