"""The time that a line of a training's log says, and the UTC moment it means.

Frameworks print a dozen layouts. Some lack the year (glog, NCCL), most the zone. What a stamp
lacks comes from the caller; a year that nobody names is the newest that is not after the log's
last change.
"""

import re
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1970, 2261
_DAY = 86_400 * SECOND
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_CACHED = 4096

_FULL = re.compile(
    r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?:\s?(Z\b|UTC\b|[+-]\d\d:?\d\d(?!\d)))?"
)
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_GLOG = re.compile(r"(?<![A-Za-z])[IWEFD](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_NAMED = re.compile(
    r"(?<![A-Za-z])([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?"
    r"(?: (\d{4})(?![\d:]))?"
)
_SLASHED = re.compile(
    r"(?<![\d/])(\d\d)/(\d\d)(?:/(\d{4}))?,? (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?!\d)"
)
"""Month first, as the examples of Hugging Face (with a year) and mmengine (without) print it."""


class Moment(NamedTuple):
    """A UTC time in ns and how finely it was printed, in ns."""

    time: int
    resolution: int


class Stamps:
    """Reads stamps; remembers the year of those that have none."""

    def __init__(
        self, *, zone: tzinfo = UTC, year: int | None = None, latest: int | None = None
    ) -> None:
        """Take what stamps may lack.

        Args:
            zone: zone of stamps that name none.
            year: year of the first stamp that names none.
            latest: UTC ns after which no line was written.
        """
        self._zone = zone
        self._year = year
        self._latest = latest
        self._hours: dict[tuple[str, ...], int] = {}
        self.guessed_year: int | None = None
        """The year that was assumed for stamps without one."""
        self.assumed_zone = False
        """Whether a stamp had no zone."""
        self._last_month = 0
        self._near: tuple[int, int] | None = None
        """Year and month of the last stamp that had a year."""

    def read(self, text: str) -> Moment | None:
        """Return the first time that a text says, None for none."""
        found = _FULL.search(text)
        if found is not None:
            year, month, day, hour, minute, second, fraction, zone = found.groups()
            self._near = int(year), int(month)
            return self._moment(year, month, day, hour, minute, second, fraction, zone)
        found = _GLOG.search(text)
        if found is not None:
            month, day, hour, minute, second, fraction = found.groups()
            return self._yearless(int(month), day, hour, minute, second, fraction)
        found = _COMPACT.search(text)
        if found is not None:
            year, month, day, hour, minute, second, fraction = found.groups()
            return self._moment(year, month, day, hour, minute, second, fraction, None)
        found = _NAMED.search(text)
        if found is not None and found[1] in _MONTHS:
            name, day, hour, minute, second, fraction, after = found.groups()
            return self._of_month(after, _MONTHS[name], day, hour, minute, second, fraction)
        found = _SLASHED.search(text)
        if found is not None:
            month, day, after, hour, minute, second, fraction = found.groups()
            return self._of_month(after, int(month), day, hour, minute, second, fraction)
        return None

    def second(self, text: str) -> int | None:
        """Return the UTC ns of a stamp of exactly the form `2026-11-29 08:00:00`."""
        begin = self._hours.get((text[:4], text[5:7], text[8:10], text[11:13], ""))
        if begin is None:
            found = self.read(text)
            return None if found is None else found.time
        return begin + (int(text[14:16]) * 60 + int(text[17:19])) * SECOND

    def _of_month(
        self,
        year: str | None,
        month: int,
        day: str,
        hour: str,
        minute: str,
        second: str,
        fraction: str | None,
    ) -> Moment | None:
        if year is None:
            return self._yearless(month, day, hour, minute, second, fraction)
        self._near = int(year), month
        return self._moment(year, f"{month:02}", day, hour, minute, second, fraction, None)

    def _yearless(
        self, month: int, day: str, hour: str, minute: str, second: str, fraction: str | None
    ) -> Moment | None:
        if not 1 <= month <= 12:
            return None
        if self._near is not None:
            near, then = self._near
            self._year = near + (month - then < -6) - (month - then > 6)
        elif self._year is None:
            self._year = self.guessed_year = self._newest_year(month, day)
        elif self._last_month == 12 and month == 1:
            self._year += 1
        self._last_month = month
        return self._moment(
            f"{self._year}", f"{month:02}", day, hour, minute, second, fraction, None
        )

    def _newest_year(self, month: int, day: str) -> int:
        """Return the newest year in which this day is not after the log's last change."""
        if self._latest is None:
            return _FIRST_YEAR
        last = datetime.fromtimestamp(self._latest // SECOND, UTC)
        later = (month, int(day)) > (last.month, last.day + 1)
        return last.year - later

    def _moment(
        self,
        year: str,
        month: str,
        day: str,
        hour: str,
        minute: str,
        second: str,
        fraction: str | None,
        zone: str | None,
    ) -> Moment | None:
        key = (year, month, day, hour, zone or "")
        begin = self._hours.get(key)
        if begin is None:
            begin = self._hour(*key)
            if begin is None:
                return None
            if len(self._hours) > _CACHED:
                self._hours.clear()
            self._hours[key] = begin
        seconds = int(minute) * 60 + int(second)
        if fraction is None:
            return Moment(begin + seconds * SECOND, SECOND)
        unit = 10 ** (9 - len(fraction))
        return Moment(begin + seconds * SECOND + int(fraction) * unit, unit)

    def _hour(self, year: str, month: str, day: str, hour: str, zone: str) -> int | None:
        if not _FIRST_YEAR <= int(year) <= _LAST_YEAR:
            return None
        shift = 0
        if zone in ("Z", "UTC"):
            info: tzinfo = UTC
        elif zone:
            info = UTC
            sign = -1 if zone[0] == "-" else 1
            shift = -sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
        else:
            info = self._zone
            self.assumed_zone = True
        try:
            moment = datetime(int(year), int(month), int(day), int(hour), tzinfo=info)
        except ValueError:
            return None
        past = moment - _EPOCH
        found = (past.days * 86_400 + past.seconds + shift) * SECOND
        return found if found >= 0 else None


def seconds(text: str) -> int:
    """Return decimal seconds such as `12.5` as ns, capped at what a log can mean.

    Raises:
        ValueError: not a number.
    """
    value = float(text)
    if not 0 <= value < 10**9:
        raise ValueError(f"{text!r} seconds is no duration of a log")
    return round(value * SECOND)


def clock_reading(text: str) -> int:
    """Return `SS`, `MM:SS`, `HH:MM:SS` or `D-HH:MM:SS` as ns.

    Raises:
        ValueError: not of that form.
    """
    days, _, rest = text.rpartition("-")
    total = 0
    for part in rest.split(":"):
        total = total * 60 + int(part)
    total += 86_400 * int(days or 0)
    return total * SECOND
