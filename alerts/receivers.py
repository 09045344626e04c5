"""Who can be told, and by what means; declared by the site, with every secret kept elsewhere."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, ClassVar, get_args, get_type_hints
from urllib.parse import urlsplit

from headway.events import Described


class Receiver:
    """Base of the kinds of receivers; `name` is the site's own."""

    __slots__ = ()
    kind: ClassVar[str]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDuty(Receiver):
    """PagerDuty, by its Events API of version 2."""

    kind: ClassVar[str] = "pagerduty"
    name: Annotated[str, Described("Name of the receiver.")]
    key: Annotated[str, Described("Where the routing key is: `file:PATH` or `env:NAME`.")]
    url: Annotated[str, Described("Address of the API.")] = "https://events.pagerduty.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack(Receiver):
    """A Slack channel, by an incoming webhook."""

    kind: ClassVar[str] = "slack"
    name: Annotated[str, Described("Name of the receiver.")]
    url: Annotated[str, Described("Where the webhook's address is: `file:PATH` or `env:NAME`.")]
    channel: Annotated[str | None, Described("Channel, where the webhook allows a choice.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(Receiver):
    """Any program that takes what Alertmanager's webhook sends, version 4."""

    kind: ClassVar[str] = "webhook"
    name: Annotated[str, Described("Name of the receiver.")]
    url: Annotated[str, Described("Its address, or where that is: `file:PATH` or `env:NAME`.")]
    token: Annotated[
        str | None, Described("Where the bearer token is: `file:PATH` or `env:NAME`.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Email(Receiver):
    """E-mail by SMTP."""

    kind: ClassVar[str] = "email"
    name: Annotated[str, Described("Name of the receiver.")]
    to: Annotated[str, Described("Address of the reader; several with commas between.")]
    sender: Annotated[str, Described("Address of the sender.")]
    host: Annotated[str, Described("The mail server.")]
    port: Annotated[int, Described("Its port.")] = 587
    user: Annotated[str | None, Described("Name to sign in with.")] = None
    password: Annotated[
        str | None, Described("Where the password is: `file:PATH` or `env:NAME`.")
    ] = None
    tls: Annotated[bool, Described("Speak TLS before anything is said (STARTTLS).")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Apprise(Receiver):
    """Any of the services that the library apprise knows; needs `headway[apprise]`."""

    kind: ClassVar[str] = "apprise"
    name: Annotated[str, Described("Name of the receiver.")]
    url: Annotated[str, Described("Where apprise's address is: `file:PATH` or `env:NAME`.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Receiver):
    """The collector's own log: for trying things out, and for what needs nobody."""

    kind: ClassVar[str] = "log"
    name: Annotated[str, Described("Name of the receiver.")]


KINDS: Mapping[str, type[Receiver]] = {
    kind.kind: kind for kind in (PagerDuty, Slack, Webhook, Email, Apprise, Log)
}
"""Every kind of receiver by its name."""
SECRETS: Mapping[str, tuple[str, ...]] = {
    "pagerduty": ("key",),
    "slack": ("url",),
    "webhook": ("token",),
    "email": ("password",),
    "apprise": ("url",),
    "log": (),
}
"""Options of each kind that never stand in the site's file themselves."""
_PLACES = ("file:", "env:")
_WRONG: Mapping[type, str] = {
    str: 'no text; write it in quotes, as in "..."',
    int: "no whole number; write it without quotes",
    bool: "neither true nor false; write one of them without quotes",
}


class ReceiverError(ValueError):
    """A receiver that cannot be used as it is declared."""


def receiver(name: str, options: Mapping[str, Any]) -> Receiver:
    """Return a receiver from what the site's file says of it.

    Raises:
        ReceiverError: no such kind, an unknown, missing or wrong option, a secret in the file.
    """
    where = f"receiver {name!r}"
    told = dict(options)
    kind = told.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ReceiverError(f"{where}: kind {kind!r}; choose one of {', '.join(KINDS)}")
    declared = KINDS[kind]
    known = {one.name: one for one in fields(declared) if one.name != "name"}  # type: ignore[arg-type]  # all are dataclasses
    for option, value in told.items():
        if option not in known:
            raise ReceiverError(
                f"{where}: {kind} has no option {option!r}; it has {', '.join(known) or 'none'}"
            )
        if option in SECRETS[kind] and not str(value).startswith(_PLACES):
            raise ReceiverError(
                f"{where}: {option} is a secret and may not stand in this file; "
                f"write file:PATH or env:NAME and keep it there"
            )
        _check(where, declared, option, value)
    missing = [
        option for option, one in known.items() if option not in told and one.default is MISSING
    ]
    if missing:
        raise ReceiverError(f"{where}: {kind} needs {', '.join(missing)}; give it")
    return declared(name=name, **told)  # type: ignore[call-arg]  # every kind has a name


def _check(where: str, declared: type[Receiver], option: str, value: Any) -> None:
    """Refuse a value of another type than is declared, and what can be no address or port."""
    expected = get_type_hints(declared)[option]
    expected = next((one for one in get_args(expected) if one is not type(None)), expected)
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise ReceiverError(f"{where}: {option} {value!r} is {_WRONG[expected]}")
    if expected is str and not value.removeprefix("file:").removeprefix("env:").strip():
        raise ReceiverError(
            f"{where}: {option} {value!r} is empty; write it, or leave the line out"
        )
    if option == "port" and not 0 < value < 2**16:
        raise ReceiverError(f"{where}: port {value!r} is none; choose one from 1 to 65535")
    if option == "url" and not value.startswith(_PLACES):
        found = urlsplit(value)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ReceiverError(
                f"{where}: url {value!r} is no address; begin it with http:// or https://, "
                "or write file:PATH or env:NAME"
            )
