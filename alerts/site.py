"""What a site says about alerts in its file: thresholds, receivers, routes, maintenance. Pure.

    default = "oncall"

    [rules.RestartLoop]
    threshold = 5

    [receivers.oncall]
    kind = "pagerduty"
    key = "file:/run/secrets/pagerduty"

    [[routes]]
    match = ['team="llm"', 'severity="page"']
    receiver = "llm"
    mute = ["nights"]

    [maintenance.nights]
    days = ["saturday", "sunday"]
    from = "22:00"
    to = "06:00"
    zone = "Europe/Berlin"

Unknown names are refused with the known ones beside them: a misspelt team must not go unpaged.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from headway.alerts.catalogue import RULES
from headway.alerts.maintenance import Maintenance, MaintenanceError, maintenance
from headway.alerts.matching import MatcherError, matcher
from headway.alerts.receivers import Log, Receiver, ReceiverError, receiver
from headway.alerts.routing import Route
from headway.alerts.rule import Rule, Severity

_TOP = ("default", "rules", "receivers", "routes", "maintenance")
_RULE = ("threshold", "severity", "hold", "keep", "off")
_ROUTE = (
    "match",
    "receiver",
    "routes",
    "continue",
    "group_wait",
    "group_interval",
    "repeat_interval",
    "mute",
    "escalate_to",
    "escalate_after",
)
_TIMES = ("group_wait", "group_interval", "repeat_interval", "escalate_after")


class SiteError(ValueError):
    """A site's file that cannot be used; says where, and what may stand there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The rules as the site has them, its receivers, its routes and its maintenance windows."""

    rules: Mapping[str, Rule]
    receivers: Mapping[str, Receiver]
    root: Route
    maintenance: Mapping[str, Maintenance] = field(default_factory=dict)


DEFAULT = Site(rules=RULES, receivers={"log": Log(name="log")}, root=Route(receiver="log"))
"""What holds without a file: every rule, and all alerts in the collector's log."""


def site(text: str) -> Site:
    """Return what a site's file says.

    Raises:
        SiteError: not TOML, an unknown name, a value of the wrong kind, no default receiver.
    """
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SiteError(f"this is no TOML: {error}") from error
    _known("the file", told, (*_TOP, *_TIMES[:-1]))
    try:
        receivers = {
            name: receiver(name, options) for name, options in _tables(told, "receivers").items()
        } or dict(DEFAULT.receivers)
        windows = {
            name: maintenance(name, options)
            for name, options in _tables(told, "maintenance").items()
        }
    except (ReceiverError, MaintenanceError) as error:
        raise SiteError(str(error)) from error
    default = told.get("default", next(iter(receivers)) if len(receivers) == 1 else None)
    if not isinstance(default, str) or default not in receivers:
        raise SiteError(
            f"default {default!r} is no receiver; it hears of what no route takes: "
            f"choose one of {', '.join(receivers)}"
        )
    root = Route(
        receiver=default,
        routes=_routes("routes", told.get("routes", ()), receivers, windows),
        **_times("the file", told, _TIMES[:-1]),
    )
    rules = _rules(_tables(told, "rules"))
    return Site(rules=rules, receivers=receivers, root=root, maintenance=windows)


def _rules(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Rule]:
    found = dict(RULES)
    for name, options in told.items():
        where = f"rules.{name}"
        if name not in RULES:
            raise SiteError(f"{where}: no such rule; the catalogue has {', '.join(RULES)}")
        _known(where, options, _RULE)
        if _flag(where, options, "off"):
            del found[name]
            continue
        rule = RULES[name]
        if "severity" in options and options["severity"] not in get_args(Severity):
            choices = ", ".join(get_args(Severity))
            raise SiteError(f"{where}: severity {options['severity']!r}; choose one of {choices}")
        threshold = options.get("threshold", rule.threshold)
        is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not is_number or not math.isfinite(threshold):
            raise SiteError(f"{where}: threshold {threshold!r} is no number")
        found[name] = replace(
            rule,
            threshold=threshold,
            severity=options.get("severity", rule.severity),
            hold=_seconds(f"{where}.hold", options.get("hold", rule.hold)),
            keep=_seconds(f"{where}.keep", options.get("keep", rule.keep)),
        )
    return found


def _routes(
    where: str,
    told: Any,
    receivers: Mapping[str, Receiver],
    windows: Mapping[str, Maintenance],
) -> tuple[Route, ...]:
    if not isinstance(told, list | tuple):
        raise SiteError(f"{where}: write each route as [[routes]]")
    found = []
    for number, options in enumerate(told, start=1):
        here = f"{where}[{number}]"
        _known(here, options, _ROUTE)
        for option in ("receiver", "escalate_to"):
            name = options.get(option)
            if name is not None and (not isinstance(name, str) or name not in receivers):
                raise SiteError(
                    f"{here}: {option} {name!r} is not declared; "
                    f"declared are {', '.join(receivers)}"
                )
        for name in _texts(here, options, "mute"):
            if name not in windows:
                raise SiteError(
                    f"{here}: maintenance {name!r} is not declared; "
                    f"declared are {', '.join(windows) or 'none'}"
                )
        if ("escalate_to" in options) is not ("escalate_after" in options):
            raise SiteError(f"{here}: escalate_to and escalate_after go together")
        try:
            matchers = tuple(matcher(one) for one in _texts(here, options, "match"))
        except MatcherError as error:
            raise SiteError(f"{here}: {error}") from error
        if not matchers:
            raise SiteError(f"{here}: match is empty, so that no later route would be asked")
        found.append(
            Route(
                receiver=options.get("receiver"),
                matchers=matchers,
                routes=_routes(f"{here}.routes", options.get("routes", ()), receivers, windows),
                goes_on=_flag(here, options, "continue"),
                mute=_texts(here, options, "mute"),
                escalate_to=options.get("escalate_to"),
                **_times(here, options, _TIMES),
            )
        )
    return tuple(found)


def _times(where: str, told: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _seconds(f"{where}.{name}", told[name]) for name in names if name in told}


def _tables(told: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    table = told.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(one, dict) for one in table.values()):
        raise SiteError(f"{name}: write [{name}.NAME] and its options below")
    return table


def _known(where: str, told: Any, names: tuple[str, ...]) -> None:
    if not isinstance(told, dict):
        raise SiteError(f"{where}: a table was expected, not {told!r}")
    for name in told:
        if name not in names:
            raise SiteError(f"{where}: unknown option {name!r}; known are {', '.join(names)}")


def _texts(where: str, options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = options.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise SiteError(f'{where}: {name} {value!r}; write a list of texts, as in ["...", "..."]')
    return tuple(value)


def _flag(where: str, options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise SiteError(f"{where}: {name} {value!r}; write true or false")
    return value


def _seconds(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SiteError(f"{where}: {value!r} is no whole number of seconds")
    return value
