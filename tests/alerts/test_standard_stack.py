"""A run that loops, through a real Prometheus and a real Alertmanager to a receiver: one page."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from alert_receiver import AlertReceiver, alert_receiver
from alertmanager_process import alertmanager
from headway.alerts.alertmanager import configuration
from headway.alerts.catalogue import GROUPS
from headway.alerts.prometheus_rules import rule_file
from headway.alerts.site import Site, site
from headway.collector.otlp.bodies import PROTOBUF
from incident_collector import running
from otlp_requests import body
from prometheus_process import prometheus
from timeline import at, timeline

pytestmark = pytest.mark.slow

LOOP = """
0      allocation 4
0      attempt A launcher world=1
0      configured labels=team:llm,cluster:east,owner:ada
0-50   steps 1-50
50     scheduled c50
52     finalized c50
60     fault exception exception=ValueError message="bad sample 17"
61     exit code=1
70     attempt B launcher world=1
72     resumed 50 from=c50
72-73  steps 51
75     fault exception exception=ValueError message="bad sample 17"
76     exit code=1
80     attempt C launcher world=1
82     resumed 50 from=c50
82-83  steps 51
85     fault exception exception=ValueError message="bad sample 17"
86     exit code=1
90     attempt D launcher world=1
92     resumed 50 from=c50
92-93  steps 51
"""
"""Three attempts that each complete one step more and die of the same sample."""


@pytest.fixture
def receiver() -> Iterator[AlertReceiver]:
    with alert_receiver() as served:
        yield served


def scraping(collector: str, rules: Path, manager: str) -> str:
    """Return a configuration of Prometheus, as JSON, which is YAML."""
    host = collector.removeprefix("http://")
    targets = [manager.removeprefix("http://")]
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": targets}]}]},
            "scrape_configs": [{"job_name": "h", "static_configs": [{"targets": [host]}]}],
        }
    )


def told_of(address: str) -> Site:
    """Return a site that sends pages to a receiver, soon, and what is left nowhere."""
    return site(
        'default = "log"\ngroup_wait = 1\ngroup_interval = 1\n[receivers.log]\nkind = "log"\n'
        f'[receivers.hook]\nkind = "webhook"\nurl = "{address}/hook"\n'
        '[[routes]]\nmatch = [\'team="llm"\', \'alertname="RestartLoop"\']\nreceiver = "hook"\n'
        "[rules.RestartLoop]\nkeep = 0\n"
    )


def test_a_loop_is_one_page_with_all_that_on_call_needs(
    tmp_path: Path, receiver: AlertReceiver
) -> None:
    ours = told_of(receiver.address)
    groups = {name: [ours.rules[one.name] for one in rules] for name, rules in GROUPS.items()}
    rules = tmp_path / "rules.yml"
    rules.write_text(rule_file(groups, "http://board"), encoding="utf-8")
    told = timeline(LOOP + "100 run_ended stopped", "llama-1")
    with (
        running(tmp_path / "events.duckdb", told[:-1], at(110)) as collector,
        alertmanager(tmp_path, configuration(ours)) as manager,
        prometheus(tmp_path, scraping(collector.address, rules, manager)),
    ):
        (page,) = receiver.bodies(1, patience=120)
        assert page["status"] == "firing"
        assert page["groupLabels"] == {"subject": "run llama-1"}
        (alert,) = page["alerts"]
        assert alert["labels"] == {
            "alertname": "RestartLoop",
            "run": "llama-1",
            "team": "llm",
            "cluster": "east",
            "owner": "ada",
            "severity": "page",
            "area": "training",
            "subject": "run llama-1",
            "cause": "exception",
        }
        annotations = alert["annotations"]
        assert "attempts of run llama-1 since a durable checkpoint" in annotations["summary"]
        assert annotations["suspect"].startswith("exception")
        assert annotations["stake"].endswith("GPU-hours so far")
        (incident,) = collector.client.incidents("llama-1", state="open")
        assert annotations["incident_url"].endswith(f"?incident={incident['incident']}")

        headers = {"content-type": PROTOBUF}
        answer = collector.http.post("/v1/logs", content=body(told[-1:]), headers=headers)
        assert answer.is_success
        *_, last = receiver.bodies(2, patience=120)
        assert last["status"] == "resolved"
        assert len(receiver.taken) == 2
