"""A statement that doubles with each line is refused before it is planned, which has no end."""
# ruff: noqa: S608  # the statements are made of nothing from outside

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.storage.sql_guard import SqlRefused
from headway.storage.store import EventStore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventStore]:
    folder: Path = tmp_path_factory.mktemp("size")
    opened = EventStore.open(folder / "headway.duckdb")
    yield opened
    opened.close()


def columns_twice(count: int) -> str:
    """Each table is the one before it beside itself."""
    tables = ["t0 AS (SELECT * FROM v_steps)"]
    tables += [f"t{n} AS (SELECT * FROM t{n - 1} a, t{n - 1} b)" for n in range(1, count)]
    return f"WITH {', '.join(tables)} SELECT count(*) FROM t{count - 1}"


def stars_twice(count: int) -> str:
    return f"SELECT 1 AS x FROM {'(SELECT *, * FROM ' * count}v_steps{')' * count}"


def names_twice(count: int) -> str:
    """Each column names the one before it twice."""
    return "SELECT 1 AS x0" + "".join(f", x{n} + x{n} AS x{n + 1}" for n in range(count))


def names_once(count: int) -> str:
    return "SELECT 1 AS x0" + "".join(f", x{n} + 1 AS x{n + 1}" for n in range(count))


def tables_in_tables(count: int) -> str:
    """A common table within a common table, and so on."""
    return "WITH a AS (" * count + "SELECT 1 AS x" + ") SELECT x FROM a" * count


def joined(count: int) -> str:
    others = (f" JOIN v_steps v{n} ON v{n}.run = v{n - 1}.run" for n in range(1, count))
    return f"SELECT count(*) AS n FROM v_steps v0{''.join(others)}"


def recurring(statement: str) -> str:
    again = f"(WITH q AS ({statement}) SELECT 1 FROM q)"
    return f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL {again}) FROM r"


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (columns_twice(30), "10000 columns"),
        (stars_twice(25), "10000 columns"),
        (f"SELECT (SELECT x FROM ({stars_twice(25)}))", "10000 columns"),
        (f"SELECT 1 WHERE EXISTS ({stars_twice(25)})", "10000 columns"),
        (recurring(stars_twice(25)), "10000 columns"),
        (f"SELECT {', '.join(['COLUMNS(*)'] * 300)} FROM v_steps", "10000 columns"),
        (names_twice(40), "30000 parts"),
        (f"SELECT 1 UNION ALL SELECT x0 FROM ({names_twice(40)})", "30000 parts"),
        (f"EXPLAIN {names_twice(40)}", "30000 parts"),
        (joined(80), "50 tables"),
        (f"SELECT 1{' UNION ALL SELECT 1' * 500}", "50 tables"),
    ],
)
def test_what_doubles_is_refused(store: EventStore, statement: str, why: str) -> None:
    with pytest.raises(SqlRefused, match=why):
        store.reading.sql.ask(statement)


@pytest.mark.parametrize(
    "statement",
    [
        columns_twice(3),
        stars_twice(4),
        names_twice(8),
        names_once(60),
        tables_in_tables(30),
        joined(12),
        f"SELECT 1 AS n WHERE 1 IN ({', '.join(map(str, range(2_000)))})",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) FROM r",
        "SELECT * FROM (PIVOT v_steps ON rank IN (0, 1) USING count(*))",
        "SELECT * EXCLUDE (run) FROM v_steps",
        "SUMMARIZE v_steps",
        "VALUES (1), (2)",
    ],
)
def test_what_people_write_is_answered(store: EventStore, statement: str) -> None:
    assert store.reading.sql.ask(statement).table.num_columns
