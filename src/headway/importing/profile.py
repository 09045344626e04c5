"""Profiles: a log's lines described by regular expressions with named groups, in a small TOML file.

    name = "our-trainer"
    log_interval = 10               # steps between two lines, where known
    warm_up = 2                     # first steps of an attempt whose printed time is not the work
    first_step = 1                  # number that the program gives its first step

    [time]
    pattern = '^(?P<time>\\S+ \\S+)'
    layout = "%d.%m.%Y %H:%M:%S"    # as in strptime; without it known layouts are recognised

    [[line]]
    says = "step"
    pattern = 'it (?P<step>\\d+) took (?P<duration>[\\d.]+) loss (?P<loss>\\S+)'
    units = { duration = "ms" }
    example = "01.12.2026 08:00:10 it 10 took 812.5 loss 2.31"

Every example is checked against its pattern when the profile is read.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from headway.importing.rules import Format, Rule, loss_of, number
from headway.importing.sayings import (
    At,
    Began,
    Broke,
    Continues,
    Finished,
    LoadBegan,
    LoadEnded,
    PhaseSays,
    SaveBegan,
    SaveEnded,
    SaveFailed,
    Saying,
    StepLine,
    Stops,
    Took,
)
from headway.importing.stamps import SECOND, clock_reading

_UNITS = {"ns": 1, "us": 1_000, "ms": 10**6, "s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND}
_GROUPS = {
    "step": ("step", "target", "duration", "elapsed", "loss", "samples"),
    "started": (),
    "save_started": ("step",),
    "save_finished": ("step", "duration"),
    "save_failed": ("step",),
    "load_started": ("step",),
    "load_finished": ("step", "duration"),
    "resumed": ("step",),
    "evaluation_started": (),
    "evaluation_finished": ("duration",),
    "finished": (),
    "fault": ("message",),
    "stopping": (),
}
"""What a line can say, and the groups that its pattern may have."""
_NEEDED = {"step": ("step",), "resumed": ("step",)}
_LONGEST_PATTERN = 2000


class ProfileError(ValueError):
    """A profile that cannot be used; the message says where and why."""


def read_profile(text: str, zone: tzinfo = UTC) -> tuple[Format, int | None]:
    """Return the format that a profile describes, and its log interval.

    Raises:
        ProfileError: something in it does not fit; no example is left unchecked.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"it is no TOML: {error}") from error
    _only(found, "the profile", ("name", "log_interval", "warm_up", "first_step", "time", "line"))
    name = found.get("name", "profile")
    if not isinstance(name, str) or not name:
        raise ProfileError(f"name is {name!r}; write a text")
    first, warm_up = _count(found, "first_step", 1), _count(found, "warm_up", 0)
    interval = _count(found, "log_interval", 0) or None
    lines = found.get("line")
    if not isinstance(lines, list) or not lines:
        raise ProfileError("it has no [[line]]; describe at least the line of a step")
    timing = _timing(found.get("time"), zone)
    rules = tuple(
        _rule(line, position, timing, first, warm_up)
        for position, line in enumerate(lines, start=1)
    )
    return Format(name=name, rules=rules, first_step=first), interval


def _rule(
    line: object,
    position: int,
    timing: "Callable[[str], At | None]",
    first: int,
    warm_up: int,
) -> Rule:
    where = f"[[line]] {position}"
    if not isinstance(line, dict):
        raise ProfileError(f"{where} is no table")
    _only(line, where, ("says", "pattern", "units", "example", "kind", "background"))
    says = line.get("says")
    if says not in _GROUPS:
        raise ProfileError(f"{where}: says is {says!r}; choose one of: {', '.join(_GROUPS)}")
    pattern = _pattern(line.get("pattern"), where)
    allowed = (*_GROUPS[says], "time")
    for group in pattern.groupindex:
        if group not in allowed:
            raise ProfileError(
                f"{where}: a {says} line has no group {group!r}; known: {', '.join(allowed)}"
            )
    for group in _NEEDED.get(says, ()):
        if group not in pattern.groupindex:
            raise ProfileError(f"{where}: the pattern of a {says} line needs the group {group!r}")
    units = _units(line.get("units", {}), where)
    make = _maker(says, line, units, first, warm_up)

    def read(text: str) -> "tuple[Saying, ...] | None":
        found = pattern.search(text)
        if found is None:
            return None
        said = make({name: value for name, value in found.groupdict().items() if value})
        at = timing(found["time"] if "time" in pattern.groupindex else text)
        return (said,) if at is None else (at, said)

    example = line.get("example")
    if not isinstance(example, str):
        raise ProfileError(f"{where} has no example; copy a line of the log that it describes")
    try:
        if read(example) is None:
            raise ProfileError(f"{where}: the pattern does not find its example {example!r}")
    except ProfileError:
        raise
    except (ValueError, OverflowError) as error:
        raise ProfileError(f"{where}: the example {example!r} cannot be read: {error}") from error
    return Rule(_mark(pattern.pattern), read)


def _maker(
    says: str, line: Mapping[str, Any], units: Mapping[str, int], first: int, warm_up: int
) -> Callable[[Mapping[str, str]], Saying]:
    """Return what turns the groups of a line into what it says."""
    background = bool(line.get("background", False))

    def duration(found: Mapping[str, str], name: str = "duration") -> int | None:
        text = found.get(name)
        if text is None:
            return None
        return clock_reading(text) if ":" in text else round(float(text) * units.get(name, SECOND))

    def step(found: Mapping[str, str]) -> int | None:
        printed = number(found.get("step"))
        return None if printed is None else printed + 1 - first

    def progress(found: Mapping[str, str]) -> Saying:
        printed = number(found["step"]) or 0
        return StepLine(
            step=printed + 1 - first,
            printed=printed,
            form="profile",
            target=number(found.get("target")),
            per_step=duration(found),
            elapsed=duration(found, "elapsed"),
            loss=loss_of(found.get("loss")),
            samples=number(found.get("samples")),
            dispatch=printed - first < warm_up,
        )

    makers: Mapping[str, Callable[[Mapping[str, str]], Saying]] = {
        "step": progress,
        "started": lambda found: Began(),
        "save_started": lambda found: SaveBegan(step=step(found), background=background),
        "save_finished": lambda found: SaveEnded(
            step=step(found), took=duration(found), background=background
        ),
        "save_failed": lambda found: SaveFailed(step=step(found)),
        "load_started": lambda found: LoadBegan(step=step(found)),
        "load_finished": lambda found: LoadEnded(step=step(found), took=duration(found)),
        "resumed": lambda found: Continues(completed=step(found) or 0),
        "evaluation_started": lambda found: PhaseSays(phase="evaluation", began=True),
        "evaluation_finished": lambda found: _evaluated(duration(found)),
        "finished": lambda found: Finished(complete=True),
        "fault": lambda found: Broke(kind="exception", message=found.get("message", "")),
        "stopping": lambda found: Stops(reason="sigterm"),
    }
    return makers[says]


def _evaluated(took: int | None) -> Saying:
    if took is None:
        return PhaseSays(phase="evaluation", began=False)
    return Took(phase="evaluation", duration=took)


def _timing(found: object, zone: tzinfo) -> Callable[[str], At | None]:
    """Return what finds a line's time by the profile's layout; without one, nothing does."""
    if found is None:
        return lambda text: None
    if not isinstance(found, dict):
        raise ProfileError("[time] is no table")
    _only(found, "[time]", ("pattern", "layout"))
    layout = found.get("layout")
    pattern = _pattern(found.get("pattern", "(?P<time>.+)"), "[time]")
    if not isinstance(layout, str):
        raise ProfileError("[time] has no layout; write one as in strptime, such as %Y-%m-%d")
    if "time" not in pattern.groupindex:
        raise ProfileError("[time]: the pattern needs the group 'time'")

    def at(text: str) -> At | None:
        told = pattern.search(text)
        if told is None:
            return None
        try:
            moment = datetime.strptime(told["time"], layout)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        past = moment - datetime(1970, 1, 1, tzinfo=UTC)
        microseconds = (past.days * 86_400 + past.seconds) * 10**6 + past.microseconds
        return At(time=max(microseconds, 0) * 1000)

    return at


def _pattern(found: object, where: str) -> re.Pattern[str]:
    if not isinstance(found, str) or not found:
        raise ProfileError(f"{where} has no pattern")
    if len(found) > _LONGEST_PATTERN:
        raise ProfileError(f"{where}: the pattern is longer than {_LONGEST_PATTERN} characters")
    try:
        return re.compile(found)
    except re.error as error:
        raise ProfileError(f"{where}: the pattern {found!r} is wrong: {error}") from error


def _units(found: object, where: str) -> Mapping[str, int]:
    if not isinstance(found, dict):
        raise ProfileError(f"{where}: units is no table")
    for name, unit in found.items():
        if unit not in _UNITS:
            known = ", ".join(_UNITS)
            raise ProfileError(f"{where}: the unit of {name} is {unit!r}; choose one of: {known}")
    return {name: _UNITS[unit] for name, unit in found.items()}


def _count(found: Mapping[str, Any], name: str, default: int) -> int:
    value = found.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ProfileError(f"{name} is {value!r}; write a number of steps")
    return value


def _only(found: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    for name in found:
        if name not in known:
            raise ProfileError(f"{where} has no setting {name!r}; known: {', '.join(known)}")


def _mark(pattern: str) -> str:
    """Return the longest plain piece that every line of a pattern holds; empty if unsure."""
    unnamed = re.sub(r"\(\?P<\w+>", "(", pattern)
    if re.search(r"[|?*{]", unnamed):
        return ""
    pieces = re.split(r"\\.|\[[^\]]*\]|[().^$+]", unnamed)
    return max(pieces, key=len, default="")
