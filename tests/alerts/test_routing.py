"""Whom an alert reaches: in the product and in Alertmanager, by one table of labels."""

import json
import subprocess
from pathlib import Path

import pytest

from headway.alerts.alertmanager import ExportError, configuration
from headway.alerts.routing import ways
from headway.alerts.site import DEFAULT, site

SITE = """
default = "oncall"

[receivers.oncall]
kind = "pagerduty"
key = "file:/run/secrets/pagerduty"
[receivers.llm]
kind = "slack"
url = "file:/run/secrets/slack"
[receivers.llm-pager]
kind = "pagerduty"
key = "file:/run/secrets/llm"
[receivers.east]
kind = "webhook"
url = "http://127.0.0.1:9/hook"
[receivers.machines]
kind = "email"
to = "machines@example.org"
sender = "headway@example.org"
host = "mail.example.org"
[receivers.nobody]
kind = "log"

[[routes]]
match = ['severity="none"']
receiver = "nobody"
[[routes]]
match = ['area="infrastructure"', 'severity!="page"']
receiver = "machines"
[[routes]]
match = ['team="llm"']
receiver = "llm"
  [[routes.routes]]
  match = ['severity="page"', 'owner=~"ada|grace"']
  receiver = "llm-pager"
  continue = true
  [[routes.routes]]
  match = ['cluster="east"']
  receiver = "east"
[[routes]]
match = ['run=~"debug-.*"']
receiver = "nobody"
[[routes]]
match = ['cause="preemption"']
receiver = "nobody"
"""

TABLE = [
    ({"team": "llm", "severity": "ticket"}, ["llm"]),
    ({"team": "llm", "severity": "page", "owner": "ada"}, ["llm-pager"]),
    ({"team": "llm", "severity": "page", "owner": "adam"}, ["llm"]),
    ({"team": "llm", "severity": "page", "owner": "ada", "cluster": "east"}, ["llm-pager", "east"]),
    ({"team": "llm", "severity": "ticket", "cluster": "east"}, ["east"]),
    ({"team": "llm", "severity": "ticket", "cluster": "west"}, ["llm"]),
    ({"team": "vision", "severity": "page"}, ["oncall"]),
    ({"severity": "page"}, ["oncall"]),
    ({}, ["oncall"]),
    ({"area": "infrastructure", "severity": "ticket", "team": "llm"}, ["machines"]),
    ({"area": "infrastructure", "severity": "page", "team": "llm"}, ["llm"]),
    ({"severity": "none", "team": "llm"}, ["nobody"]),
    ({"run": "debug-7", "severity": "page"}, ["nobody"]),
    ({"run": "no-debug-7", "severity": "page"}, ["oncall"]),
    ({"cause": "preemption", "severity": "page"}, ["nobody"]),
    ({"team": "LLM"}, ["oncall"]),
    ({"team": "llm "}, ["oncall"]),
]


@pytest.mark.parametrize(("labels", "receivers"), TABLE, ids=lambda one: str(one))
def test_an_alert_reaches_whom_the_routes_say(labels: dict[str, str], receivers: list[str]) -> None:
    assert [way.receiver for way in ways(site(SITE).root, labels)] == receivers


@pytest.mark.slow
def test_alertmanager_sends_each_alert_to_the_same_receivers(tmp_path: Path) -> None:
    written = tmp_path / "alertmanager.yml"
    written.write_text(configuration(site(SITE)), encoding="utf-8")
    for labels, receivers in TABLE:
        told = subprocess.run(
            [
                *("amtool", "config", "routes", "test", f"--config.file={written}"),
                f"--verify.receivers={','.join(receivers)}",
                *(f"{name}={json.dumps(value)}" for name, value in labels.items()),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, (labels, told.stdout, told.stderr)


def test_an_unknown_team_goes_to_the_default_receiver_and_says_so() -> None:
    root = site(SITE).root
    (unknown,) = ways(root, {"team": "vision", "severity": "page"})
    (known,) = ways(root, {"team": "llm"})
    assert (unknown.is_default, known.is_default) == (True, False)


def test_a_route_keeps_the_times_of_the_one_that_holds_it_unless_it_has_its_own() -> None:
    text = SITE.replace('receiver = "llm"\n', 'receiver = "llm"\nrepeat_interval = 60\n', 1)
    (plain,) = ways(site(text).root, {"team": "llm"})
    (inner,) = ways(site(text).root, {"team": "llm", "cluster": "east"})
    (other,) = ways(site(text).root, {"team": "vision"})
    assert (plain.repeat_interval, inner.repeat_interval) == (60, 60)
    assert other.repeat_interval == 4 * 3600


def test_without_a_file_every_alert_is_in_the_log() -> None:
    (way,) = ways(DEFAULT.root, {"team": "llm", "severity": "page"})
    assert way.receiver == "log"
    assert "log" in configuration(DEFAULT)


def test_what_alertmanager_cannot_have_is_refused_with_the_next_step() -> None:
    secret = SITE.replace("file:/run/secrets/llm", "env:KEY")
    with pytest.raises(ExportError, match=r"env:KEY is in the environment.*file:PATH"):
        configuration(site(secret))
    escalating = SITE.replace(
        'receiver = "llm"\n', 'receiver = "llm"\nescalate_to = "oncall"\nescalate_after = 600\n', 1
    )
    with pytest.raises(ExportError, match="cannot escalate to 'oncall'"):
        configuration(site(escalating))
