"""Sends a notice to a receiver, and says what came of it; secrets are read when they are needed."""

import json
import logging
import os
import smtplib
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import httpx

from headway.alerts import payloads
from headway.alerts.notices import Notice
from headway.alerts.receivers import Apprise, Email, Log, PagerDuty, Receiver, Slack, Webhook

_LOG = logging.getLogger(__name__)

TIMEOUT = 10.0
"""Longest time in seconds that a receiver may take to answer."""
_LATER = (408, 425, 429)
"""Statuses below 500 that ask to come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one try; `after` is the pause in seconds that the receiver asks for."""

    state: Literal["delivered", "later", "refused"]
    answer: str
    after: float | None = None


def send(notice: Notice, receiver: Receiver, external_url: str) -> Outcome:
    """Send a notice; one that cannot be sent is an outcome too, never an exception."""
    try:
        match receiver:
            case PagerDuty():
                key = secret(receiver.key)
                body = payloads.pagerduty(notice, key, external_url)
                return _post(f"{receiver.url.rstrip('/')}/v2/enqueue", body, hidden=(key,))
            case Slack():
                address = secret(receiver.url)
                message = payloads.slack(notice, receiver.channel)
                return _post(address, message, hidden=_secrets(address))
            case Webhook():
                token = None if receiver.token is None else secret(receiver.token)
                address = _address(receiver.url)
                hidden = () if address == receiver.url else _secrets(address)
                body = payloads.webhook(notice, external_url)
                return _post(address, body, token, hidden=hidden)
            case Email():
                return _mail(notice, receiver)
            case Apprise():
                return _apprise(notice, receiver)
            case Log():
                lines = [payloads.headline(notice), *payloads.details(notice)]
                _LOG.warning("%s %s: %s", notice.status, notice.subject, " ".join(lines))
                return Outcome(state="delivered", answer="logged")
    except SecretError as error:
        return Outcome(state="later", answer=str(error))
    raise AssertionError(receiver)


class SecretError(RuntimeError):
    """A secret that is not where the site says it is."""


def secret(place: str) -> str:
    """Return what stands at `file:PATH` or `env:NAME`.

    Raises:
        SecretError: nothing stands there.
    """
    where, _, name = place.partition(":")
    if where == "env":
        found = os.environ.get(name)
        if not found:
            raise SecretError(f"the environment has no {name}; set it for the collector")
        return found.strip()
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"cannot read the secret in {name}: {error}") from error


def _address(url: str) -> str:
    return secret(url) if url.startswith(("file:", "env:")) else url


def _secrets(address: str) -> tuple[str, ...]:
    """Return what of a secret address a receiver may say back: all of it, or its path."""
    found = urlsplit(address)
    path = f"{found.path}?{found.query}" if found.query else found.path
    return (address, *([path] if path.strip("/") else []))


def _post(
    url: str, body: object, token: str | None = None, *, hidden: tuple[str, ...] = ()
) -> Outcome:
    """Post a body; of the answer nothing is kept that is `hidden`, nor the token."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        answer = httpx.post(url, content=json.dumps(body), headers=headers, timeout=TIMEOUT)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # The address may hold a secret: the error's kind is told, not its words.
        return Outcome(state="later", answer=f"cannot be reached: {type(error).__name__}")
    words = f"HTTP {answer.status_code}"
    if answer.is_success:
        return Outcome(state="delivered", answer=words)
    if answer.status_code >= 500 or answer.status_code in _LATER:
        return Outcome(state="later", answer=words, after=_pause(answer))
    said = answer.text
    for one in (*hidden, *([token] if token else [])):
        said = said.replace(one, "***")
    said = " ".join(said[:200].split())
    return Outcome(state="refused", answer=f"{words}: {said}" if said else words)


def _pause(answer: httpx.Response) -> float | None:
    asked = answer.headers.get("Retry-After", "")
    return float(asked) if asked.isascii() and asked.isdigit() else None


def _mail(notice: Notice, receiver: Email) -> Outcome:
    try:
        with smtplib.SMTP(receiver.host, receiver.port, timeout=TIMEOUT) as server:
            if receiver.tls:
                server.starttls(context=ssl.create_default_context())
            if receiver.user is not None and receiver.password is not None:
                server.login(receiver.user, secret(receiver.password))
            server.send_message(payloads.mail(notice, receiver))
    except smtplib.SMTPResponseException as error:
        words = f"SMTP {error.smtp_code}"
        return Outcome(state="refused" if error.smtp_code >= 500 else "later", answer=words)
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        refused = all(code >= 500 for code in codes)
        words = f"SMTP {codes} for the readers"
        return Outcome(state="refused" if refused else "later", answer=words)
    except (smtplib.SMTPException, OSError) as error:
        return Outcome(state="later", answer=f"cannot be reached: {type(error).__name__}")
    return Outcome(state="delivered", answer="SMTP 250")


def _apprise(notice: Notice, receiver: Apprise) -> Outcome:
    try:
        import apprise
    except ImportError:
        return Outcome(state="refused", answer="install headway[apprise] beside the collector")
    service = apprise.Apprise()
    if not service.add(secret(receiver.url)):
        return Outcome(state="refused", answer="apprise does not know this address")
    body = "\n".join(payloads.details(notice))
    done = service.notify(body=body, title=payloads.headline(notice))
    return Outcome(state="delivered" if done else "later", answer="apprise: " + str(bool(done)))
