"""Hands alerts to an Alertmanager that is there already; it routes, silences and sends.

Alertmanager forgets an alert that is not said again before its end, so that a collector that is
gone resolves what it said: each one is said for three times the interval.
"""

import json
import logging
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

import httpx

from headway.alerts.notices import Told
from headway.alerts.payloads import posted, stamp

_LOG = logging.getLogger(__name__)

AGAIN = 30.0
"""Seconds after which an alert that has not changed is said again."""
_TIMEOUT = 5.0


class Handover:
    """One Alertmanager, told of every alert; `failure` says why it was not, in words."""

    def __init__(self, address: str, dashboard: str) -> None:
        """Hand over to an address; nothing is sent before the first alert."""
        self.address = address.rstrip("/")
        self.failure: str | None = None
        self._dashboard = dashboard
        self._said_at: float | None = None
        self._said: frozenset[tuple[str, bool]] = frozenset()
        self._owed: dict[str, Told] = {}

    @property
    def shown(self) -> str:
        """The address without a name and password that may stand in it."""
        found = urlsplit(self.address)
        return urlunsplit(found._replace(netloc=found.netloc.rpartition("@")[2]))

    def tell(self, alerts: Sequence[Told], now: float) -> bool:
        """Say what fires and what is over, if it changed or is to be said again.

        What is over is said until Alertmanager has taken it. Returns whether all is said.
        """
        for one in alerts:
            if one.ends_at is not None:
                self._owed[one.fingerprint] = one
            else:
                self._owed.pop(one.fingerprint, None)
        firing = [one for one in alerts if one.ends_at is None]
        state = frozenset((one.fingerprint, one.ends_at is None) for one in alerts)
        due = self._said_at is None or now - self._said_at >= AGAIN
        if not (due or state != self._said or self._owed or self.failure):
            return True
        if not (firing or self._owed):
            self._said, self.failure = state, None
            return True
        body = [posted(one, self._dashboard) for one in [*firing, *self._owed.values()]]
        for told in body[: len(firing)]:
            told["endsAt"] = stamp(now + 3 * AGAIN)
        self.failure = self._post(body)
        if self.failure is None:
            self._said_at, self._said = now, state
            self._owed.clear()
        return self.failure is None

    def test(self, alert: Told, now: float) -> str | None:
        """Say an alert once, which then is over by itself; return what went wrong, in words."""
        told = posted(alert, self._dashboard) | {"endsAt": stamp(now + AGAIN)}
        return self._post([told])

    def _post(self, body: Sequence[object]) -> str | None:
        """Return what went wrong, in words."""
        try:
            answer = httpx.post(
                f"{self.address}/api/v2/alerts",
                content=json.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=_TIMEOUT,
                trust_env=False,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = f"Alertmanager at {self.shown} cannot be reached: {type(error).__name__}"
        else:
            if answer.is_success:
                if self.failure is not None:
                    _LOG.warning("Alertmanager at %s takes alerts again", self.shown)
                return None
            said = " ".join(answer.text[:200].split())
            words = f"Alertmanager at {self.shown} refuses: HTTP {answer.status_code} {said}"
        if self.failure != words:
            _LOG.error("%s; what fires is kept and said again", words)
        return words
