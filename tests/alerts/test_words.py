"""What an alert says: the same words from Prometheus' templates and from the embedded engine."""

import json
import subprocess
from pathlib import Path

import pytest

from headway.alerts.catalogue import GROUPS, RULES
from headway.alerts.prometheus_rules import rule_file
from headway.alerts.rule import Rule
from headway.alerts.texts import fields_of, shown, subject, summary

LABELS = {
    "run": "llama",
    "layer": "in_process",
    "node": "n7",
    "phase": "save",
    "timeout": "t",
    "receiver": "pager",
}
HELD_FOR = 3600


def promtool(tmp_path: Path, tests: list[object]) -> None:
    """Run promtool's tests of the whole catalogue."""
    rules = tmp_path / "rules.yml"
    rules.write_text(rule_file(GROUPS, "http://127.0.0.1:8752"), encoding="utf-8")
    written = tmp_path / "tests.yml"
    whole = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}
    written.write_text(json.dumps(whole), encoding="utf-8")
    told = subprocess.run(
        ["promtool", "test", "rules", str(written)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, (told.stdout + told.stderr)[-4000:]


def true_value(rule: Rule) -> float:
    """Return a value that makes a rule true and reads oddly."""
    return {
        "<=": rule.threshold,
        ">=": rule.threshold + 1 / 3,
        ">": rule.threshold + 100 / 3,
        "==": rule.threshold,
    }[rule.comparison]


def series(metric: str, labels: dict[str, str]) -> str:
    inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
    return f"{metric}{{{inside}}}"


@pytest.mark.slow
def test_summaries_read_the_same_in_both_engines(tmp_path: Path) -> None:
    tests: list[object] = []
    for rule in RULES.values():
        value = true_value(rule)
        own = {name: LABELS[name] for name in rule.labels}
        fixed = {"severity": rule.severity, "area": rule.area, "subject": subject(rule, own)}
        expected = {
            "exp_labels": {**own, **fixed},
            "exp_annotations": {
                "summary": summary(rule, value, own),
                "description": rule.meaning,
                "runbook": f"docs/runbooks/{rule.name}.md",
            },
        }
        if "run" in own:
            address = "http://127.0.0.1:8752/run?run=llama"
            unknown = dict.fromkeys(("stake", "suspect", "incident_url"), "")
            expected["exp_annotations"] |= {"run_url": address, **unknown}
        elif "node" in own:
            expected["exp_annotations"]["node_url"] = "http://127.0.0.1:8752/hardware?node=n7"
        alert = {"alertname": rule.name, "eval_time": f"{HELD_FOR}s", "exp_alerts": [expected]}
        given = {"series": series(rule.metric, own | dict(rule.only)), "values": f"{value}x60"}
        tests.append({"interval": "1m", "input_series": [given], "alert_rule_test": [alert]})
    promtool(tmp_path, tests)


@pytest.mark.slow
def test_an_alert_names_the_run_s_people_the_suspect_the_stake_and_the_incident(
    tmp_path: Path,
) -> None:
    rule = RULES["RestartLoop"]
    known = {"run": "llama 8b", "team": "llm", "cluster": "east", "owner": "ada"}
    incident = {
        "run": "llama 8b",
        "incident": "abc",
        "cause": "gpu_fault",
        "suspect_node": "n7",
        "suspect_rank": "12",
    }
    given = [
        {"series": series(rule.metric, {"run": "llama 8b"}), "values": "4x10"},
        {"series": series("headway_run_info", {**known, "run_name": "x"}), "values": "1x10"},
        {"series": series("headway_open_incident_gpu_seconds", incident), "values": "90000x10"},
        {"series": series("headway_gpu_hour_price", {"currency": "EUR"}), "values": "2x10"},
    ]
    fixed = {"severity": "page", "area": "training", "subject": "run llama 8b"}
    fixed["cause"] = "gpu_fault"
    expected = {
        "exp_labels": {**known, **fixed},
        "exp_annotations": {
            "summary": summary(rule, 4, known),
            "description": rule.meaning,
            "runbook": "docs/runbooks/RestartLoop.md",
            "stake": "25.0 GPU-hours so far, 50 EUR",
            "suspect": "gpu_fault, node n7, rank 12",
            "run_url": "http://127.0.0.1:8752/run?run=llama+8b",
            "incident_url": "http://127.0.0.1:8752/incident?incident=abc",
        },
    }
    alert = {"alertname": "RestartLoop", "eval_time": "60s", "exp_alerts": [expected]}
    promtool(tmp_path, [{"interval": "15s", "input_series": given, "alert_rule_test": [alert]}])


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_says_what_it_is_about_and_what_to_do(rule: Rule) -> None:
    assert fields_of(rule.summary) <= {"value", *rule.labels}
    assert rule.look
    assert rule.act
    assert rule.change.endswith(".")
    assert set(rule.inhibits) <= set(RULES) - {rule.name}
    graver = {name for name in rule.inhibits if RULES[name].severity == "page"}
    assert rule.severity == "page" or not graver, "a ticket hides no page"


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        ("RestartLoop", 3.0, "3"),
        ("RunHung", 1.26, "1.3"),
        ("PhaseNearTimeout", 0.7123, "71.23%"),
        ("AgentSilent", 45.0, "45s"),
        ("AgentSilent", 301.0, "5m 1s"),
        ("AgentSilent", 7384.0, "2h 3m 4s"),
        ("AgentSilent", 90061.0, "1d 1h 1m 1s"),
    ],
)
def test_values_are_written_for_people(rule: str, value: float, words: str) -> None:
    assert shown(RULES[rule], value) == words
