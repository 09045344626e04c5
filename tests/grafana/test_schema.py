"""Every dashboard has the types that Grafana publishes for the classic schema (`@grafana/schema`).

It needs node and what `npm install --prefix tests/grafana` puts beside this file, and is skipped
without them. Versions are pinned in `package.json`.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headway.grafana.boards import BOARDS
from headway.grafana.layout import board_object

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
COMPILER = HERE / "node_modules" / "typescript" / "bin" / "tsc"
PANELS = {
    "timeseries": "TimeSeriesPanelCfg",
    "stat": "StatPanelCfg",
    "bargauge": "BarGaugePanelCfg",
    "table": "TablePanelCfg",
}
CUSTOM = ("timeseries", "table")
"""Panels whose fields have options of their own."""
TYPES = """
import type {
  AnnotationQuery, Dashboard, DataQuery, Panel, RowPanel, VariableModel,
} from "@grafana/schema";
IMPORTS
// Enums as JSON writes them: by their values.
type Plain<T> = 0 extends 1 & T ? T
  : T extends string ? (string extends T ? string : `${T}`)
  : T extends number | boolean | null | undefined ? T
  : T extends (infer One)[] ? Plain<One>[]
  : T extends object ? { [Key in keyof T]: Plain<T[Key]> }
  : T;
// What the plugin of Prometheus adds to a query.
type Prometheus = Pick<DataQuery, "refId" | "datasource"> & {
  expr: string; legendFormat?: string; instant?: boolean; range?: boolean; interval?: string;
  format?: "time_series" | "table" | "heatmap";
};
type Annotation = Omit<AnnotationQuery, "target">
  & { target: Prometheus; titleFormat?: string; textFormat?: string };
type Board = Omit<Dashboard, "panels" | "annotations" | "templating">;
type Bare = Omit<Panel, "options" | "fieldConfig" | "targets">;
type Fields<Custom> = Omit<NonNullable<Panel["fieldConfig"]>["defaults"], "custom">
  & { custom?: Custom };
type Overrides = NonNullable<Panel["fieldConfig"]>["overrides"];
"""


def statements(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield each part of a dashboard as a constant of its type, which may hold nothing else."""
    inside = ("panels", "annotations", "templating")
    yield constant("Board", without(board, *inside))
    for variable in board["templating"]["list"]:
        yield constant("VariableModel", variable)
    for annotation in board["annotations"]["list"]:
        yield constant("Annotation", annotation)
    for panel in board["panels"]:
        kind = panel["type"]
        if kind == "row":
            yield constant("RowPanel", panel)
            continue
        yield constant("Bare", without(panel, "options", "fieldConfig", "targets"))
        yield constant(f"{PANELS[kind]}.Options", panel["options"])
        custom = f"{PANELS[kind]}.FieldConfig" if kind in CUSTOM else "never"
        yield constant(f"Fields<Partial<{custom}>>", panel["fieldConfig"]["defaults"])
        yield constant("Overrides", panel["fieldConfig"]["overrides"])
        for target in panel["targets"]:
            if "expr" in target:
                yield constant("Prometheus", target)


def without(whole: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if name not in names}


def constant(kind: str, value: Any) -> str:
    return f"((_: Plain<{kind}>) => {{}})({json.dumps(value)});"


def complaints(folder: Path, boards: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return what the compiler says of each dashboard."""
    raw = "@grafana/schema/dist/esm/raw/composable"
    imports = "\n".join(
        f'import type * as {name} from "{raw}/{kind}/panelcfg/x/{name}_types.gen";'
        for kind, name in PANELS.items()
    )
    for name, board in boards.items():
        lines = [TYPES.replace("IMPORTS", imports), *statements(board)]
        (folder / f"{name}.ts").write_text("\n".join(lines), encoding="utf-8")
    options = {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "types": [],
        "module": "esnext",
        "moduleResolution": "node10",
        "ignoreDeprecations": "5.0",
        "baseUrl": ".",
        "paths": {"@grafana/*": [str(HERE / "node_modules" / "@grafana" / "*")]},
    }
    config = folder / "tsconfig.json"
    files = [f"{name}.ts" for name in boards]
    config.write_text(json.dumps({"compilerOptions": options, "files": files}))
    done = subprocess.run(
        ["node", str(COMPILER), "--project", "tsconfig.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = dict.fromkeys(boards, "")
    for line in done.stdout.splitlines():
        name, separator, words = line.partition(".ts(")
        assert separator, line
        found[name] += words
    assert (done.returncode == 0) is not any(found.values()), done.stderr
    return found


def misspelt(board: dict[str, Any]) -> None:
    board["panels"][1]["gridPos"]["widht"] = 8


def unknown_mode(board: dict[str, Any]) -> None:
    (series,) = [one for one in board["panels"] if one["type"] == "timeseries"][:1]
    series["options"]["tooltip"]["mode"] = "all"


def unknown_option(board: dict[str, Any]) -> None:
    board["panels"][1]["options"]["grafMode"] = "area"


def unknown_custom(board: dict[str, Any]) -> None:
    (series,) = [one for one in board["panels"] if one["type"] == "timeseries"][:1]
    series["fieldConfig"]["defaults"]["custom"]["lineWitdh"] = 1


def text_for_a_number(board: dict[str, Any]) -> None:
    board["schemaVersion"] = "39"


def unknown_variable(board: dict[str, Any]) -> None:
    board["templating"]["list"][0]["type"] = "data source"


MISTAKES = (
    misspelt,
    unknown_mode,
    unknown_option,
    unknown_custom,
    text_for_a_number,
    unknown_variable,
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what the compiler says of each dashboard, and of one with each mistake."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not COMPILER.exists():
        pytest.skip("npm install --prefix tests/grafana was not run")
    boards = {board.uid: board_object(board, BOARDS) for board in BOARDS}
    for mistake in MISTAKES:
        boards[mistake.__name__] = board_object(BOARDS[0], BOARDS)
        mistake(boards[mistake.__name__])
    return complaints(tmp_path_factory.mktemp("schema"), boards)


@pytest.mark.parametrize("uid", [board.uid for board in BOARDS])
def test_a_dashboard_has_the_published_types(said: dict[str, str], uid: str) -> None:
    assert said[uid] == ""


@pytest.mark.parametrize("mistake", [mistake.__name__ for mistake in MISTAKES])
def test_the_types_find_a_mistake(said: dict[str, str], mistake: str) -> None:
    assert said[mistake] != ""
