"""The reference pages: what the declarations say, as Markdown.

Nothing is described here; every sentence comes from the declaration of the thing it describes.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence

from headway import cli, metrics, settings, wire
from headway.cli.generated import page
from headway.cli.runbooks import runbook_pages
from headway.collector import openapi
from headway.events import EVENTS, Envelope
from headway.gpu_faults import nvlink5, table
from headway.gpu_faults.policy import DEFAULT_POLICY, RECOVERY_ACTIONS
from headway.grafana.files import files as grafana_files
from headway.storage.questions import QUESTIONS


def pages() -> Mapping[str, str]:
    """Return every generated page by its path in the repository."""
    return {
        "docs/reference/cli.md": command_line_page(),
        "docs/reference/events.md": events_page(),
        "docs/reference/gpu_faults.md": gpu_faults_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/openapi.json": openapi_page(),
        "docs/reference/questions.md": questions_page(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/views.md": views_page(),
        **runbook_pages(),
        **grafana_files(),
    }


def openapi_page() -> str:
    """Return the document of the read API, from the declarations of its endpoints."""
    return json.dumps(openapi.document(), indent=2) + "\n"


def events_page() -> str:
    """Return the page of all events, from `headway.events`."""
    parts = [
        "# Events",
        "Declared in `src/headway/events/`. On the wire (OTLP logs) an event is called "
        f"`{wire.PREFIX}<name>`; the envelope's fields are attributes `{wire.PREFIX}<field>`, the "
        "event's own fields carry their plain names. An optional field that is left out is "
        "unknown.",
        "## Envelope",
        _sentence(Envelope),
        _fields(Envelope),
    ]
    for name, kind in EVENTS.items():
        parts += [f"## `{name}`", _sentence(kind), _fields(kind)]
    return page(parts)


def gpu_faults_page() -> str:
    """Return the page of all GPU faults, from `headway.gpu_faults`."""
    return page(
        [
            "# GPU faults",
            f"Declared in `src/headway/gpu_faults/`; this is the policy `{DEFAULT_POLICY.label}`. "
            "A site's own file overrides it (`docs/kernel_log.md`), and every stored fault keeps "
            "its raw code and line and says which policy judged it.",
            "## Sources of the opinions",
            _table(("Source", "What it is"), table.SOURCES.items()),
            "## Xid",
            "An Xid that is not here is "
            f"`{DEFAULT_POLICY.unlisted}`. *Disputed*: one tool takes a GPU out of service for "
            "it and another does not.",
            _table(
                ("Xid", "Meaning", "Class", "Disputed", *table.SOURCES, "Note"),
                (
                    (
                        str(entry.code),
                        entry.meaning,
                        f"`{entry.classification}`",
                        "yes" if entry.disputed else "",
                        *(entry.opinions.get(source, "") for source in table.SOURCES),
                        entry.note or "",
                    )
                    for entry in table.XIDS.values()
                ),
            ),
            "## Xids of NVLink 5",
            "Unit, error status and sub-code `(first word >> 20) & 0x3F` decide by NVIDIA's decode "
            "table of October 2025, in the order of the columns; what is left is `watch`. A unit "
            f"that is not here is `{DEFAULT_POLICY.fatal}` where the driver calls the error fatal.",
            _table(
                ("Unit", "`reset`", "`application`"),
                ((f"`{unit}`", reset, ends) for unit, reset, ends in nvlink5.rules()),
            ),
            "## Recovery actions of Xid 154",
            "The number decides, never the driver's words for it. A number that is not here is "
            f"`{DEFAULT_POLICY.fatal}`.",
            _table(
                ("Number", "NVML's name", "Class"),
                (
                    (str(number), name, f"`{classification}`")
                    for number, (name, classification) in RECOVERY_ACTIONS.items()
                ),
            ),
            "## SXid",
            f"Fatal by the driver's word: `{DEFAULT_POLICY.fatal}`; nonfatal: "
            f"`{DEFAULT_POLICY.nonfatal}`; unknown: `{DEFAULT_POLICY.unlisted}`.",
            "## Faults without a number",
            _table(
                ("Kind of `gpu.fault`", "Class"),
                ((f"`{kind}`", f"`{class_}`") for kind, class_ in DEFAULT_POLICY.kinds.items()),
            ),
        ]
    )


def metrics_page() -> str:
    """Return the page of all categories and metrics, from `headway.metrics`."""
    leaves = [*metrics.CATEGORIES.values(), metrics.SPARE]
    return page(
        [
            "# Categories and metrics",
            "Declared in `src/headway/metrics/`.",
            "## Goodput",
            f"**Training goodput.** {metrics.TRAINING_GOODPUT} `{metrics.TRAINING_FORMULA}`",
            f"**Infrastructure goodput.** {metrics.INFRASTRUCTURE_GOODPUT} "
            f"`{metrics.INFRASTRUCTURE_FORMULA}`",
            "## Categories of the ledger",
            "Every nanosecond of a run belongs to exactly one. Users add their own as "
            f"`{metrics.CUSTOM}NAME`.",
            _table(
                ("Category", "Meaning", "Training good", "Infrastructure good", "Colour"),
                (
                    (
                        f"`{leaf.name}`",
                        leaf.description,
                        _good(leaf.training_good),
                        _good(leaf.infrastructure_good),
                        f"`{leaf.colour}`",
                    )
                    for leaf in leaves
                ),
            ),
            "## Prometheus metrics",
            _table(
                ("Metric", "Kind", "Meaning", "Unit", "Labels"),
                (
                    (
                        f"`{metric.name}`",
                        metric.kind,
                        metric.description,
                        metric.unit or "",
                        ", ".join(f"`{label}`" for label in metric.labels),
                    )
                    for metric in metrics.METRICS.values()
                ),
            ),
        ]
    )


def settings_page() -> str:
    """Return the page of all settings, from `headway.settings`."""
    parts = [
        "# Settings",
        "Declared in `src/headway/settings/`. A value comes from the argument, else the "
        "variable, else its short name, else the section of the TOML file that "
        f"`{settings.CONFIG_VARIABLE}` names, else the default.",
    ]
    for declaration in settings.SETTINGS:
        parts += [
            f"## {_sentence(declaration)} `[{declaration.section}]`",
            _table(
                ("Option", "Variable", "Short name", "Type", "Default", "Meaning"),
                (
                    (
                        f"`{option.name}`",
                        f"`{option.variable}`",
                        "" if option.alias is None else f"`{option.alias}`",
                        option.kind.__name__,
                        "" if option.default is None else f"`{option.default}`",
                        option.sentence,
                    )
                    for option in settings.options(declaration)
                ),
            ),
        ]
    return page(parts)


def views_page() -> str:
    """Return the page of all views of the database, from `headway.storage.views`."""
    from headway.storage.views import views  # only this page needs the database's library

    parts = [
        "# Views of the database",
        "Declared in `src/headway/storage/views.py`. These, and `events` with the fields of the "
        "[envelope](events.md#envelope), are what SQL may read; times are UTC nanoseconds. The "
        "comments stand in the database, too (`DESCRIBE`, `duckdb_columns()`).",
    ]
    for view in views():
        parts += [
            f"## `{view.name}`",
            view.sentence,
            _table(
                ("Column", "Meaning"),
                ((f"`{name}`", sentence) for name, sentence in view.columns.items()),
            ),
        ]
    return page(parts)


def questions_page() -> str:
    """Return the page of all saved questions, from `headway.storage.questions`."""
    parts = [
        "# Saved questions",
        "Declared in `src/headway/storage/questions/`. `headway ask NAME --PARAMETER VALUE` asks "
        "one, `GET /api/v1/questions/NAME?parameter=PARAMETER=VALUE` and the Explore page do the "
        "same. Values are bound by the engine and never become part of the statement. Columns that "
        "end in `_hours`, `_minutes` or `_seconds` are durations, shares and ratios 0 to 1; times "
        "are UTC.",
    ]
    for question in QUESTIONS.values():
        parts += [
            f"## `{question.name}`",
            f"**{question.asks}** {question.notes}",
            _table(
                ("Parameter", "Kind", "Default", "Meaning"),
                (
                    (
                        f"`{one.name}`",
                        one.kind,
                        "" if one.default is None else f"`{one.default}`",
                        one.sentence + (f" One of {_choices(one.choices)}." if one.choices else ""),
                    )
                    for one in question.parameters
                ),
            ),
            f"```sql\n{question.sql}```",
        ]
    return page(parts)


def command_line_page() -> str:
    """Return the page of all commands, from the parser itself."""
    parts = ["# Command line", _paragraph(cli.__doc__ or "")]
    for name, parser in _commands(cli.parser(), "headway"):
        parts += [f"## `{name}`", parser.description or ""]
        rows = [
            (f"`{_spelling(action)}`", action.help or "")
            for action in parser._actions  # argparse has no public list
            if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
        ]
        if rows:
            parts.append(_table(("Argument", "Meaning"), rows))
    return page(parts)


def _commands(
    parser: argparse.ArgumentParser, name: str
) -> Iterable[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, command in action.choices.items():
                yield f"{name} {word}", command
                yield from _commands(command, f"{name} {word}")


def _spelling(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"[{metavar}]" if action.nargs == "?" else metavar
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {metavar}"


def _fields(declaration: type) -> str:
    rows = [
        (
            f"`{spec.name}`",
            spec.kind.__name__.lower(),
            spec.described.unit or "",
            "optional" if spec.optional else "required",
            spec.described.sentence
            + (f" One of {_choices(spec.described.choices)}." if spec.described.choices else ""),
        )
        for spec in wire.specs(declaration).values()
    ]
    return _table(("Field", "Type", "Unit", "", "Meaning"), rows) if rows else "It has no fields."


def _choices(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _good(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value]


def _sentence(declaration: type) -> str:
    return _paragraph((declaration.__doc__ or "").removesuffix("."))


def _paragraph(text: str) -> str:
    return "\n\n".join(" ".join(block.split()) for block in text.strip().split("\n\n"))


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
