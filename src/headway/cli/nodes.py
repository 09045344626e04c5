"""`headway nodes`: which nodes and GPUs fail, how often, and what that cost."""

import argparse
import json
from typing import Any

from headway.cli.asking import add_source, source


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "nodes",
        help="list the nodes that fail, or show one with its GPUs",
        description="List the nodes of all runs, the one that surely fails most first; with NODE, "
        "show its GPUs, its runs, its health before and after each of them, and the command that "
        "keeps new work off it.",
    )
    parser.add_argument("node", metavar="NODE", nargs="?", help="Name of the node.")
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the nodes."""
    from headway.cli.node_text import print_node, print_nodes

    node: str | None = arguments.node
    with source(arguments) as client:
        found = client.nodes() if node is None else client.node(node)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    elif node is None:
        print_nodes(found)
    else:
        print_node(found)
    return 0
