"""From events at the collector's door to the pixels: the design's first worked example."""

import dataclasses
import re
import time
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from browser_pages import chromium, dashboard, in_terminal, value
from collector_process import collector_process
from headway.events import Envelope
from otlp_requests import body
from timeline import EPOCH, SECOND, timeline
from worked_example import KILLED

pytestmark = pytest.mark.slow


def of_this_morning(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """Return the envelopes as if second 0 was two hours ago, since a live clock judges them."""
    shift = time.time_ns() - 7_200 * SECOND - EPOCH
    return [
        dataclasses.replace(one, anchor=one.anchor + shift, wall=one.wall + shift)
        for one in envelopes
    ]


def test_a_dead_rank_is_told_alike_by_the_page_and_the_terminal(tmp_path: Path) -> None:
    text = f"0 run_started llama{KILLED}754 run_ended completed"
    envelopes = timeline(text, run="llama-1")
    with (
        collector_process(tmp_path / "headway.duckdb") as collector,
        dashboard(collector.address) as address,
        chromium() as browser,
    ):
        answer = httpx.post(
            f"{collector.address}/v1/logs",
            content=body(of_this_morning(envelopes)),
            headers={"Content-Type": "application/x-protobuf"},
        )
        assert answer.status_code == 200, answer.text
        page = browser.new_page()
        page.goto(f"{address}/run?run=llama-1&view=Incidents")
        expect(page.get_by_text("these numbers are final")).to_be_visible()

        printed = in_terminal(collector.address, "llama-1")

        for goodput, expected in (
            ("Training goodput", "79.6 %"),
            ("Infrastructure goodput", "90.5 %"),
        ):
            assert value(page, goodput) == expected
            assert re.search(rf"{goodput}\s+{expected}\s", printed), printed
        assert value(page, "Highest step") == "600"
        expect(page.get_by_role("region", name="Incidents")).to_contain_text("74 steps")
