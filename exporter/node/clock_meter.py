"""How far the node's monotonic clock is from the collector's clock, measured by asking for it.

Measuring has a thread of its own, so that a slow network holds up no record.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests

from headway.exporter.shipping import LOOPBACK

_log = logging.getLogger(__name__)

ROUND_TRIPS = 5
RETRY = 5.0
"""Seconds until a measurement that failed is tried again."""
_REQUEST_TIME = 2.0
"""Seconds for which one question may wait for its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the collector's clock showed when the monotonic clock read 0, and how sure that is."""

    zero: int
    error: int


def measure(
    ask: Callable[[], int], monotonic: Callable[[], int], round_trips: int = ROUND_TRIPS
) -> Reading:
    """Ask several times for the collector's time and keep the shortest round trip.

    The answer was read between question and receipt, so it is off the middle by half the round
    trip at most, however unlike the two ways are.

    Example: asked at 100, answered 5_000_110, received at 104: zero 5_000_008, error 2.
    """
    readings = []
    for _ in range(round_trips):
        sent = monotonic()
        time = ask()
        received = monotonic()
        readings.append(
            Reading(zero=time - (sent + received) // 2, error=(received - sent + 1) // 2)
        )
    return min(readings, key=lambda reading: reading.error)


class ClockMeter:
    """Measures one collector's clock at an interval in seconds, whenever it is polled."""

    def __init__(
        self,
        *,
        endpoint: str,
        token: str | None,
        ca_file: Path | None = None,
        interval: float,
        monotonic: Callable[[], int],
    ) -> None:
        """Prepare; `monotonic` gives the clock of this node's events in ns."""
        self._address = f"{endpoint.rstrip('/')}/api/v1/clock"
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._verify = True if ca_file is None else str(ca_file)
        self._interval = interval
        self._monotonic = monotonic
        self._reading: Reading | None = None
        self._due: int | None = None
        self._failing = False
        self._thread: threading.Thread | None = None

    def poll(self) -> Reading | None:
        """Return the newest reading, and begin the next measurement when it is time."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        now = self._monotonic()
        if self._thread is None and (self._due is None or now >= self._due):
            self._due = now + round(self._interval * 1e9)
            self._thread = threading.Thread(target=self._measure, name="headway-clock", daemon=True)
            self._thread.start()
        return self._reading

    def close(self) -> None:
        """Wait for the question that is under way."""
        if self._thread is not None:
            self._thread.join(_REQUEST_TIME)

    def _measure(self) -> None:
        try:
            with requests.Session() as session:
                # A proxy of the environment cannot reach this machine's loopback.
                session.trust_env = urlsplit(self._address).hostname not in LOOPBACK
                session.verify = self._verify
                self._reading = measure(lambda: self._ask(session), self._monotonic)
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            self._due = self._monotonic() + round(min(RETRY, self._interval) * 1e9)
            away = isinstance(error, requests.ConnectionError | requests.Timeout)
            if not (away or self._failing):  # that it is away is said where records are sent
                _log.warning(
                    "cannot read the clock at %s (%s), so this node's times stay uncorrected; "
                    "check that it is a Headway collector of this version",
                    self._address,
                    error,
                )
            self._failing = True
        else:
            self._failing = False

    def _ask(self, session: requests.Session) -> int:
        answer = session.get(
            self._address, headers=self._headers, timeout=_REQUEST_TIME, allow_redirects=False
        )
        answer.raise_for_status()
        return int(answer.json()["time"])
