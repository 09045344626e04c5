"""Time stamps before a kernel line: what they say, and the moment they mean given what they lack.

A stamp without a zone, a year or a boot needs context (`Clock`); without it the moment stays
unknown. The kernel's own stamps count from the boot.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated

from headway.events import Described
from headway.kernel_log.months import month_number

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400 * _SECOND
_DIGITS = 9
_FIRST_YEAR, _LAST_YEAR = 1970, 2261
"""Years whose nanoseconds fit into 64 bits."""
_LONGEST_UPTIME = 100 * 366 * _DAY

_KERNEL = re.compile(r"\[\s{0,12}(\d{1,10})\.(\d{1,9})\]")
_WEEKDAY = r"(?<![^\W_])(?:[^\W\d_]{2,12}\.?,?\s{1,3})?"
_NAMED = re.compile(
    _WEEKDAY + r"([^\W_]{1,14}\.?)\s{1,3}(\d{1,2})\s{1,2}(\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?"
    r"(?:\s(\d{4})(?!\d))?(?![\d:])"
)
_ISO = re.compile(
    _WEEKDAY + r"(?<!\d)(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?"
    r"(?:\s?(Z|UTC|[+-]\d{2}:?\d{2}))?(?![\d:])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a line says of its time; every part can be missing."""

    wall: Annotated[int | None, Described("The moment, where the line says it whole.", "ns")] = None
    local: Annotated[
        datetime | None, Described("Date and time without a zone; year 4 stands for no year.")
    ] = None
    nanosecond: Annotated[int, Described("Fraction of the second of `local`.", "ns")] = 0
    monotonic: Annotated[int | None, Described("Time since the boot.", "ns")] = None


NO_STAMP = Stamp()
NO_YEAR = 4
"""A leap year, so that the 29th of February is a day of it."""


def read_stamps(prefix: str) -> tuple[Stamp, str]:
    """Return what the stamps in a prefix say together, and the prefix without them."""
    wall = local = monotonic = None
    nanosecond = 0
    rest = prefix
    if ":" in prefix:
        for found in _ISO.finditer(prefix):
            moment = _date(found[1], int(found[2]), found[3], found[4], found[5], found[6])
            if moment is None:
                continue
            rest = rest.replace(found[0], " ", 1)
            fraction = _fraction(found[7])
            if found[8] is None:
                local, nanosecond = moment, fraction
            else:
                wall = _ns(moment.replace(tzinfo=_zone(found[8]))) + fraction
        for found in _NAMED.finditer(rest):
            month = month_number(found[1])
            if month is None:
                continue
            moment = _date(found[7], month, found[2], found[3], found[4], found[5])
            if moment is not None:
                local, nanosecond = moment, _fraction(found[6])
                rest = rest.replace(found[0], " ", 1)
                break
    since_boot = _KERNEL.search(rest)
    if since_boot is not None:
        monotonic = uptime(int(since_boot[1]) * _SECOND + _fraction(since_boot[2]))
        rest = rest.replace(since_boot[0], " ", 1)
    return Stamp(wall=wall, local=local, nanosecond=nanosecond, monotonic=monotonic), rest


def uptime(nanoseconds: int) -> int | None:
    """Return a time since the boot, or None for one that no machine reaches."""
    return nanoseconds if nanoseconds <= _LONGEST_UPTIME else None


class Clock:
    """Turns stamps into moments, and keeps the year of stamps that have none."""

    def __init__(
        self,
        *,
        boot: int | None = None,
        zone: tzinfo = UTC,
        year: int | None = None,
        latest: int | None = None,
    ) -> None:
        """Take the context.

        Args:
            boot: wall-clock time in UTC ns at which the kernel's stamps read 0.
            zone: zone of the stamps that name none.
            year: year of the first stamp that names none.
            latest: UTC ns after which no line can have been written, such as the file's age.
        """
        self._boot = boot
        self._zone = zone
        self._year = year
        self.latest = latest
        """As the argument; moves on where a log is being written."""
        self._known: int | None = None
        """The last moment that a line said whole."""
        self._guessed: int | None = None
        """The last moment whose year was not said."""

    def moment(self, stamp: Stamp) -> int | None:
        """Return the UTC ns that a stamp means, or None where that cannot be known."""
        if stamp.wall is not None:
            self._known = stamp.wall
        elif stamp.monotonic is not None and self._boot is not None:
            self._known = self._boot + stamp.monotonic
        elif stamp.local is None:
            return None
        elif stamp.local.year == NO_YEAR:
            found = self._guess(stamp)
            self._guessed = self._guessed if found is None else found
            return found
        else:
            self._known = self._at(stamp, stamp.local.year)
        return self._known

    def _guess(self, stamp: Stamp) -> int | None:
        """Return the moment of a stamp that does not say its year.

        The first is of the given year, else the newest that could have been written, else the
        nearest to a moment that is known. The next ones follow it, over any new year.
        """
        if self._guessed is not None:
            after = self._guessed - _DAY  # lines of two processors can swap places
            following = [found for found in self._years(stamp, self._guessed) if found >= after]
            if following and (self.latest is None or min(following) <= self.latest + _DAY):
                return min(following)
        elif self._year is not None:
            return self._at(stamp, self._year)
        if self.latest is not None:
            limit = self.latest + _DAY
            past = [found for found in self._years(stamp, self.latest) if found <= limit]
            return max(past, default=None)
        if self._known is None:
            return None
        known = self._known
        return min(self._years(stamp, known), key=lambda found: abs(found - known), default=None)

    def _years(self, stamp: Stamp, near: int) -> list[int]:
        year = (_EPOCH + timedelta(seconds=near // _SECOND)).astimezone(self._zone).year
        # Two years each way reach a 29th of February only every four; it is unknown then.
        found = (self._at(stamp, candidate) for candidate in range(year - 2, year + 3))
        return [moment for moment in found if moment is not None]

    def _at(self, stamp: Stamp, year: int) -> int | None:
        assert stamp.local is not None  # noqa: S101  # only called for such stamps
        try:
            moment = stamp.local.replace(year=year, tzinfo=self._zone)
            return _ns(moment) + stamp.nanosecond
        except (ValueError, OverflowError):
            return None  # the 29th of February of another year


def _date(
    year: str | None, month: int, day: str, hour: str, minute: str, second: str
) -> datetime | None:
    if year is not None and not _FIRST_YEAR <= int(year) <= _LAST_YEAR:
        return None
    try:
        # A leap second counts as the second before it.
        return datetime(
            NO_YEAR if year is None else int(year),
            month,
            int(day),
            int(hour),
            int(minute),
            min(int(second), 59),
        )
    except ValueError:
        return None


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC"):
        return UTC
    hours, minutes = int(name[1:3]), int(name[-2:])
    offset = timedelta(hours=min(hours, 23), minutes=min(minutes, 59))
    return timezone(-offset if name[0] == "-" else offset)


def _fraction(digits: str | None) -> int:
    return 0 if not digits else int(digits.ljust(_DIGITS, "0"))


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000
