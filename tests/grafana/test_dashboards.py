"""Every dashboard asks a real Prometheus for what is published, and keeps Grafana's rules.

No Grafana server is to be had here; what stands in for it is that each query returns data, and a
lint of what Grafana's own linter asks for.
"""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.cli import main
from headway.grafana.boards import BOARDS
from headway.grafana.files import files
from headway.grafana.layout import board_object
from headway.grafana.panels import COLUMNS, metrics_of
from headway.metrics import METRICS
from prometheus_process import backfill, prometheus

OBJECTS = {board.uid: board_object(board, BOARDS) for board in BOARDS}
PANELS = [
    (uid, panel)
    for uid, whole in OBJECTS.items()
    for panel in whole["panels"]
    if panel["type"] != "row"
]
TARGETS = [
    (uid, panel["title"], target["expr"])
    for uid, panel in PANELS
    for target in panel["targets"]
    if "expr" in target
]
TARGETS += [
    (uid, annotation["name"], annotation["target"]["expr"])
    for uid, whole in OBJECTS.items()
    for annotation in whole["annotations"]["list"]
]
MINUTES = 90
VALUES = {
    "category": ("productive", "stalled", "restart"),
    "bound": ("low", "high"),
    "window": ("1h", "24h"),
    "outcome": ("stored", "quarantined"),
    "quantile": ("0.5", "1"),
}


def history(now: float) -> str:
    """Return every published metric over the last hours, as two scrapes a minute gave it."""
    lines = []
    for metric in METRICS.values():
        family = metric.name.removesuffix("_total")
        lines += [f"# TYPE {family} {metric.kind}", f"# HELP {family} {metric.description}"]
        for number, labels in enumerate(_labels(metric.labels)):
            inside = ",".join(f'{name}="{value}"' for name, value in labels.items())
            for minute in range(2 * MINUTES):
                stamp = now - 30 * (2 * MINUTES - minute)
                value = minute // 10 + 1 if metric.kind == "counter" else (minute % 7 + number) / 8
                lines.append(f"{metric.name}{{{inside}}} {value} {stamp:.3f}")
    lines += ["# TYPE ALERTS gauge"]
    inside = 'alertname="RestartLoop",alertstate="firing",subject="run llama",run="llama"'
    lines += [
        f"ALERTS{{{inside}}} 1 {now - 30 * (2 * MINUTES - minute):.3f}"
        for minute in range(2 * MINUTES)
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(names: tuple[str, ...]) -> list[dict[str, str]]:
    varied = next((name for name in names if name in VALUES), None)
    fixed = {name: {"run": "llama", "node": "n7"}.get(name, f"a {name}") for name in names}
    fixed |= {"instance": "n7:8751", "job": "headway"}
    return [fixed] if varied is None else [{**fixed, varied: one} for one in VALUES[varied]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return what a query gives over the last hour."""
    folder = tmp_path_factory.mktemp("prometheus")
    now = time.time()
    backfill(folder / "data", history(now))
    with (
        prometheus(folder, "global: {scrape_interval: 30s}\n") as address,
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):

        def ask(query: str) -> list[Any]:
            words = query.replace("$run", ".*").replace("$node", ".*")
            words = words.replace("$__rate_interval", "5m")
            span = {"start": now - 3600, "end": now - 60, "step": 60}
            answer = client.get("/api/v1/query_range", params={"query": words, **span}).json()
            assert answer["status"] == "success", answer
            return list(answer["data"]["result"])

        yield ask


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "title", "query"), TARGETS, ids=[f"{uid}: {title}" for uid, title, _ in TARGETS]
)
def test_every_target_returns_data(asked: Any, board: str, title: str, query: str) -> None:
    found = asked(query)
    assert found, f"{title} of {board} shows nothing: {query}"
    assert any(value != "NaN" for series in found for _, value in series["values"])


@pytest.mark.slow
def test_a_metric_of_another_name_shows_nothing(asked: Any) -> None:
    assert asked('headway_training_goodput_rato{run=~"$run", bound="low"}') == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uid", "panel"), PANELS, ids=[f"{uid}: {panel['title']}" for uid, panel in PANELS]
)
def test_what_legends_and_links_name_is_a_label_of_what_is_shown(
    asked: Any, uid: str, panel: dict[str, Any]
) -> None:
    linked = set(re.findall(r"__field\.labels\.(\w+)", json.dumps(panel["fieldConfig"])))
    for target in panel["targets"]:
        if "expr" in target:
            named = linked | set(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
            for series in asked(target["expr"]):
                assert named <= set(series["metric"]), (uid, target["expr"])


@pytest.mark.parametrize("uid", OBJECTS)
def test_every_choice_is_of_a_label_that_a_published_metric_has(uid: str) -> None:
    for variable in OBJECTS[uid]["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert found is not None
            assert found[2] in METRICS[found[1]].labels


@pytest.mark.parametrize(("board", "title", "query"), TARGETS)
def test_every_metric_that_is_asked_for_is_published(board: str, title: str, query: str) -> None:
    assert metrics_of(query) <= set(METRICS), f"{title} of {board}"


@pytest.mark.parametrize("uid", OBJECTS)
def test_panels_have_numbers_of_their_own_and_places_within_the_grid(uid: str) -> None:
    panels = OBJECTS[uid]["panels"]
    numbers = [panel["id"] for panel in panels]
    assert sorted(numbers) == list(range(1, len(panels) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} covers another panel"
        taken |= cells
    tops = [panel["gridPos"]["y"] for panel in panels]
    assert all(first <= second for first, second in pairwise(tops))


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=lambda one: str(one)[:40])
def test_a_panel_says_what_it_shows_and_in_which_unit(uid: str, panel: dict[str, Any]) -> None:
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert target["datasource"]["uid"] in ("${datasource}", "headway-api")
        if "expr" in target:
            ranges = re.findall(r"\[([^\]]+)\]", target["expr"])
            assert set(ranges) <= {"$__rate_interval", "1d"}, target["expr"]


def test_boards_lead_to_each_other_and_to_the_dashboard() -> None:
    uids = set(OBJECTS)
    for uid, whole in OBJECTS.items():
        assert {link["url"].split("?")[0] for link in whole["links"]} == {
            f"/d/{other}" for other in uids - {uid}
        }
        assert json.dumps(whole).count("${dashboard}/") or uid in (
            "headway-run",
            "headway-pipeline",
        )


def test_the_files_are_those_of_the_repository() -> None:
    root = Path(__file__).parents[2]
    for path, text in files().items():
        assert (root / path).read_text(encoding="utf-8") == text, path


def test_what_is_exported_are_these_files(tmp_path: Path) -> None:
    assert main(["grafana", "export", str(tmp_path / "new")]) == 0
    for path, text in files().items():
        written = tmp_path / "new" / Path(path).relative_to("grafana")
        assert written.read_text(encoding="utf-8") == text
