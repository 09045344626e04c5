"""`headway import kernel-log`: the faults in a kernel's log, united and classified."""

import argparse
import gzip
import io
import json
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import IO, Any

from headway.cli.moments import moment
from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.events import GpuFault, GpuSxid, GpuXid
from headway.gpu_faults.policy import Policy, classified
from headway.kernel_log.addresses import pci_address
from headway.kernel_log.log import Finding, Report
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock
from headway.settings import AgentSettings
from headway.wording import UNKNOWN, counted

_USED = ("endpoint", "token", "ca_file", "batch", "gpu_policy")
_STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"
"""What a packed file begins with."""
_SECOND = 10**9
_EARLIEST_YEAR, _LATEST_YEAR = 1970, 2261
"""Years whose nanoseconds fit into 64 bits."""


def add(formats: Any) -> None:
    """Declare the format."""
    parser = formats.add_parser(
        "kernel-log",
        help="GPU faults and memory kills in a kernel's log",
        description="Read a kernel's log (dmesg, syslog, journalctl as text, JSON or export, or "
        "records of /dev/kmsg, also mixed, also packed by gzip) and print the GPU faults and the "
        "processes killed for memory in it. Lines that say the same within a burst are one fault. "
        "A time that a line does not say and that no option fills in stays unknown.",
    )
    parser.add_argument(
        "file", metavar="FILE", help=f"The log; {_STANDARD_INPUT} is the standard input."
    )
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object a line; times are UTC in ns."
    )
    parser.add_argument(
        "--year",
        metavar="YEAR",
        help="Year of the first line whose stamp names none. Default: the newest that is not "
        "after the file's last change.",
    )
    parser.add_argument(
        "--zone",
        metavar="ZONE",
        default="UTC",
        help="Time zone of stamps that name none, such as Europe/Berlin or +02:00. Default: UTC.",
    )
    parser.add_argument(
        "--boot",
        metavar="TIME",
        help="When the kernel started, for stamps in seconds since then: an ISO time, or 36h for "
        "36 hours ago; `uptime -s` says it on the node. Default: such times are unknown.",
    )
    parser.add_argument(
        "--ship",
        metavar="NODE",
        help="Also send the GPU faults to the running collector as those of this node. What it has "
        "from an earlier import is not counted twice; faults of unknown time are left out.",
    )
    add_settings(parser, AgentSettings, only=_USED)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the log, print what it holds, and send it where that is wanted."""
    from headway.exporter.gpus.site_policy import load_policy
    from headway.exporter.kernel.log_import import read_findings

    settings = settings_of(AgentSettings, arguments)
    policy = load_policy(settings.gpu_policy)
    boot, zone, year = _boot(arguments.boot), read_zone(arguments.zone), read_year(arguments.year)
    found: list[Finding] = []
    with _opened(arguments.file) as (log, newest):
        for finding in read_findings(log, Clock(boot=boot, zone=zone, year=year, latest=newest)):
            if arguments.json:
                print(json.dumps(json_object(finding, policy), sort_keys=True))
            if arguments.ship is not None or not arguments.json:
                found.append(finding)
    if not arguments.json:
        _print(found, policy, arguments.file)
    if arguments.ship is not None:
        _ship(found, policy, arguments.ship, settings)
    return 0


def json_object(finding: Finding, policy: Policy) -> Mapping[str, Any]:
    """Return a finding as it is printed; beside the first keys only what is known is there."""
    report = finding.report
    if isinstance(report, OomKill):
        process, judged = report.name, None
    else:
        judged = classified(report, policy)
        process = getattr(report, "process", None)
    row: dict[str, Any] = {
        "kind": _kind(report),
        "code": getattr(report, "code", None),
        "device": _device(report),
        "time": finding.time,
        "class": None if judged is None else judged.classification,
        "policy": None if judged is None else judged.policy,
        "line": finding.line,
        "process": process,
        "process_id": getattr(report, "process_id", None),
        "repeats": finding.repeats,
    }
    if finding.monotonic is not None:
        row["monotonic"] = finding.monotonic
    left = {"name", "classification", *row}
    for field in fields(report):
        value = getattr(report, field.name)
        if field.name not in left and value is not None:
            row[field.name] = value
    return row


def _kind(report: Report) -> str:
    match report:
        case GpuXid():
            return "xid"
        case GpuSxid():
            return "sxid"
        case GpuFault():
            return report.kind
        case OomKill():
            return "oom_kill"


def _device(report: Report) -> str | None:
    """Return the device, unless somebody made the line's address unreadable."""
    device: str | None = getattr(report, "device", None)
    if isinstance(report, GpuXid | GpuSxid):
        return pci_address(report.device)
    return device


@contextmanager
def _opened(name: str) -> Iterator[tuple[IO[str], int]]:
    """Open the log; the number is the UTC ns after which no line can have been written."""
    with _bytes(name) as (log, newest):
        try:
            yield _text(log), newest
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Refusal(
                f"cannot unpack the log {name!r} to its end: {error}",
                "copy it again, or pipe what is left: zcat FILE | headway import kernel-log "
                f"{_STANDARD_INPUT}",
            ) from error


@contextmanager
def _bytes(name: str) -> Iterator[tuple[IO[bytes], int]]:
    if name == _STANDARD_INPUT:
        yield sys.stdin.buffer, time.time_ns()
        return
    path = Path(name)
    if path.is_char_device():
        raise Refusal(
            f"{name!r} is a device, which never ends",
            f"pipe what is in it: dmesg | headway import kernel-log {_STANDARD_INPUT}",
        )
    try:
        log = path.open("rb")
    except OSError as error:
        raise Refusal(
            f"cannot read the log {name!r}: {error.strerror}",
            "name a file such as the output of `dmesg` or `journalctl -k`, or - for the standard "
            "input; to read /var/log/kern.log one has to be root or of the group adm",
        ) from error
    with log:
        yield log, path.stat().st_mtime_ns


def _text(log: IO[bytes]) -> IO[str]:
    """Return a log as text, unpacked where its rotation packed it."""
    packed = log.peek(len(_GZIP)).startswith(_GZIP)  # type: ignore[attr-defined]  # is buffered
    plain = gzip.GzipFile(fileobj=log) if packed else log
    return io.TextIOWrapper(plain, encoding="utf-8", errors="replace", newline="\n")


def read_year(given: str | None) -> int | None:
    """Return the year of an option.

    Raises:
        Refusal: no year that a log can be of.
    """
    if given is None:
        return None
    if not given.isascii() or not given.isdigit():
        raise Refusal(f"cannot read the year {given!r}", "write it in full, such as --year 2026")
    year = int(given)
    if not _EARLIEST_YEAR <= year <= _LATEST_YEAR:
        raise Refusal(
            f"the year must be {_EARLIEST_YEAR} to {_LATEST_YEAR}, got {given!r}",
            "write it in full, such as --year 2026",
        )
    return year


def read_zone(given: str) -> tzinfo:
    """Return the time zone of an option.

    Raises:
        Refusal: no known zone.
    """
    from zoneinfo import ZoneInfo  # costs as much as all the rest of the command line

    if given == "UTC":
        return UTC
    try:
        if given[:1] in ("+", "-"):
            sign = -1 if given[0] == "-" else 1
            hours, _, minutes = given[1:].partition(":")
            return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes or 0)))
        return ZoneInfo(given)
    except (ValueError, OSError, KeyError) as error:
        raise Refusal(
            f"unknown time zone {given!r}", "write one such as UTC, Europe/Berlin or +02:00"
        ) from error


def _boot(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return moment(given, time.time_ns())
    except ValueError as error:
        raise Refusal(str(error)) from error


def _print(found: Sequence[Finding], policy: Policy, name: str) -> None:
    if not found:
        print(f"no GPU fault and no memory kill in {name}")
        return
    rows = [("time (UTC)", "fault", "device", "class", "process")]
    for finding in found:
        row = json_object(finding, policy)
        code = "" if row["code"] is None else f" {row['code']}"
        lines = "" if finding.repeats == 1 else f" x{finding.repeats}"
        process = row["process"] or row["process_id"]
        rows.append(
            (
                _moment(finding),
                row["kind"].replace("_", " ") + code + lines,
                row["device"] or UNKNOWN,
                row["class"] or "",
                "" if process is None else str(process),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print("  ".join(padded).rstrip())
    print(f"classified by the policy {policy.label}")


def _moment(finding: Finding) -> str:
    if finding.time is not None:
        return f"{datetime.fromtimestamp(finding.time // _SECOND, UTC):%Y-%m-%d %H:%M:%S}"
    if finding.monotonic is not None:
        return f"boot + {finding.monotonic / _SECOND:.1f} s"
    return UNKNOWN


def _ship(found: Sequence[Finding], policy: Policy, node: str, settings: AgentSettings) -> None:
    from headway.exporter.kernel.log_import import envelope
    from headway.exporter.shipping import REFUSED_FOLDER, NotTakenError, Shipment, Shipper

    if not node.strip():
        raise Refusal("the name of the node is empty", "write it as the agents do: `hostname`")
    made = [envelope(finding, policy, node) for finding in found]
    envelopes = [each for each in made if each is not None]
    unknown = sum(finding.time is None for finding in found)
    shipper = Shipper(
        endpoint=settings.endpoint,
        token=settings.token,
        refused=Path(REFUSED_FOLDER),
        ca_file=settings.ca_file,
    )
    sent = Shipment()
    try:
        for start in range(0, len(envelopes), settings.batch):
            sent += shipper.ship(envelopes[start : start + settings.batch])
    except NotTakenError as error:
        raise Refusal(str(error), "then run this import again; nothing is counted twice") from error
    finally:
        shipper.close()
    print(
        f"the collector at {shipper.endpoint} has {counted(sent.acknowledged, 'fault')} of node "
        f"{node}",
        file=sys.stderr,
    )
    for amount, what in (
        (unknown, "of unknown time left out; see --year and --boot"),
        (sent.refused, f"refused, kept in {REFUSED_FOLDER}"),
    ):
        if amount:
            print(f"{counted(amount, 'fault')} {what}", file=sys.stderr)
