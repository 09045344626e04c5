"""When a kernel message was written, on the agent's monotonic clock.

The kernel stamps its lines with a clock of its own (`local_clock`), which starts with the boot as
CLOCK_MONOTONIC does, but which nothing disciplines: after weeks the two are seconds to minutes
apart. A line that was not there at the last look and is there now was written in between; that
corrects the difference each time a line comes, so that the mapping is as fine as the looks are.
"""

from headway.kernel_log.records import Message

_FAR = 60_000_000_000
"""A line that came just now and is stamped further away than this, in ns, is of another clock."""


class KernelTime:
    """Maps stamps of this boot to CLOCK_MONOTONIC; `boot_id` is this boot's."""

    def __init__(self, boot_id: str | None) -> None:
        self._boot_id = _plain(boot_id)
        self._offset = 0

    def monotonic(
        self,
        message: Message,
        wall: int | None,
        *,
        live: bool,
        since: int | None,
        now: int,
        clocks: int,
    ) -> int | None:
        """Return the monotonic ns of a message, None for one of an earlier boot or unknown time.

        Args:
            message: the message.
            wall: what its stamp means in UTC ns, if that is known.
            live: whether its own stamp is the kernel's of this boot.
            since: monotonic ns of the last look that saw the end of the log, None where there was
                none and the message can be old.
            now: monotonic ns of this look.
            clocks: wall clock less monotonic clock in ns.
        """
        if message.boot_id is not None and _plain(message.boot_id) != self._boot_id:
            return None
        if message.received is not None:
            return min(message.received, now)
        own = message.stamp.monotonic
        if live and own is not None:
            return self._corrected(own, since, now)
        if wall is not None:
            time = wall - clocks
            return min(time, now) if time >= 0 else None
        if own is not None and (since is None or abs(own - now) <= _FAR):
            return min(own, now) if own <= now + _FAR else None
        return None if since is None else now

    def _corrected(self, own: int, since: int | None, now: int) -> int:
        if since is not None and own + self._offset < since:
            self._offset = since - own
        if own + self._offset > now:
            self._offset = now - own
        return max(own + self._offset, 0)


def _plain(boot_id: str | None) -> str | None:
    return None if boot_id is None else boot_id.replace("-", "").lower()
