"""The embedded engine at work: looks at the metrics, decides, and sends, each in its own time.

What is decided is written down before anything is sent, so that a restart neither forgets a notice
nor says it under another key. A receiver that does not answer delays nobody else's notices.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from headway.alerts.evaluation import Alert, Alerts, Sample, evaluate
from headway.alerts.handover import Handover
from headway.alerts.matching import matcher
from headway.alerts.notices import (
    Group,
    Groups,
    Hidden,
    Notice,
    Plan,
    Silence,
    Told,
    acknowledged,
    as_row,
    group_of,
    plan,
)
from headway.alerts.receivers import Receiver
from headway.alerts.senders import Outcome, send
from headway.alerts.site import Site
from headway.alerts.sounding import sounding
from headway.alerts.unwritten import Unwritten
from headway.storage.alert_book import AlertBook, AlertKey, BookError

_LOG = logging.getLogger(__name__)

INTERVAL = 2.0
"""Seconds between two evaluations."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
"""Seconds before a notice that was not taken is sent again: doubled from the first on."""
_DOUBLINGS = 16
"""Doublings after which the pause is the longest, however long a receiver is away."""
_UNWRITTEN = ""
"""Stands for all receivers while notices are sent that could not be written down."""
_UNKEPT = "what is decided is not kept for now, and notices are sent without that"
GIVEN_UP = 24 * 3600.0
"""Seconds after which a notice that a receiver refuses is given up: nobody put that right."""

Send = Callable[[Notice, Receiver, str], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What the newest look gave: metrics, each alert with its words, what is hidden, the groups.

    `looked_at` is when, in seconds UTC; None before the first.
    """

    looked_at: float | None = None
    samples: Sequence[Sample] = ()
    alerts: tuple[tuple[Alert, Told], ...] = ()
    hidden: tuple[Hidden, ...] = ()
    groups: tuple[Group, ...] = ()


class Engine:
    """Rules, groups and outbox of one site over one book."""

    def __init__(
        self,
        book: AlertBook,
        site: Site,
        look: Callable[[], Sequence[Sample] | None],
        clock: Callable[[], float],
        dashboard: str,
        send: Send = send,
        handover: Handover | None = None,
    ) -> None:
        """Take up what the book says; `clock` gives seconds UTC.

        `look` gives the metrics, or None while nothing can be said: then everything stays. With a
        handover somebody else decides who is told.
        """
        self._book, self._site, self._look, self._clock = book, site, look, clock
        self._dashboard, self._send, self._handover = dashboard, send, handover
        self._alerts: Alerts = {
            (key.rule, key.labels): Alert(rule=key.rule, labels=key.labels, **row)
            for key, row in book.alerts().items()
        }
        self._lock = threading.Lock()
        self._current = Current()
        self._stopping = threading.Event()
        self._busy: dict[str, Future[None]] = {}
        self._taken: dict[int, Outcome] = {}
        self._groups: Groups = {group.identity: group for group in map(group_of, book.groups())}
        self._silences: list[Silence] = []
        self._failures: dict[str, str] = {}
        self._unwritten = Unwritten()
        self._written: tuple[Alerts, tuple[Group, ...]] | None = None
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="alerts")
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End; what was not sent stays in the book."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def turn(self) -> Plan:
        """Look once, decide, and write down what is decided."""
        samples, now = self._look(), self._clock()
        if samples is None:
            return Plan(notices=(), groups=())
        with self._lock:
            found = evaluate(list(self._site.rules.values()), samples, self._alerts, now)
            words = sounding(found.values(), self._site.rules, samples, self._dashboard)
            alerts = {alert.key: alert for alert, _ in words}
            loud = [told for alert, told in words if alert.state != "pending"]
            if self._handover is None:
                decided = plan(self._site, loud, self.silences(), self._groups, now)
            else:
                decided = Plan(notices=(), groups=())
            self._keep(alerts, decided, now)
            self._alerts = alerts
            shown = tuple(one for one in words if one[0].state != "resolved")
            self._current = Current(
                looked_at=now,
                samples=samples,
                alerts=shown,
                hidden=decided.hidden,
                groups=decided.groups,
            )
        if self._handover is not None:
            self._handover.tell(loud, now)
        return decided

    def _keep(self, alerts: Alerts, decided: Plan, now: float) -> None:
        """Write down what is decided, if it changed, with what could not be before.

        Where that fails it is sent nevertheless: a full disk is what people are to hear of.
        """
        self._unwritten.add(decided.notices)
        state = alerts, decided.groups
        self._groups = {group.identity: group for group in decided.groups}

        def is_written(notices: Sequence[Notice]) -> bool:
            if state == self._written and not notices:
                return True
            self._written = None
            with self._noted(_UNKEPT):
                self._book.turn(
                    {AlertKey(rule=a.rule, labels=a.labels): _row(a) for a in alerts.values()},
                    {group.key: as_row(group) for group in decided.groups},
                    [_posted(notice) for notice in notices],
                    now,
                )
                self._written = state
            return self._written is not None

        self._unwritten.write(is_written)

    @contextmanager
    def _noted(self, loss: str) -> Iterator[None]:
        """Go on where the book fails, and say once what is lost by it."""
        try:
            yield
        except BookError as error:
            if loss not in self._failures:
                _LOG.error("%s; %s", error, loss)
            self._failures[loss] = str(error)
        else:
            self._failures.pop(loss, None)

    @property
    def failure(self) -> str | None:
        """Why the book could not be read or written when that was tried last; None if it could."""
        return next(iter(self._failures.values()), None)

    def _is_told(self, notice: Notice) -> bool:
        """Send a notice that could not be written down; what nobody may take any more is told."""
        receiver = self._site.receivers.get(notice.receiver)
        return receiver is None or self._outcome(notice, receiver).state == "delivered"

    def deliver(self) -> None:
        """Begin to send what is due: for each receiver one notice at a time, in their order.

        One that is away is not asked for the rest before the next look.
        """
        for receiver, job in list(self._busy.items()):
            if job.done():
                del self._busy[receiver]
                if not job.cancelled() and job.exception() is not None:
                    _LOG.error("receiver %s: what came of a try is not kept", receiver)
        if self._unwritten and _UNWRITTEN not in self._busy:
            self._busy[_UNWRITTEN] = self._pool.submit(self._unwritten.send, self._is_told)
        waiting: dict[str, list[dict[str, Any]]] = {}
        due: list[dict[str, Any]] = []
        with self._noted("notices that wait in it are not sent"):
            due = self._book.due(self._clock())
        for row in due:
            waiting.setdefault(row["receiver"], []).append(row)
        for receiver, rows in waiting.items():
            if receiver not in self._busy:
                self._busy[receiver] = self._pool.submit(self._send_all, rows)

    def current(self) -> Current:
        """Return what the newest look gave."""
        return self._current

    @property
    def handover(self) -> Handover | None:
        """Whom the alerts are handed to, if it is not the own notifier that tells people."""
        return self._handover

    def post(self, notices: Sequence[Notice]) -> None:
        """Send notices beside those of the rules."""
        self._book.post([_posted(notice) for notice in notices], self._clock())

    def silences(self) -> list[Silence]:
        """Return every silence; as they were last, where they cannot be read."""
        with self._noted("silences stay as they were"):
            self._silences = [_silence(row) for row in self._book.silences()]
        return self._silences

    def acknowledge(self, key: str, by: str) -> Group | None:
        """Let somebody take a group; None if there is none of this key."""
        with self._lock:
            for group in self._groups.values():
                if group.key == key:
                    taken = acknowledged(group, by, self._clock())
                    self._groups = {**self._groups, group.identity: taken}
                    self._written = None  # where it cannot be kept now, it is with the next look
                    with self._noted(_UNKEPT):
                        self._book.change_group(key, as_row(taken))
                    return taken
        return None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.turn()
            except Exception:
                _LOG.exception("alerting: this look failed; the next follows in %g s", INTERVAL)
            try:
                self.deliver()
            except Exception:
                _LOG.exception("alerting: nothing can be sent; again in %g s", INTERVAL)
            self._stopping.wait(INTERVAL)

    def _send_all(self, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            if self._stopping.is_set() or self._try(row) == "later":
                return

    def _try(self, row: dict[str, Any]) -> str:
        """Send one notice, keep what came of it and return that."""
        notice = notice_of(row["body"])
        receiver = self._site.receivers.get(row["receiver"])
        if receiver is None:
            outcome = Outcome(state="refused", answer="the site has no such receiver any more")
        else:
            outcome = self._taken.get(row["notice"]) or self._outcome(notice, receiver)
        now = self._clock()
        if outcome.state == "delivered":
            self._taken[row["notice"]] = outcome
            self._book.tried(row["notice"], outcome.answer, None, "delivered", now)
            del self._taken[row["notice"]]
        elif receiver is None:
            self._book.tried(row["notice"], outcome.answer, None, "given up", now)
            _LOG.error("receiver %s: given up: %s", row["receiver"], outcome.answer)
        elif outcome.state == "refused" and now - row["created"] >= GIVEN_UP:
            self._book.tried(row["notice"], outcome.answer, None, "given up", now)
            _LOG.error("receiver %s: given up, it refuses: %s", row["receiver"], outcome.answer)
        else:
            state = "waiting" if outcome.state == "later" else "refused"
            if state == "refused" and row["state"] != "refused":
                _LOG.error("receiver %s refuses: %s", row["receiver"], outcome.answer)
            usual = _FIRST_PAUSE * 2.0 ** min(row["tries"], _DOUBLINGS)
            pause = min(outcome.after or usual, _LONGEST_PAUSE)
            self._book.tried(row["notice"], outcome.answer, now + pause, state, now)
        return outcome.state

    def _outcome(self, notice: Notice, receiver: Receiver) -> Outcome:
        try:
            return self._send(notice, receiver, self._dashboard)
        except Exception as error:
            # Its words may hold a secret, as those of a token that is no header do.
            kind = type(error).__name__
            _LOG.error("receiver %s: sending failed with %s", receiver.name, kind)
            return Outcome(state="later", answer=f"sending failed: {kind}")


def _row(alert: Alert) -> dict[str, Any]:
    return {
        name: getattr(alert, name) for name in alert.__slots__ if name not in ("rule", "labels")
    }


def _posted(notice: Notice) -> dict[str, Any]:
    return {
        "receiver": notice.receiver,
        "key": notice.key,
        "subject": notice.subject,
        "body": asdict(notice),
    }


def notice_of(body: Mapping[str, Any]) -> Notice:
    """Return a notice from what the book says of it."""
    listed = {name: tuple(Told(**one) for one in body[name]) for name in ("firing", "resolved")}
    return Notice(**{**body, **listed})


def _silence(row: dict[str, Any]) -> Silence:
    return Silence(
        silence=str(row["silence"]),
        matchers=tuple(matcher(one) for one in row["matchers"]),
        owner=row["owner"],
        reason=row["reason"],
        begins=row["begins"],
        ends=row["ends"],
    )
