"""What a query may take is limited, and ingest goes on beside it."""

import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from headway.storage.reading import Reading
from headway.storage.sql_guard import SqlRefused
from headway.storage.sql_session import AT_ONCE, SqlSession, TooManyQueries, limited
from headway.storage.store import EventStore
from headway.storage.views import readable
from records import steps

ENDLESS = "SELECT count(*) FROM range(1000000000000)"
GREEDY = {
    "a cross join": "SELECT count(*) FROM range(10000000) a, range(10000000) b",
    "a range without end": ENDLESS,
    "a sort of everything": "SELECT a.range, b.range, md5(a.range::TEXT) FROM range(100000) a, "
    "range(100000) b ORDER BY b.range DESC, a.range",
    "a recursion without end": "WITH RECURSIVE t AS (SELECT 1 a UNION ALL SELECT a + 1 FROM t) "
    "SELECT count(*) FROM t",
    "a huge text": "SELECT length(string_agg(md5(range::TEXT))) FROM range(10000000000)",
    "a huge list": "SELECT len(list(range)) FROM range(100000000000)",
    "a huge group": "SELECT range, count(*) FROM range(100000000000) GROUP BY range",
    "a text that doubles": "WITH RECURSIVE t AS (SELECT 'x' a UNION ALL SELECT a || a FROM t) "
    "SELECT max(length(a)) FROM t",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(tmp_path / "events.duckdb")) as found:
        yield found


def session(reading: Reading, seconds: float) -> SqlSession:
    return SqlSession(reading.connection, tuple(readable()), seconds=seconds)


@pytest.mark.slow
@pytest.mark.parametrize("what", GREEDY)
def test_a_greedy_query_ends_with_a_sentence_while_ingest_goes_on(
    store: EventStore, what: str
) -> None:
    raised: list[Exception] = []

    def ask() -> None:
        try:
            session(store.reading, 1.0).ask(GREEDY[what])
        except SqlRefused as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    num_stored = number = 0
    while asking.is_alive() or number < 3:
        num_stored += store.append([steps(number * 10 + 1, number * 10 + 10)]).num_stored
        number += 1
    asking.join()
    assert num_stored == number * 10
    assert str(raised[0]) == "the query took longer than 1 s" or "emory" in str(raised[0])
    answer = store.reading.sql.ask(
        "SELECT sum(last_sequence - first_sequence + 1) AS n FROM events"
    )
    assert answer.table.to_pylist() == [{"n": num_stored}]


def test_no_more_run_at_a_time_than_may_and_the_room_is_given_back(store: EventStore) -> None:
    inside, go_on = threading.Semaphore(0), threading.Event()

    def connect() -> duckdb.DuckDBPyConnection:
        inside.release()
        go_on.wait()
        return store.reading.connection()

    asked = SqlSession(connect, tuple(readable()))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [pool.submit(asked.ask, "SELECT 1") for _ in range(AT_ONCE)]
        for _ in answers:
            inside.acquire()
        with pytest.raises(TooManyQueries, match="2 queries are running already"):
            asked.ask("SELECT 1")
        go_on.set()
        assert [answer.result().table.num_rows for answer in answers] == [1] * AT_ONCE
    assert asked.ask("SELECT 1").table.num_rows == 1
    with pytest.raises(SqlRefused):
        asked.ask("SELEKT 1")
    assert asked.ask("SELECT 1").table.num_rows == 1


def test_an_answer_is_cut_at_its_limit_and_says_so(store: EventStore) -> None:
    cut = store.reading.sql.ask("FROM range(1000)", 10)
    assert (cut.table.num_rows, cut.truncated) == (10, True)
    whole = store.reading.sql.ask("FROM range(10)", 10)
    assert (whole.table.num_rows, whole.truncated) == (10, False)
    empty = store.reading.sql.ask("FROM range(0)", 10)
    assert (empty.table.num_rows, empty.truncated) == (0, False)


def test_values_are_bound_by_name_and_never_read_as_sql(store: EventStore) -> None:
    asked = "SELECT range FROM range(10) WHERE range > $low AND ($word IS NULL OR $word = 'x')"
    ask = store.reading.sql.ask
    assert ask(asked, values={"low": 6, "word": None}).table.num_rows == 3
    assert ask(asked, values={"low": 6, "word": "y' OR 'x' = 'x"}).table.num_rows == 0
    with pytest.raises(SqlRefused, match=r"without a value: \$low, \$word"):
        ask(asked)
    with pytest.raises(SqlRefused, match=r"no parameter \$high"):
        ask(asked, values={"low": 1, "word": "x", "high": 2})


def test_how_many_rows_there_are_is_counted_where_somebody_asks(store: EventStore) -> None:
    ask = store.reading.sql.ask
    assert ask("FROM range(1000) -- all", 10, counted=True).total == 1000
    assert ask("FROM range(5);", 10, counted=True).total == 5
    assert ask("FROM range($n)", 10, {"n": 70}, counted=True).total == 70
    assert ask("FROM range(1000)", 10).total is None


@pytest.mark.slow
def test_an_answer_of_too_many_bytes_is_cut_too(store: EventStore) -> None:
    wide = (
        "SELECT string_agg(md5(r.range::TEXT)) FROM range(3000) r, range(3000) o GROUP BY o.range"
    )
    cut = session(store.reading, 60.0).ask(wide)
    assert cut.truncated
    assert 0 < cut.table.num_rows < 3000


@pytest.mark.slow
@pytest.mark.parametrize(
    "grown",
    [
        "s || r.range",
        "replace(s || r.range, 'x', 'yyy')",
        "[s || r.range, s || r.range || 1]",
    ],
)
def test_one_call_that_hears_no_interrupt_cannot_take_the_machines_memory(
    store: EventStore, grown: str
) -> None:
    """Each row of one batch of 2048 would hold 10 MB and more."""
    asking = SqlSession(
        store.reading.connection, tuple(readable()), seconds=30.0, growth=256 * 1024**2
    )
    before = resource.getrlimit(resource.RLIMIT_AS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SqlRefused):
        asking.ask(
            "WITH a AS (SELECT string_agg('xxxxxxxxxx', '') s FROM range(1000000)) "
            "SELECT max(length((GROWN)::TEXT)) FROM a, range(2048) r".replace("GROWN", grown)
        )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1024**2  # KiB, so 1 GiB
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert store.append([steps(1, 10)]).num_stored == 10
    assert store.reading.sql.ask("SELECT 1 AS one").table.to_pylist() == [{"one": 1}]


def test_a_query_sees_what_was_committed_before_it(store: EventStore) -> None:
    for number in range(3):
        store.append([steps(number * 10 + 1, number * 10 + 10)])
        found = store.reading.sql.ask("SELECT max(last_step) AS newest FROM v_steps")
        assert found.table.to_pylist() == [{"newest": number * 10 + 10}]


def test_any_question_is_interrupted_after_its_time(store: EventStore) -> None:
    connection = store.reading.connection()
    with pytest.raises(duckdb.InterruptException), limited(connection, 0.1):
        connection.execute(ENDLESS)
    with limited(connection, 30.0):
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
