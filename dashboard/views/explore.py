"""The Explore page: saved questions and SQL over the documented views, with chart and download."""

import io
import re
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # ships no types
import streamlit as st

from headway.dashboard import answers, markup, source
from headway.dashboard.figures import rows as figures
from headway.dashboard.views import reader, search
from headway.dashboard.views.plots import plot
from headway.settings import ClientSettings, load
from headway.storage.collector_errors import CollectorRefused
from headway.wording import count, counted, when

_SHOWN = 1_000
"""Most rows that go to the browser."""
_DOWNLOADED = 100_000
_LIFETIME = 30.0
_QUESTION = "question"
_SQL = "sql"
_OWN = "own"
_VALUE = "value-"
_PARAMETER = re.compile(r"\$([A-Za-z_]\w*)")
_STYLE = """<style>
textarea[aria-label="SQL"] { font-family: monospace; font-size: 0.9rem; }
</style>"""
_Found = Mapping[str, Any]
_EXAMPLE = "SELECT run_name, state, training_goodput_low FROM v_runs ORDER BY started DESC"


@reader.framed
def page() -> None:
    """Draw the page; question, values and statement are in the address."""
    st.title("Explore")
    st.html(_STYLE)
    if search.box():
        return
    questions = {one["name"]: one for one in source.answer("questions")["questions"]}
    st.html(
        markup.lead(
            "Ask a saved question, or anything in SQL: one SELECT over the documented views. "
            "Nothing can be changed from here."
        )
    )
    st.caption(
        "A query may take 10 s. The same questions in a terminal: `headway ask`, `headway sql`."
    )
    name = st.selectbox(
        "Question",
        [*questions, _OWN],  # by their names, which are what the address and the terminal say
        key=_QUESTION,
        bind="query-params",
        help="A saved question, or `own` for a statement of yours.",
        width=420,
    )
    if name in (None, _OWN):
        _own()
        return
    _saved(questions[name])


def _saved(question: Mapping[str, Any]) -> None:
    st.header(question["asks"], anchor=False)
    st.caption(question["notes"])
    values = _values(question)
    with st.expander("The statement, and how to ask it elsewhere"):
        st.code(question["sql"], language="sql")
        st.code(_command(question, values), language="bash", wrap_lines=True)
        st.button("Go on from this statement", on_click=_go_on_from, args=(question["sql"], values))
    pairs = tuple(f"{one}={value}" for one, value in values.items() if value is not None)
    with answers.reading() as reading:
        try:
            found = source.answer(
                "questions/{question}",
                question=question["name"],
                parameter=pairs,
                limit=_SHOWN,
                counted=1,
            )
        except CollectorRefused as error:
            reader.missing(error.sentence, error.next_step)
            return
    _result(found, reader.asked(reading), question["name"], question["sql"], values)


def _command(question: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the command that asks the same in a terminal."""
    words = ["headway", "ask", question["name"]]
    for one in question["parameters"]:
        value = values[one["name"]]
        if value is None or value == one["default"]:
            continue
        if one["kind"] == "time":
            value = datetime.fromtimestamp(value // 10**9, tz=UTC).isoformat()
        words += [f"--{one['name']}", str(value)]
    return shlex.join(words)


def _go_on_from(statement: str, values: Mapping[str, Any]) -> None:
    """Put a statement into the editor, and the values of its parameters beside it."""
    st.session_state[_QUESTION] = _OWN
    st.session_state[_SQL] = statement
    for name, value in values.items():
        st.session_state[f"{_VALUE}{name}"] = "" if value is None else _as_text(value)


def _values(question: Mapping[str, Any]) -> dict[str, Any]:
    """Let the reader give values to the parameters; None is any."""
    values: dict[str, Any] = {}
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="parameters"):
        for one in question["parameters"]:
            key = f"with-{one['name']}"
            label = one["name"].replace("_", " ").capitalize()
            if one["choices"]:
                chosen = st.selectbox(
                    label,
                    one["choices"],
                    index=None,
                    key=key,
                    bind="query-params",
                    help=one["sentence"],
                    placeholder="any",
                    width=180,
                )
                values[one["name"]] = chosen
            elif one["kind"] == "integer":
                values[one["name"]] = st.number_input(
                    label,
                    min_value=max(one["lowest"], -(2**53)),
                    max_value=min(one["highest"], 2**53 - 1),
                    value=one["default"],
                    step=1,
                    key=key,
                    bind="query-params",
                    help=one["sentence"],
                    width=130,
                )
            elif one["kind"] == "time":
                values[one["name"]] = _moment(one, label, key)
            else:
                values[one["name"]] = (
                    st.text_input(
                        label,
                        key=key,
                        bind="query-params",
                        help=one["sentence"],
                        placeholder="any",
                        width=180,
                    )
                    or None
                )
    return values


def _moment(parameter: Mapping[str, Any], label: str, key: str) -> int | None:
    """Let the reader choose a day; it begins at midnight of their zone. Returns UTC ns."""
    day = st.date_input(
        label,
        value=None,
        key=key,
        bind="query-params",
        help=f"{parameter['sentence']} The day begins at midnight, {reader.zone()}.",
        format="YYYY-MM-DD",
        width=150,
    )
    if day is None:
        return None
    begin = datetime(day.year, day.month, day.day, tzinfo=reader.zone())
    return int(begin.timestamp()) * 10**9


def _own() -> None:
    with st.form("own", border=False):
        st.text_area(
            "SQL",
            key=_SQL,
            bind="query-params",
            height=200,
            max_chars=20_000,
            placeholder=_EXAMPLE,
        )
        names = list(dict.fromkeys(_PARAMETER.findall(st.session_state.get(_SQL) or "")))
        given = {name: _given(name) for name in names}
        st.form_submit_button("Run")
    statement = (st.session_state.get(_SQL) or "").strip()
    if statement:
        try:
            found, asked = _asked(load(ClientSettings), statement, tuple(given.items()))
        except CollectorRefused as error:
            reader.missing(error.sentence, error.next_step)
        else:
            _result(found, asked, "answer", statement, given)
    else:
        reader.missing("No statement yet.", f"Write one and press Run, such as: {_EXAMPLE}")
    _views()


def _given(name: str) -> Any:
    """Let the reader give a parameter of the statement a value."""
    text = st.text_input(
        f"${name}",
        key=f"{_VALUE}{name}",
        bind="query-params",
        help="Bound to the parameter, never put into the text. Empty is NULL; digits are a number, "
        "unless they stand in quotes: '12'.",
        width=320,
    )
    return _from_text((text or "").strip())


def _from_text(text: str) -> Any:
    """Return a value as it is written: a number, a text, quoted or not, or None."""
    if not text:
        return None
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _as_text(value: Any) -> str:
    """Return a value as `_from_text` reads it."""
    text = str(value)
    return text if _from_text(text) == value else f"'{text}'"


@st.cache_data(ttl=_LIFETIME, max_entries=16, show_spinner="Asking the collector ...")
def _asked(
    settings: ClientSettings, statement: str, values: tuple[tuple[str, Any], ...]
) -> tuple[dict[str, Any], int]:
    """Return the answer to a statement and when it was asked, UTC ns; not asked twice at once."""
    del settings  # another collector gives another answer
    return source.client().sql(statement, _SHOWN, dict(values), counted=True), reader.now()


def _views() -> None:
    with st.expander("What can be asked"):
        for view in source.answer("views")["views"]:
            st.markdown(f"**`{view['name']}`**")
            body = [(column["name"], column["sentence"]) for column in view["columns"]]
            st.html(markup.table(view["name"], ("Column", "Meaning"), body, wide=(1,)))


def _result(
    found: _Found, asked: int, name: str, statement: str, values: Mapping[str, Any]
) -> None:
    age = f"Asked at {when(asked, reader.zone())}; the views may be a minute older"
    st.html(markup.age(age, stale=False))
    shown, total = len(found["rows"]), found["total"]
    if not shown:
        _nothing()
        return
    if not found["truncated"]:
        how_many = counted(shown, "row")
    elif total is None:
        how_many = f"The first {count(shown)} rows of more"
    else:
        how_many = f"The first {count(shown)} of {counted(total, 'row')}"
    figure = figures.chart(found)
    if figure is not None:
        plot(figure, "explore-chart", f"The rows of the table below as a chart: {how_many}.")
    st.caption(f"{how_many}, after {found['seconds']:.2f} s.")
    frame = _frame(found)
    st.dataframe(
        frame,
        hide_index=True,
        column_config=_formats(found),
        alt=f"Answer to the question, {how_many}",
    )
    _downloads(name, statement, values)


def _nothing() -> None:
    """Say why there is no row: nothing fits, or a new collector has not written its views yet."""
    known = source.answer("runs", limit=1)["runs"]
    written = _asked(load(ClientSettings), "SELECT 1 FROM v_runs LIMIT 1", ())[0]["rows"]
    if known and not written:
        _asked.clear()
        reader.missing(
            "The collector has not written its views yet.",
            "It does so within a minute after it has started: load the page again then.",
        )
    else:
        reader.missing("No row fits.", "Choose a longer time, or fewer conditions.")


def _frame(found: _Found) -> pd.DataFrame:
    """Return rows as the table shows them: times in the reader's zone, nothing else changed."""
    names = [column["name"] for column in found["columns"]]
    unique = [
        name if names.index(name) == place else f"{name} ({place + 1})"
        for place, name in enumerate(names)
    ]
    frame = pd.DataFrame(found["rows"], columns=unique)
    for name, column in zip(unique, found["columns"], strict=True):
        if column["type"].startswith("timestamp"):
            times = pd.to_datetime(frame[name], utc=True, format="ISO8601")
            frame[name] = times.dt.tz_convert(str(reader.zone()))
    return frame


def _formats(found: _Found) -> dict[str, Any]:
    formats: dict[str, Any] = {}
    for column in found["columns"]:
        kind, name = column["type"], column["name"]
        label = figures.title(name)
        if kind.startswith("timestamp"):
            formats[name] = st.column_config.DatetimeColumn(label, format="YYYY-MM-DD HH:mm:ss")
        elif kind.startswith(("float", "double", "decimal")):
            formats[name] = st.column_config.NumberColumn(label, format="%.3f")
        else:
            formats[name] = st.column_config.Column(label)
    return formats


def _downloads(name: str, statement: str, values: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for kind, suffix, media, write in (
            ("CSV", "csv", "text/csv", _csv),
            ("Parquet", "parquet", "application/vnd.apache.parquet", _parquet),
        ):
            st.download_button(
                f"Download {kind}",
                data=_file(statement, values, write),
                file_name=f"headway-{name}.{suffix}",
                mime=media,
                key=f"download-{suffix}",
                on_click="ignore",
            )
        st.caption(f"Asked anew when pressed; at most {count(_DOWNLOADED)} rows.")


def _file(
    statement: str, values: Mapping[str, Any], write: Callable[[Any], bytes]
) -> Callable[[], bytes]:
    """Return what makes a file on the server once somebody wants it."""

    def made() -> bytes:
        return write(source.client().sql_table(statement, _DOWNLOADED, values))

    return made


def _csv(table: Any) -> bytes:
    from pyarrow import csv  # type: ignore[import-untyped]  # ships no types

    sink = io.BytesIO()
    csv.write_csv(table, sink)
    return sink.getvalue()


def _parquet(table: Any) -> bytes:
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()
