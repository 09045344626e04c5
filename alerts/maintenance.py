"""Maintenance: times of the week, or stretches of the calendar, in which a route stays silent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")
_OPTIONS = ("days", "from", "to", "zone", "begin", "end")


class MaintenanceError(ValueError):
    """A maintenance window that cannot be used as it is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A window that returns on days of the week, or one stretch from `begin` to `end`.

    Minutes of the day are counted in the window's zone; one that ends before it starts goes on
    through midnight, on the days on which it starts.
    """

    name: str
    zone: tzinfo = UTC
    days: tuple[int, ...] = ()
    first_minute: int = 0
    last_minute: int = 24 * 60
    begin: datetime | None = None
    end: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Return whether a moment lies in the window; its end is outside."""
        if self.begin is not None and self.end is not None:
            return self.begin <= now < self.end
        local = now.astimezone(self.zone)
        minute, day = local.hour * 60 + local.minute, local.weekday()
        if self.first_minute < self.last_minute:
            return day in self.days and self.first_minute <= minute < self.last_minute
        yesterday = (day - 1) % 7
        return (day in self.days and minute >= self.first_minute) or (
            yesterday in self.days and minute < self.last_minute
        )


def maintenance(name: str, options: Mapping[str, Any]) -> Maintenance:
    """Return a window from what the site's file says of it.

    Raises:
        MaintenanceError: an unknown day, time or zone, or an end that is not after the begin.
    """
    where = f"maintenance {name!r}"
    for option in options:
        if option not in _OPTIONS:
            raise MaintenanceError(
                f"{where}: unknown option {option!r}; known are {', '.join(_OPTIONS)}"
            )
    zone = _zone(where, options.get("zone", "UTC"))
    if "begin" in options or "end" in options:
        begin, end = (_moment(where, options, key, zone) for key in ("begin", "end"))
        if end <= begin:
            raise MaintenanceError(f"{where}: it ends at {end} and begins at {begin}")
        return Maintenance(name=name, zone=zone, begin=begin, end=end)
    days = options.get("days", list(DAYS))
    if not isinstance(days, list) or not days:
        raise MaintenanceError(f'{where}: days {days!r}; write a list, as in ["saturday"]')
    for day in days:
        if day not in DAYS:
            raise MaintenanceError(f"{where}: day {day!r}; choose from {', '.join(DAYS)}")
    return Maintenance(
        name=name,
        zone=zone,
        days=tuple(DAYS.index(day) for day in days),
        first_minute=_minute(where, options.get("from", "00:00")),
        last_minute=_minute(where, options.get("to", "24:00")),
    )


def _moment(where: str, options: Mapping[str, Any], key: str, zone: tzinfo) -> datetime:
    value = options.get(key)
    if not isinstance(value, datetime):
        raise MaintenanceError(f"{where}: {key} is to be a time such as 2026-12-24T18:00:00")
    return value if value.tzinfo is not None else value.replace(tzinfo=zone)


def _minute(where: str, text: Any) -> int:
    if not isinstance(text, str) or _CLOCK.fullmatch(text) is None:
        raise MaintenanceError(f"{where}: {text!r} is no time of the day such as 22:30")
    if text == "24:00":
        return 24 * 60
    read = time.fromisoformat(text)
    return read.hour * 60 + read.minute


def _zone(where: str, name: Any) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError) as error:
        raise MaintenanceError(f"{where}: zone {name!r} is not known here") from error
