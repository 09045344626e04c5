"""The pages about alerts: the table of all rules, and a runbook for each."""

from collections.abc import Mapping

from headway.alerts.catalogue import GROUPS, RULES
from headway.alerts.prometheus_rules import expression
from headway.alerts.rule import AREAS, SEVERITIES, Rule
from headway.alerts.texts import condition
from headway.cli.generated import page
from headway.metrics import METRICS
from headway.wording import duration

_SECOND = 10**9


def runbook_pages() -> Mapping[str, str]:
    """Return the page of the rules and every runbook by its path in the repository."""
    return {
        "docs/reference/alerts.md": _rules_page(),
        **{f"docs/runbooks/{rule.name}.md": _runbook(rule) for rule in RULES.values()},
    }


def _rules_page() -> str:
    parts = [
        "# Alert rules",
        "Declared in `alerts/catalogue/`. Each compares one published metric; the same declaration "
        "is the rule of Prometheus and of the embedded engine. A site changes threshold, severity "
        "and times in its [alerts file](../alerts.md).",
        "Severities: "
        + "; ".join(f"`{name}`: {words}" for name, words in SEVERITIES.items())
        + ".",
        "Areas: " + "; ".join(f"`{name}`: {words}" for name, words in AREAS.items()) + ".",
    ]
    for name, rules in GROUPS.items():
        rows = [
            f"| [{rule.name}](../runbooks/{rule.name}.md) | `{condition(rule)}` | {_held(rule)} | "
            f"{rule.severity} | {rule.area} |"
            for rule in rules
        ]
        head = ["| rule | fires when | for | severity | area |", "| --- | --- | --- | --- | --- |"]
        parts += [f"## {name.capitalize()}", "\n".join([*head, *rows])]
    return page(parts)


def _runbook(rule: Rule) -> str:
    parts = [
        f"# {rule.name}",
        f"*{_sentence(rule.summary)}*",
        rule.meaning,
        f"**Fires when** `{condition(rule)}` for {_held(rule)}, and {duration(_ns(rule.keep))} "
        f"longer than that. Severity `{rule.severity}`, area `{rule.area}`.",
        "## Look",
        _bullets(rule.look),
        "## Act",
        _bullets(rule.act),
        "## Threshold",
        rule.change,
        "## What it compares",
        f"`{rule.metric}`: {METRICS[rule.metric].description}",
        f"```\n{expression(rule)}\n```",
    ]
    if rule.inhibits:
        weaker = ", ".join(f"[{name}]({name}.md)" for name in rule.inhibits)
        parts.append(f"While it fires these are not told of the same run: {weaker}.")
    return page(parts)


def _sentence(summary: str) -> str:
    words = summary.replace("{", "`").replace("}", "`")
    return f"{words[0].upper()}{words[1:]}."


def _held(rule: Rule) -> str:
    return duration(_ns(rule.hold)) if rule.hold else "one look"


def _ns(seconds: int) -> int:
    return seconds * _SECOND


def _bullets(lines: tuple[str, ...]) -> str:
    return "\n".join(f"- {line}" for line in lines)
