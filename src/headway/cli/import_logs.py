"""`headway import FORMAT PATH...`: a run's ledger out of the logs that it left behind."""

import argparse
import gc
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.kernel_log import read_year, read_zone
from headway.cli.moments import moment
from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.importing.names import TITLES
from headway.settings import AgentSettings
from headway.wording import counted

if TYPE_CHECKING:
    from headway.cli.log_files import LogFile

_USED = ("endpoint", "token", "ca_file", "batch")
_PACKED = (".gz", ".xz", ".zst", ".bz2")
_ROTATED = re.compile(r"(\.(?:log|txt|out|err))[.-](?:\d{1,3}|\d{8})$")
_SUFFIXES = (*_PACKED, ".log", ".txt", ".out", ".err", ".jsonl", ".json", ".csv")


def add(formats: Any) -> None:
    """Declare every format of logs."""
    for name, title in TITLES.items():
        parser = formats.add_parser(
            name,
            help=title,
            description=f"Read {title} and print the ledger of the run: its goodput, where its "
            "time went, what it rolled back and why it broke. Several files, also folders and "
            "files packed by gzip, xz, zstd or bzip2, are one run, in any order. What a log does "
            "not tell stays unknown. Nothing leaves this machine without --ship.",
        )
        _options(parser)
        parser.set_defaults(run=run, profile=None)
    parser = formats.add_parser(
        "profile",
        help="logs whose lines a small file describes",
        description="Read logs whose lines a profile describes: regular expressions with named "
        "groups in a TOML file, each with an example; see docs/importing.md.",
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="The TOML file.")
    _options(parser)
    parser.set_defaults(run=run)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="A log, or a folder.")
    parser.add_argument(
        "--run",
        dest="run_name",
        metavar="NAME",
        help="Identity of the run. Default: the name of the first file without its endings.",
    )
    parser.add_argument(
        "--year",
        metavar="YEAR",
        help="Year of the first line whose stamp names none. Default: the newest that is not "
        "after the log's last change.",
    )
    parser.add_argument(
        "--zone",
        metavar="ZONE",
        default="UTC",
        help="Time zone of stamps that name none, such as Europe/Berlin or +02:00. Default: UTC.",
    )
    parser.add_argument(
        "--start",
        metavar="TIME",
        help="When a log without any stamp begins: an ISO time. Default: unknown.",
    )
    parser.add_argument("--json", action="store_true", help="Print the report as one JSON object.")
    parser.add_argument(
        "--ship",
        action="store_true",
        help="Also send the events to the running collector; what it has from an earlier import "
        "is not counted twice.",
    )
    add_settings(parser, AgentSettings, only=_USED)


def run(arguments: argparse.Namespace) -> int:
    """Read the logs, print the report, and send the events where that is wanted."""
    from headway.cli.import_report import report_of
    from headway.cli.import_sources import Sources
    from headway.cli.import_unknown import tells_steps
    from headway.cli.log_files import log_files
    from headway.cli.log_parts import parts
    from headway.cli.log_profiles import described
    from headway.importing.formats import rules_for

    zone, year = read_zone(arguments.zone), read_year(arguments.year)
    start = _start(arguments.start)
    files = log_files(arguments.paths)
    readable = [one for one in files if one.skipped is None]
    if not readable:
        raise Refusal(
            f"there is no text in what was named: {files[0].path} ({files[0].skipped})",
            "name the text that a training or a launcher printed",
        )
    readable = parts(readable, zone, year)
    name = arguments.run_name or _run_name(readable[0].path)
    if not name.strip():
        raise Refusal("the name of the run is empty", "give one with --run")
    bar = _Bar(readable)
    if arguments.profile is None:
        formats, interval = rules_for(arguments.format), None
    else:
        formats, interval = described(arguments.profile, zone)
    sources = Sources(
        readable,
        formats,
        zone=zone,
        year=year,
        over=bar.over,
        interval=interval,
        growing=arguments.ship,
    )
    with _no_collection():
        runs = sources.read(name, start)
    bar.end()
    result = {"format": arguments.format, **sources.summary(files)}
    if not runs and result["formats"].get("huggingface"):
        raise Refusal(
            "the lines of Hugging Face's Trainer tell losses, and none tells a step or a time",
            "name also what it printed to standard error, where its bar counts the steps, or "
            "trainer_state.json of its newest checkpoint",
        )
    if not runs:
        raise Refusal(
            f"no line of {counted(result['lines']['total'], 'line')} tells of a training",
            "name its format, or describe its lines in a profile: see docs/importing.md",
        )
    with_steps = tells_steps(result["formats"])
    result["runs"] = [report_of(one, with_steps=with_steps) for one in runs]
    if arguments.ship:
        from headway.cli.import_shipping import ship

        result["shipped"] = ship(
            runs,
            settings_of(AgentSettings, arguments),
            dated=start is not None,
            named=arguments.run_name is not None,
        )
    if arguments.json:
        print(json.dumps(result, sort_keys=True, allow_nan=False))
    else:
        from headway.cli.import_text import print_import

        print_import(result)
    return 0


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no cycles of garbage: lines make none, and looking takes a tenth of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _start(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return moment(given, time.time_ns())
    except ValueError as error:
        raise Refusal(str(error)) from error


def _run_name(path: Path) -> str:
    name = path.name
    while True:
        shorter = _ROTATED.sub(r"\1", name)
        for suffix in _SUFFIXES:
            shorter = shorter.removesuffix(suffix)
        if shorter in (name, ""):
            return name
        name = shorter


class _Bar:
    """How much of the files is read, in one line on a terminal."""

    def __init__(self, files: "Sequence[LogFile]") -> None:
        self._files = files
        self._whole = sum(one.size for one in files) or 1
        self._shows = sys.stderr.isatty()
        self._began = self._next = time.monotonic()

    def over(self, file: "LogFile") -> Iterator[str]:
        """Pass on the pieces of a file and show how far it is."""
        for piece in file.pieces():
            if self._shows and time.monotonic() > self._next:
                self._show()
            yield piece

    def _show(self) -> None:
        now = time.monotonic()
        done = sum(one.read for one in self._files)
        speed = done / 1e6 / max(now - self._began, 0.01)
        print(
            f"\r\033[K{100 * done // self._whole} % of {self._whole / 1e6:,.1f} MB, "
            f"{speed:.0f} MB/s",
            end="",
            file=sys.stderr,
            flush=True,
        )
        self._next = now + 0.2

    def end(self) -> None:
        """Clear the line."""
        if self._shows:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
