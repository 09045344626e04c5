"""`headway grafana`: dashboards and provisioning as files for a Grafana server."""

import argparse
from pathlib import Path
from typing import Any

from headway.cli.refusal import Refusal


def add(subparsers: Any) -> None:
    """Declare the command and what it does."""
    parser = subparsers.add_parser(
        "grafana",
        help="write dashboards and provisioning for Grafana",
        description="Files for a Grafana server, 10 or newer.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    export = actions.add_parser(
        "export",
        help="write the dashboards and how Grafana finds them",
        description="Write the dashboards and the files by which Grafana finds them and the data "
        "sources; docs/grafana.md says where each belongs.",
    )
    export.add_argument("directory", metavar="DIR", type=Path, help="Where to; made if missing.")
    export.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write every file below a folder."""
    from headway.grafana.files import files

    for path, text in files().items():
        written = arguments.directory / Path(path).relative_to("grafana")
        try:
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refusal(f"cannot write {str(written)!r}: {error}") from error
        print(written)
    return 0
