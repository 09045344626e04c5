"""Whom an alert reaches while it is kept firing, though its run is published no more."""

from pathlib import Path

import pytest

from headway.alerts.engine import Engine
from headway.alerts.evaluation import Sample
from headway.alerts.notices import Notice
from headway.alerts.receivers import Receiver
from headway.alerts.senders import Outcome
from headway.alerts.site import site
from headway.storage.alert_book import AlertBook

NOW = 1_790_000_000.0
SITE = site(
    """
    default = "oncall"
    [receivers.oncall]
    kind = "log"
    [receivers.llm]
    kind = "log"
    [[routes]]
    match = ['team="llm"']
    receiver = "llm"
    """
)
LOOP = Sample(metric="headway_attempts_without_durable_step", labels={"run": "r"}, value=3)
OPEN = Sample(
    metric="headway_open_incident_gpu_seconds",
    labels={
        "run": "r",
        "incident": "abc",
        "cause": "exception",
        "suspect_node": "n7",
        "suspect_rank": "1",
    },
    value=7200,
)
INFO = Sample(
    metric="headway_run_info",
    labels={"run": "r", "run_name": "r", "team": "llm", "cluster": "", "owner": ""},
    value=1,
)


@pytest.mark.parametrize("again", [False, True], ids=["", "after a restart"])
def test_a_run_that_ends_is_told_over_to_its_own_team_and_to_nobody_else(
    tmp_path: Path, again: bool
) -> None:
    samples, now = [LOOP, INFO], NOW
    book = AlertBook(tmp_path / "alerts.sqlite")

    def send(notice: Notice, receiver: Receiver, address: str) -> Outcome:
        raise AssertionError("nothing is sent here")

    def engine() -> Engine:
        return Engine(book, SITE, lambda: samples, lambda: now, "http://board", send)

    one = engine()
    sent = []
    for seconds in range(0, 700, 25):
        now = NOW + seconds
        if seconds == 100:
            samples = []
        if seconds == 150 and again:
            one.stop()
            one = engine()
        sent += [(told.receiver, told.status) for told in one.turn().notices]
    one.stop()
    book.close()
    assert sent == [("llm", "firing"), ("llm", "resolved")]


def test_the_last_word_names_the_suspect_and_leads_to_the_incident_that_is_closed(
    tmp_path: Path,
) -> None:
    samples, now = [LOOP, INFO, OPEN], NOW
    book = AlertBook(tmp_path / "alerts.sqlite")
    engine = Engine(book, SITE, lambda: samples, lambda: now, "http://board")
    notices = []
    for seconds in range(0, 700, 25):
        now = NOW + seconds
        if seconds == 100:
            samples = [INFO]
        notices += engine.turn().notices
    engine.stop()
    book.close()
    (over,) = notices[-1].resolved
    assert notices[-1].status == "resolved"
    assert over.annotations["suspect"] == "exception, node n7, rank 1"
    assert over.annotations["incident_url"] == "http://board/incident?incident=abc"
    assert over.labels["cause"] == "exception"
