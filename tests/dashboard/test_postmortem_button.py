"""The Incident page offers the post-mortem in every form, in the reader's time zone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from incident_collector import Running, running


def _incident() -> None:
    from headway.dashboard.views import incident

    incident.page()


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", found.address)
        st.cache_data.clear()
        yield found
        st.cache_data.clear()
        st.cache_resource.clear()


@pytest.mark.slow
def test_each_button_hands_over_the_document_of_now(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: dict[str, dict[str, Any]] = {}
    real = st.download_button

    def offer(label: str, **options: Any) -> bool:
        offered[label] = options
        return real(label, **options)

    monkeypatch.setattr(st, "download_button", offer)
    (one,) = collector.client.incidents()
    at = AppTest.from_function(_incident, default_timeout=60)
    at.query_params["incident"] = one["incident"]
    at.run()
    assert not at.exception, at.exception
    assert [*offered] == ["Post-mortem as Markdown", "Post-mortem as HTML"]
    assert len(at.get("download_button")) == 2
    collector.client.acknowledge(one["incident"], "Ada")
    written = {options["file_name"]: options["data"]() for options in offered.values()}
    assert {*written} == {f"postmortem-{one['incident']}.{suffix}" for suffix in ("md", "html")}
    for text in written.values():
        assert b"Post-mortem: Exception on rank 0 (n1)" in text
        assert b"Ada" in text
