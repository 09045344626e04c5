"""Moments as people type them: so long ago, or a time of day with its date and zone."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def moment(given: str, now: int) -> int:
    """Return the UTC ns of `24h` before `now` (UTC ns), or of an ISO time; no zone means UTC.

    Raises:
        ValueError: neither of the two.
    """
    ago = _AGO.fullmatch(given.strip())
    if ago is not None:
        return now - round(float(ago[1]) * _UNITS[ago[2]] * 10**9)
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(
            f"cannot read the time {given!r}; "
            "write 90s, 15m, 24h, 7d or an ISO time such as 2026-11-29T14:00"
        ) from None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000


def stretch(given: str, now: int) -> tuple[int, int]:
    """Return begin and end of `FROM/TO` in UTC ns, each as `moment` reads it.

    Raises:
        ValueError: no such pair, or it ends before it begins.
    """
    first, slash, last = given.partition("/")
    if not slash:
        raise ValueError(f"cannot read the stretch {given!r}; write FROM/TO, such as 5h/4h")
    begin, end = moment(first, now), moment(last, now)
    if end < begin:
        raise ValueError(f"the stretch {given!r} ends before it begins")
    return begin, end
