"""What `headway alerts` prints for people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headway.cli.tables import console_for, print_whole, table_of
from headway.wording import counted, duration

_SECOND = 10**9
_MOST_VALUES = 10
"""Series of which it is said that a condition does not hold."""


def print_alerts(state: Mapping[str, Any], *, hidden: bool) -> None:
    """Print what fires with who was told of it, then what is pending, and what is hidden."""
    console = console_for(None)
    listed = [one for one in state["alerts"] if hidden or one["hidden"] is None]
    quiet = len(state["alerts"]) - len(listed)
    handed = state["alertmanager"]
    if handed is not None:
        console.print(handed["failure"] or f"handed over to Alertmanager at {handed['address']}")
    for one in state["undelivered"]:
        if one["tries"]:
            console.print(one["words"])
    if not listed:
        console.print("nothing fires")
    keys: dict[str, list[str]] = {}
    for group in state["groups"]:
        taken = group["acknowledged_by"]
        words = f"{group['receiver']} {group['key']}" + (f", taken by {taken}" if taken else "")
        keys.setdefault(group["subject"], []).append(words)
    for one in listed:
        annotations, labels = one["annotations"], one["labels"]
        console.print(
            f"{one['state']} {labels['severity']} {one['rule']}: {annotations['summary']}"
        )
        for name in ("suspect", "stake"):
            if annotations.get(name):
                console.print(f"  {name}: {annotations[name]}")
        console.print(f"  because {one['condition']}, now {one['value']:g}")
        console.print(f"  since {_clock(one['since'])}")
        if one["fires_at"] is not None:
            console.print(f"  fires at {_clock(one['fires_at'])} if it stays")
        if one["hidden"] is not None:
            console.print(f"  nobody is told: {one['hidden']}")
        for key in keys.get(labels["subject"], ()):
            console.print(f"  told {key}")
        console.print(f"  what to do: {annotations['runbook']}")
    if quiet:
        console.print(f"{counted(quiet, 'alert')} hidden; see them with --all")


def print_explanation(found: Mapping[str, Any], subject: str | None) -> None:
    """Print what a rule compares, and where it stands."""
    console = console_for(None)
    rule = found["rule"]
    console.print(f"{rule['rule']} ({rule['severity']}, {rule['area']})")
    held = f" for {duration(rule['hold_s'] * _SECOND)}" if rule["hold_s"] else ""
    console.print(f"  fires when {rule['condition']}{held}")
    if rule["keep_s"]:
        console.print(f"  and stays for {duration(rule['keep_s'] * _SECOND)} after that")
    console.print(f"  {rule['meaning']}")
    console.print(f"  threshold: {rule['change']}")
    about = "" if subject is None else f" for {subject}"
    if not found["values"] and not found["alerts"]:
        console.print(
            f"it does not fire{about}: nothing live is measured so"
            + ("" if subject is None else "; is the name right, and has it ended?")
        )
    shown = [one for one in found["values"] if not one["holds"]]
    for one in shown[:_MOST_VALUES]:
        words = ", ".join(f"{name} {value}" for name, value in one["labels"].items())
        console.print(f"it does not hold for {words or 'the collector'}: now {one['value']:g}")
    if len(shown) > _MOST_VALUES:
        console.print(f"nor for {counted(len(shown) - _MOST_VALUES, 'other')}")
    for one in found["alerts"]:
        about = one["labels"]["subject"]
        console.print(f"{one['state']} for {about}: now {one['value']:g}")
        if one["fires_at"] is not None:
            console.print(f"  it fires at {_clock(one['fires_at'])} if the condition stays")
        if one["hidden"] is not None:
            console.print(f"  nobody is told: {one['hidden']}")


def print_ways(ways: Sequence[Mapping[str, Any]], *, sent: bool) -> None:
    """Print who would be told, or was sent a test, and why."""
    console = console_for(None)
    for one in ways:
        verb = "a test goes to" if sent else "reaches"
        console.print(f"{verb} {one['receiver']} ({one['kind']}), because {one['because']}")
        if one["muted"]:
            console.print("  not now: it is maintenance")
        if one["escalate_to"] is not None:
            after = duration(one["escalate_after_s"] * _SECOND)
            console.print(f"  and {one['escalate_to']} after {after} without acknowledgement")
    if sent:
        console.print("what became of it: headway alerts log")


def print_silences(silences: Sequence[Mapping[str, Any]]) -> None:
    """Print silences, a line each."""
    console = console_for(None)
    if not silences:
        console.print("no silences")
        return
    table = table_of(">Number", "State", "Until", "Owner", "Alerts", "Reason")
    for one in silences:
        matchers = " ".join(one["matchers"])
        until = _clock(one["ends"])
        table.add_row(
            str(one["silence"]), one["state"], until, one["owner"], matchers, one["reason"]
        )
    print_whole(console, table)


def print_deliveries(deliveries: Sequence[Mapping[str, Any]]) -> None:
    """Print notices, a line each."""
    console = console_for(None)
    if not deliveries:
        console.print("nobody was told of anything yet")
        return
    table = table_of("Time", "Receiver", "Status", "What", "State", ">Tries", "Answer")
    for one in deliveries:
        table.add_row(
            _clock(one["created"]),
            one["receiver"],
            one["status"],
            one["headline"],
            one["state"],
            str(one["tries"]),
            one["answer"] or "",
        )
    print_whole(console, table)


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
