"""Alerts over HTTP: what fires and whom it reached, silences, acknowledgements, a trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.alerting import Alerting
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint, NotKnown
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service

_SECOND = 10**9
_LABELS = Asked(
    sentence='Labels of an alert, such as {"team": "llm", "severity": "page"}.',
    example='{"team": "llm", "severity": "page"}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsQuestion:
    """A question about all alerts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRule:
    """A rule."""

    rule: Annotated[str, Asked(sentence="Name of the rule.", example="RestartLoop")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesQuestion:
    """A question about notices."""

    limit: Annotated[int, Asked(sentence="Most notices.", lowest=1, highest=1_000)] = 100
    before: Annotated[int | None, Asked(sentence="Only those before this number.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsQuestion:
    """Labels of an alert."""

    labels: Annotated[dict[str, Any], _LABELS]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSilence:
    """Somebody keeps alerts quiet for a time."""

    matchers: Annotated[
        tuple[str, ...],
        Asked(sentence="Which alerts: all of these matchers.", example='team="llm"'),
    ]
    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]
    reason: Annotated[str, Asked(sentence="Say why in words.")]
    until: Annotated[int, Asked(sentence="When it ends, UTC ns.")]
    since: Annotated[int | None, Asked(sentence="When it begins, UTC ns; now without it.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSilence:
    """A silence."""

    silence: Annotated[int, Asked(sentence="Number of the silence.")]
    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Somebody takes what was told under a key."""

    key: Annotated[str, Asked(sentence="Key of the notices about it.")]
    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]


def alerts(service: Service, asked: AlertsQuestion) -> Answer:
    """What fires, is pending or hidden and why, and whom it was told."""
    found = _alerting(service).state()
    looked = found.pop("looked_at")
    whole = {**found, "as_of": None if looked is None else round(looked * _SECOND)}
    return Answer(content=lambda: whole)


def alert_rules(service: Service, asked: AlertsQuestion) -> Answer:
    """The rules as the site has them."""
    found = {"rules": _alerting(service).rules()}
    return Answer(content=lambda: found)


def compared_values(service: Service, asked: OneRule) -> Answer:
    """What a rule compares now, of each series that there is: why it fires, or does not."""
    found = _alerting(service).values(asked.rule)
    if found is None:
        raise NotKnown(f"no rule {asked.rule!r}", "List them with /api/v1/alerts/rules.")
    return Answer(content=lambda: {"values": found})


def deliveries(service: Service, asked: DeliveriesQuestion) -> Answer:
    """The newest notices with what became of each."""
    found = _alerting(service).deliveries(asked.limit, asked.before)
    after = found[-1]["notice"] if len(found) == asked.limit else None
    return Answer(content=lambda: {"deliveries": found, "next": after})


def silences(service: Service, asked: AlertsQuestion) -> Answer:
    """Every silence, the newest first."""
    found = _alerting(service).silences()
    return Answer(content=lambda: {"silences": found})


def new_silence(service: Service, asked: NewSilence) -> Answer:
    """Keep alerts quiet for a time; answers with the silence."""
    begins = None if asked.since is None else asked.since / _SECOND
    try:
        made = _alerting(service).silence(
            asked.matchers,
            asked.author.strip(),
            asked.reason.strip(),
            begins,
            asked.until / _SECOND,
        )
    except ValueError as error:
        raise BadQuestion(str(error), "Correct it and ask again.") from error
    return Answer(content=lambda: made)


def end_silence(service: Service, asked: OneSilence) -> Answer:
    """End a silence now."""
    if not _alerting(service).end_silence(asked.silence):
        raise NotKnown(f"no silence {asked.silence}", "List them with `headway alerts silences`.")
    return Answer(content=lambda: {"ended": asked.silence})


def acknowledge_alert(service: Service, asked: Taking) -> Answer:
    """Take what was told under a key: it is not repeated, and it does not escalate."""
    if not _alerting(service).acknowledge(asked.key, asked.author.strip()):
        raise NotKnown(
            f"nothing fires under key {asked.key!r}", "List what fires with `headway alerts check`."
        )
    return Answer(content=lambda: {"acknowledged": asked.key})


def route_preview(service: Service, asked: LabelsQuestion) -> Answer:
    """Whom an alert with these labels would reach, and why."""
    found = _alerting(service).route(_texts(asked.labels))
    return Answer(content=lambda: {"ways": found})


def alert_test(service: Service, asked: LabelsQuestion) -> Answer:
    """Send a notice that says that it is a test to whom these labels lead."""
    try:
        found = _alerting(service).test(_texts(asked.labels))
    except ValueError as error:
        raise BadQuestion(str(error), "Mend that and send it again.") from error
    return Answer(content=lambda: {"notices": found})


def _texts(labels: Mapping[str, Any]) -> dict[str, str]:
    for name, value in labels.items():
        if not isinstance(value, str):
            raise BadQuestion(
                f"label {name!r} must be a text, got {value!r}", "Write it in quotes."
            )
    return dict(labels)


def _alerting(service: Service) -> Alerting:
    if service.alerting is None:
        raise BadQuestion(
            "alerting is off in this collector",
            "Start `headway collect` without `--alerting no` to have it; a closed file has none.",
        )
    return service.alerting


_TEXTS = map_of(schemas.TEXT)
_ALERT = object_of(
    rule=schemas.TEXT,
    state=schemas.TEXT,
    value=schemas.NUMBER,
    condition=schemas.TEXT,
    labels=_TEXTS,
    annotations=_TEXTS,
    since=schemas.NUMBER,
    fired=optional(schemas.NUMBER),
    hidden=optional(schemas.TEXT),
    fires_at=optional(schemas.NUMBER),
)
_GROUP = object_of(
    key=schemas.TEXT,
    receiver=schemas.TEXT,
    subject=schemas.TEXT,
    severity=schemas.TEXT,
    opened=schemas.NUMBER,
    told=optional(schemas.NUMBER),
    acknowledged_by=optional(schemas.TEXT),
    acknowledged_at=optional(schemas.NUMBER),
    escalated_to=optional(schemas.TEXT),
)
_SILENCE = object_of(
    silence=schemas.INTEGER,
    matchers=list_of(schemas.TEXT),
    owner=schemas.TEXT,
    reason=schemas.TEXT,
    begins=schemas.NUMBER,
    ends=schemas.NUMBER,
    state=schemas.TEXT,
)
_DELIVERY = object_of(
    notice=schemas.INTEGER,
    receiver=schemas.TEXT,
    key=schemas.TEXT,
    subject=schemas.TEXT,
    status=schemas.TEXT,
    severity=schemas.TEXT,
    why=schemas.TEXT,
    headline=schemas.TEXT,
    state=schemas.TEXT,
    created=schemas.NUMBER,
    due=schemas.NUMBER,
    ended=optional(schemas.NUMBER),
    tries=schemas.INTEGER,
    answer=optional(schemas.TEXT),
)
_UNDELIVERED = object_of(
    receiver=schemas.TEXT,
    notices=schemas.INTEGER,
    since=schemas.NUMBER,
    state=schemas.TEXT,
    tries=schemas.INTEGER,
    answer=optional(schemas.TEXT),
    words=schemas.TEXT,
)
_HANDOVER = object_of(address=schemas.TEXT, failure=optional(schemas.TEXT))
_WAY = object_of(
    receiver=schemas.TEXT,
    kind=schemas.TEXT,
    because=schemas.TEXT,
    repeat_s=schemas.INTEGER,
    escalate_to=optional(schemas.TEXT),
    escalate_after_s=optional(schemas.INTEGER),
    muted=schemas.FLAG,
)
_VALUE = object_of(labels=_TEXTS, value=schemas.NUMBER, holds=schemas.FLAG)
_RULE = object_of(
    rule=schemas.TEXT,
    condition=schemas.TEXT,
    severity=schemas.TEXT,
    area=schemas.TEXT,
    hold_s=schemas.INTEGER,
    keep_s=schemas.INTEGER,
    meaning=schemas.TEXT,
    change=schemas.TEXT,
    look=list_of(schemas.TEXT),
    act=list_of(schemas.TEXT),
    inhibits=list_of(schemas.TEXT),
)
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/alerts",
        alerts,
        object_of(
            alerts=list_of(_ALERT),
            groups=list_of(_GROUP),
            undelivered=list_of(_UNDELIVERED),
            alertmanager=optional(_HANDOVER),
            as_of=optional(schemas.INTEGER),
        ),
    ),
    Endpoint.get(
        "/api/v1/alerts/rules",
        alert_rules,
        object_of(rules=list_of(_RULE)),
    ),
    Endpoint.get(
        "/api/v1/alerts/rules/{rule}/values",
        compared_values,
        object_of(values=list_of(_VALUE)),
    ),
    Endpoint.get(
        "/api/v1/alerts/deliveries",
        deliveries,
        object_of(deliveries=list_of(_DELIVERY), next=optional(schemas.INTEGER)),
    ),
    Endpoint.get(
        "/api/v1/alerts/silences",
        silences,
        object_of(silences=list_of(_SILENCE)),
    ),
    Endpoint.post(
        "/api/v1/alerts/silences",
        new_silence,
        _SILENCE,
    ),
    Endpoint.post(
        "/api/v1/alerts/silences/{silence}/end",
        end_silence,
        object_of(ended=schemas.INTEGER),
    ),
    Endpoint.post(
        "/api/v1/alerts/acknowledge",
        acknowledge_alert,
        object_of(acknowledged=schemas.TEXT),
    ),
    Endpoint.post(
        "/api/v1/alerts/route",
        route_preview,
        object_of(ways=list_of(_WAY)),
    ),
    Endpoint.post(
        "/api/v1/alerts/test",
        alert_test,
        object_of(notices=list_of(_WAY)),
    ),
)
