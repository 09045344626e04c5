"""Times as a document tells them: in the reader's zone, with UTC beside it where they differ."""

from datetime import UTC, datetime, tzinfo

from headway.wording import duration, when

_SECOND = 10**9
_MILLISECOND = 10**6
_EXACT = 100 * _SECOND
"""Distance from the opening, in ns, up to which hundredths of a second are told."""


def moment(time: int, zone: tzinfo) -> str:
    """Return a time to the second in the zone, with UTC beside it where that reads otherwise."""
    local, utc = when(time, zone), when(time, UTC)
    return local if local == utc else f"{local} ({utc})"


def clock(time: int, opened: int, zone: tzinfo) -> str:
    """Return a time to the millisecond; with its date where that is not the opening's."""
    local = _local(time, zone)
    text = f"{local:%H:%M:%S}.{time % _SECOND // _MILLISECOND:03}"
    same = local.date() == _local(opened, zone).date()
    return text if same else f"{local:%Y-%m-%d} {text}"


def date(time: int, zone: tzinfo) -> str:
    """Return the date of a time."""
    return f"{_local(time, zone):%Y-%m-%d}"


def zone_name(time: int, zone: tzinfo) -> str:
    """Return the name of a zone at a time, with its distance from UTC where there is one."""
    local = _local(time, zone)
    offset = f"{local:%z}"
    if offset in ("+0000", ""):
        return "UTC"
    return f"{local.tzname()} (UTC{offset[:3]}:{offset[3:5]})"


def offset(time: int, opened: int) -> str:
    """Return how long after the opening a time is, or before it: `+10.05 s`, `-4 min 2 s`."""
    after = time - opened
    sign = "-" if after < 0 else "+"
    if abs(after) < _EXACT:
        text = f"{abs(after) / _SECOND:.2f} s"
        return text if text == "0.00 s" else f"{sign}{text}"
    return f"{sign}{duration(abs(after))}"


def _local(time: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(time // _SECOND, tz=zone)
