"""`headway alerts`: what fires and why, who would be told, silences, and the files for others."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.asking import add_source, source
from headway.cli.moments import moment
from headway.cli.notes import author_of
from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import CollectorSettings

if TYPE_CHECKING:
    from headway.storage.alert_client import AlertClient

_FORMS = ("prometheus", "alertmanager")


def add(subparsers: Any) -> None:
    """Declare the command and what it does."""
    parser = subparsers.add_parser(
        "alerts",
        help="say what fires and why, who is told, silence it, write rules for Prometheus",
        description="What fires and why, whom it reaches, and what keeps it quiet.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    check = _asking(actions, "check", _check, "say what fires now and why; exit 1 if a page does")
    check.add_argument("--all", action="store_true", help="Show what is hidden as well.")
    explain = _asking(actions, "explain", _explain, "say why a rule fires or does not")
    explain.add_argument("rule", metavar="RULE", help="Name of the rule.")
    explain.add_argument("subject", metavar="RUN", nargs="?", help="Run, or node of a node's rule.")
    route = _asking(actions, "route", _route, "say who would be told of an alert")
    _labels(route)
    test = _asking(actions, "test", _test, "send a test to whom labels lead")
    _labels(test)
    ack = _asking(actions, "ack", _ack, "take what was told: it is not repeated any more")
    ack.add_argument("key", metavar="KEY", help="Key of the notice, as `check` prints it.")
    _author(ack)
    silence = _asking(actions, "silence", _silence, "keep alerts quiet for a time")
    silence.add_argument(
        "matchers", metavar="MATCHER", nargs="*", help='Which, such as run="llama-8b".'
    )
    silence.add_argument("--for", dest="length", metavar="TIME", help="How long, such as 2h.")
    silence.add_argument("--until", metavar="TIME", help="Until when, an ISO time.")
    silence.add_argument("--reason", help="Why, for whoever wonders at night.")
    silence.add_argument("--end", metavar="NUMBER", type=int, help="End this silence now instead.")
    _author(silence)
    _asking(actions, "silences", _silences, "list every silence, the newest first")
    log = _asking(actions, "log", _log, "list the newest notices with what became of each")
    log.add_argument("--limit", type=int, default=20, help="Most notices. Default: 20.")
    _add_export(actions)


def _add_export(actions: Any) -> None:
    export = actions.add_parser(
        "export",
        help="write the rules for Prometheus, or the routes for Alertmanager",
        description="Write the rules as Prometheus (2.42 or newer) takes them, or routes and "
        "receivers of the alerts file as Alertmanager (0.25 or newer) does.",
    )
    export.add_argument("form", choices=_FORMS, help="For whom.")
    export.add_argument("--output", type=Path, metavar="FILE", help="Default: standard output.")
    add_settings(export, CollectorSettings, only=("alerts_file", "dashboard_url"))
    export.set_defaults(run=_export)


def _asking(actions: Any, name: str, run: Any, sentence: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=sentence, description=f"{sentence[0].upper()}{sentence[1:]}."
    )
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)
    return parser


def _labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        metavar="NAME=VALUE",
        nargs="*",
        default=[],
        help="Labels of the alert, such as team=llm severity=page.",
    )


def _author(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--author", help="Who says so. Default: the name of your login.")


def _check(arguments: argparse.Namespace) -> int:
    from headway.cli.alerts_text import print_alerts

    with _alerts(arguments) as client:
        state = client.state()
    if arguments.json:
        print(json.dumps(state, sort_keys=True))
    else:
        print_alerts(state, hidden=arguments.all)
    pages = (
        one["state"] == "firing" and one["hidden"] is None and one["labels"]["severity"] == "page"
        for one in state["alerts"]
    )
    return 1 if any(pages) else 0


def _explain(arguments: argparse.Namespace) -> int:
    from headway.cli.alerts_text import print_explanation

    with _alerts(arguments) as client:
        rules = {one["rule"]: one for one in client.rules()}
        if arguments.rule not in rules:
            raise Refusal(f"no rule {arguments.rule!r}", f"choose one of: {', '.join(rules)}")
        state = client.state()
        values = client.values(arguments.rule)

    def meant(one: Mapping[str, Any]) -> bool:
        return arguments.subject in (None, one["labels"].get("run"), one["labels"].get("node"))

    found = {
        "rule": rules[arguments.rule],
        "alerts": [one for one in state["alerts"] if one["rule"] == arguments.rule and meant(one)],
        "values": [one for one in values if meant(one)],
    }
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_explanation(found, arguments.subject)
    return 0


def _route(arguments: argparse.Namespace) -> int:
    return _ways(arguments, "route")


def _test(arguments: argparse.Namespace) -> int:
    return _ways(arguments, "test")


def _ways(arguments: argparse.Namespace, what: str) -> int:
    from headway.cli.alerts_text import print_ways

    labels = dict(map(_label, arguments.labels))
    with _alerts(arguments) as client:
        found = client.test(labels) if what == "test" else client.route(labels)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_ways(found, sent=what == "test")
    return 0


def _ack(arguments: argparse.Namespace) -> int:
    author = author_of(arguments)
    with _alerts(arguments) as client:
        client.acknowledge(arguments.key, author)
    print(json.dumps({"acknowledged": arguments.key}) if arguments.json else f"{author} has it")
    return 0


def _silence(arguments: argparse.Namespace) -> int:
    from headway.cli.alerts_text import print_silences

    author = author_of(arguments)
    with _alerts(arguments) as client:
        if arguments.end is not None:
            client.end_silence(arguments.end, author)
            print(f"silence {arguments.end} is over")
            return 0
        until = _until(arguments)
        if not arguments.matchers:
            raise Refusal("a silence needs a matcher", """write for example 'run="llama-8b"'""")
        if not arguments.reason:
            raise Refusal("a silence needs a reason", "give it with --reason")
        made = client.silence(arguments.matchers, author, arguments.reason, until)
    if arguments.json:
        print(json.dumps(made, sort_keys=True))
    else:
        print_silences([made])
    return 0


def _silences(arguments: argparse.Namespace) -> int:
    from headway.cli.alerts_text import print_silences

    with _alerts(arguments) as client:
        found = client.silences()
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_silences(found)
    return 0


def _log(arguments: argparse.Namespace) -> int:
    from headway.cli.alerts_text import print_deliveries

    with _alerts(arguments) as client:
        found = client.deliveries(arguments.limit)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_deliveries(found["deliveries"])
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from headway.alerts.alertmanager import ExportError, configuration
    from headway.alerts.catalogue import GROUPS
    from headway.alerts.prometheus_rules import rule_file
    from headway.cli.alerting import site_of

    settings = settings_of(CollectorSettings, arguments)
    site = site_of(settings.alerts_file)
    if arguments.form == "prometheus":
        groups = {
            name: [site.rules[rule.name] for rule in rules if rule.name in site.rules]
            for name, rules in GROUPS.items()
        }
        text = rule_file(groups, settings.dashboard_url)
    else:
        try:
            text = configuration(site)
        except ExportError as error:
            raise Refusal(str(error)) from error
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        try:
            arguments.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refusal(f"cannot write {str(arguments.output)!r}: {error}") from error
    return 0


def _until(arguments: argparse.Namespace) -> int:
    now = time.time_ns()
    if (arguments.length is None) is (arguments.until is None):
        raise Refusal("say for how long", "give --for 2h or --until 2026-11-30T08:00")
    try:
        if arguments.length is not None:
            return now + (now - moment(arguments.length, now))
        return moment(arguments.until, now)
    except ValueError as error:
        raise Refusal(str(error)) from error


def _label(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise Refusal(f"label {given!r} must be NAME=VALUE", "write for example team=llm")
    return name, value


@contextmanager
def _alerts(arguments: argparse.Namespace) -> Iterator["AlertClient"]:
    """Give a client of the collector's alerting; what it cannot answer is a refusal."""
    from headway.storage.alert_client import AlertClient

    with source(arguments) as client:
        yield AlertClient(client)
