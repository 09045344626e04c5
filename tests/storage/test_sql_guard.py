"""Strangers' SQL reads documented views and nothing else, whatever it is dressed as."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from headway.events import RunStarted
from headway.storage.sql_guard import LONGEST, REFUSED_FUNCTIONS, SqlRefused
from headway.storage.sql_session import SqlAnswer
from headway.storage.store import EventStore, StoreError
from records import record, steps


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventStore]:
    found = EventStore.open(tmp_path_factory.mktemp("sql") / "events.duckdb")
    found.append([record(1, RunStarted(run_name="llama")), steps(2, 11)])
    yield found
    found.close()


def ask(store: EventStore, statement: str) -> SqlAnswer:
    return store.reading.sql.ask(statement)


def refusal(store: EventStore, statement: str) -> str:
    with pytest.raises(SqlRefused) as raised:
        ask(store, statement)
    assert raised.value.next_step
    return str(raised.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM events",
        "from events",
        "FROM main.Events;",
        "/* a */ -- b\n SELECT * FROM v_steps",
        "\ufeff SELECT 1",
        "WITH a AS (SELECT run FROM events), b AS (FROM a) SELECT * FROM b JOIN v_runs USING (run)",
        "WITH RECURSIVE t AS (SELECT 1 a UNION ALL SELECT a + 1 FROM t WHERE a < 5) FROM t",
        "SELECT ';' AS semicolon, $$a;b$$ AS dollars",
        "SELECT run, median(last_step) OVER (ORDER BY run) FROM v_steps",
        "SELECT fields->>'$.run_name' FROM events",
        "SELECT * FROM range(3) r, (VALUES (1)) v, unnest([1, 2]) u",
        "SELECT list_transform([1, 2], lambda x: x + 1)",
        "SELECT * FROM v_steps PIVOT (count(*) FOR rank IN (0, 1))",
        "EXPLAIN SELECT * FROM events",
        "explain analyze from v_nodes",
        "DESCRIBE v_runs",
        "SUMMARIZE v_steps",
    ],
)
def test_what_reads_the_views_is_answered(store: EventStore, statement: str) -> None:
    assert ask(store, statement).table.num_columns > 0


def test_an_answer_is_what_is_stored(store: EventStore) -> None:
    answer = ask(store, "SELECT name, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL")
    assert answer.table.to_pylist() == [
        {"name": "run.started", "n": 1},
        {"name": "steps", "n": 1},
    ]
    assert not answer.truncated


WRITING = [
    "INSERT INTO events SELECT * FROM events",
    "DELETE FROM events",
    "UPDATE events SET run = 'x'",
    "DROP TABLE events",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE OR REPLACE VIEW v_runs AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE MACRO mine() AS 1",
    "ALTER TABLE events ADD COLUMN mine INT",
    "TRUNCATE events",
    "MERGE INTO events USING v_runs ON true WHEN MATCHED THEN DELETE",
    "WITH x AS (INSERT INTO events SELECT * FROM events RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x",
    "EXPLAIN ANALYZE DELETE FROM events",
    "EXPLAIN ANALYZE INSERT INTO events SELECT * FROM events",
    "PREPARE mine AS DELETE FROM events",
    "EXECUTE mine",
    "COMMENT ON TABLE events IS 'x'",
    "PIVOT events ON name USING count(*)",
]
ELSEWHERE = [
    "COPY events TO '/tmp/headway-stolen.csv'",
    "COPY (SELECT 1) TO '/tmp/headway-stolen.csv'",
    "COPY events FROM '/etc/passwd'",
    "COPY FROM DATABASE a TO b",
    "EXPORT DATABASE '/tmp/headway-stolen'",
    "IMPORT DATABASE '/tmp/headway-stolen'",
    "ATTACH '/tmp/headway-stolen.duckdb' AS mine",
    "ATTACH ':memory:' AS mine",
    "DETACH events",
    "USE memory",
    "INSTALL httpfs",
    "INSTALL httpfs FROM 'http://127.0.0.1:1'",
    "LOAD httpfs",
    "LOAD '/tmp/evil.duckdb_extension'",
    "FORCE CHECKPOINT",
    "CHECKPOINT",
    "VACUUM",
    "SET enable_external_access = true",
    "SET GLOBAL lock_configuration = false",
    "RESET enable_external_access",
    "SET VARIABLE mine = 1",
    "PRAGMA enable_profiling",
    "PRAGMA table_info('events')",
    "PRAGMA database_list",
    "CALL duckdb_settings()",
    "CALL pragma_version()",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CREATE SECRET mine (TYPE S3)",
]


@pytest.mark.parametrize("statement", [*WRITING, *ELSEWHERE])
def test_what_does_more_than_read_is_refused(store: EventStore, statement: str) -> None:
    refusal(store, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1; DELETE FROM events",
        "COMMIT; DELETE FROM events",
        "SELECT 1; COMMIT; DROP TABLE events; SELECT 2",
        "SELECT 1;\n-- harmless\nDROP TABLE events",
        "SELECT 1;/**/SELECT 2",
        "SELECT 1;\u00a0SELECT 2",
        "EXPLAIN SELECT 1; DROP TABLE events",
    ],
)
def test_a_second_statement_is_refused(store: EventStore, statement: str) -> None:
    assert "exactly one statement" in refusal(store, statement)


@pytest.mark.parametrize("statement", ["", ";", "  ", "-- nothing", "/* nothing */", "\ufeff"])
def test_no_statement_is_refused(store: EventStore, statement: str) -> None:
    assert "got 0" in refusal(store, statement)


HIDDEN = [
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "FROM 'events.csv'",
    "FROM '/proc/self/environ'",
    "FROM 'http://127.0.0.1:1/x.parquet'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM Read_Text('/etc/passwd')",
    "SELECT * FROM \"read_text\"('/etc/passwd')",
    "SELECT * FROM main.read_text('/etc/passwd')",
    "SELECT content FROM read_blob('/etc/passwd')",
    "SELECT * FROM parquet_scan('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM events, LATERAL (SELECT * FROM read_text('/etc/passwd'))",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM v_runs WHERE run IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM range((SELECT count(*) FROM glob('/etc/*')))",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_logs",
    "SELECT * FROM which_secret('/a', 's3')",
    "SELECT * FROM pragma_database_list()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('quarantine')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM quarantine'))",
    "SELECT getenv('HOME')",
    "SELECT current_setting('temp_directory')",
    "SELECT getvariable('x')",
    "SELECT nextval('x')",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SELECT * FROM (SHOW TABLES)",
]
"""Ways to what is no documented view."""
OWN_TABLES = [
    "SELECT * FROM quarantine",
    "SELECT * FROM QUARANTINE",
    'SELECT * FROM "quarantine"',
    "SELECT * FROM main.quarantine",
    "SELECT * FROM events.main.quarantine",
    "TABLE intervals",
    "DESCRIBE intervals",
    "SUMMARIZE quarantine",
    "SELECT * FROM alembic_version",
    "SELECT * FROM runs",
    "SELECT * FROM events UNION ALL SELECT * FROM intervals",
    "SELECT * FROM events WHERE EXISTS (FROM intervals)",
    "SELECT CASE WHEN EXISTS (FROM intervals) THEN 1 END",
    "SELECT * FROM events ORDER BY (SELECT max(first_sequence) FROM intervals)",
    "SELECT * FROM events LIMIT (SELECT max(first_sequence) FROM intervals)",
    "SELECT * FROM events SEMI JOIN intervals ON true",
    "SELECT count(*) FILTER (WHERE EXISTS (FROM intervals)) FROM events",
    "SELECT sum(1) OVER (ORDER BY (SELECT max(first_sequence) FROM intervals)) FROM events",
    "WITH t AS (FROM intervals) SELECT 1",
    "EXPLAIN SELECT * FROM intervals",
    "/**/ EXPLAIN /**/ FROM intervals",
    "EXPLAIN ANALYZE FROM intervals",
    # A name of a common table expression hides a table only where it is in scope.
    "WITH intervals AS (SELECT * FROM intervals) SELECT * FROM intervals",
    "WITH RECURSIVE intervals AS (FROM intervals UNION ALL SELECT 'x', 1, 1) FROM intervals",
    "SELECT * FROM intervals, (WITH intervals AS (SELECT 1) SELECT * FROM intervals)",
    "SELECT * FROM (WITH intervals AS (SELECT 1) FROM intervals), main.intervals",
    "WITH a AS (FROM intervals), intervals AS (SELECT 1) SELECT * FROM a",
]


@pytest.mark.parametrize("statement", [*HIDDEN, *OWN_TABLES])
def test_what_is_no_documented_view_is_out_of_reach(store: EventStore, statement: str) -> None:
    assert "cannot be" in refusal(store, statement)


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS)
def test_a_refused_function_is_found_wherever_it_stands(store: EventStore, name: str) -> None:
    for template in (
        "SELECT NAME('x')",
        'SELECT 1 FROM events WHERE "NAME"(1) = 2',
        "WITH t AS (SELECT [x FOR x IN [1] IF main.NAME(1) = 2]) FROM t",
    ):
        statement = template.replace("NAME", name)
        assert f"the function '{name}' cannot be used" in refusal(store, statement)


def test_a_lambda_within_a_lambda_is_refused_and_a_path_into_json_is_none(
    store: EventStore,
) -> None:
    nested = "SELECT list_transform([1], lambda x : list_transform([2], lambda y : x + y))"
    arrows = "SELECT list_transform([1], x -> list_transform([2], y -> x + y))"
    for statement in (nested, arrows):
        assert "a lambda within a lambda" in refusal(store, statement)
    inside = (
        "SELECT list_transform([1, 2], x -> x + 1) AS more, '{\"a\": [7]}' -> 'a' ->> 0 AS seven"
    )
    assert ask(store, inside).table.to_pylist() == [{"more": [2, 3], "seven": "7"}]


@pytest.mark.parametrize("statement", ["SELECT ?", "SELECT $1", "SELECT $name"])
def test_parameters_are_refused(store: EventStore, statement: str) -> None:
    assert "parameters" in refusal(store, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT " + "NOT " * 10_000 + "true",
        "SELECT 1" + "+1" * 20_000,
        "SELECT * FROM " + "(SELECT * FROM " * 2_000 + "range(1)" + ")" * 2_000,
        "SELECT " + "[" * 20_000,
        "SELECT 1 -- " + "x" * LONGEST,
        "SELECT '\x00",
        "SELECT \ud800".encode("utf-8", "replace").decode() + "(",
        "SELEKT 1",
    ],
)
def test_what_cannot_be_parsed_is_a_sentence(store: EventStore, statement: str) -> None:
    refusal(store, statement)


def test_nothing_of_all_this_left_a_trace(store: EventStore) -> None:
    assert ask(store, "SELECT count(*) AS n FROM events").table.to_pylist() == [{"n": 2}]
    assert not Path("/tmp/headway-stolen.csv").exists()  # noqa: S108  # what a thief named
    assert store.append([steps(12, 13)]).num_stored == 2


def test_the_engine_itself_refuses_what_the_guard_would_let_through(store: EventStore) -> None:
    """The tree is searched first; behind it stand a locked configuration and the transaction."""
    connection = store.reading.connection()
    for statement in (
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/headway-stolen.csv'",
        "ATTACH '/tmp/headway-stolen.duckdb'",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error, match=r"disabled|locked"):
            connection.execute(statement)
    connection.execute("BEGIN TRANSACTION READ ONLY")
    with pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("DELETE FROM events")


def test_a_closed_file_is_guarded_alike(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with closing(EventStore.open(path)) as written:
        written.append([steps(1, 10)])
    with closing(EventStore.read(path)) as read:
        found = ask(read, "SELECT last_step FROM v_steps").table.to_pylist()
        assert found == [{"last_step": 10}]
        refusal(read, "FROM '/etc/passwd'")
        refusal(read, "DELETE FROM events")
        with pytest.raises(StoreError, match="nothing can be stored"):
            read.append([steps(11, 12)])
