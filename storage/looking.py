"""What is in a database file, found by a process of its own: the engine may abort or hang.

`python -m headway.storage.looking FILE` opens the file read-only, which changes nothing, and
prints one JSON object. Standard input names the producers whose stored numbers are asked for.
"""

import json
import sys
from typing import Any

import duckdb

_WITHOUT_RUN = "(SELECT DISTINCT e.run, i.* FROM intervals i JOIN events e USING (producer))"
"""The numbers of an older schema, which kept them by producer alone."""


def look(path: str, producers: list[str]) -> dict[str, Any]:
    """Return the tables, the schema and the stored sequence numbers of some producers.

    Raises:
        duckdb.Error: the file cannot be opened or read.
    """
    with duckdb.connect(path, read_only=True) as connection:
        tables = [name for (name,) in _rows(connection, "SELECT table_name FROM duckdb_tables()")]
        versions: list[tuple[Any, ...]] = []
        if "alembic_version" in tables:
            versions = _rows(connection, "SELECT version_num FROM alembic_version")
        intervals: list[tuple[Any, ...]] = []
        if "intervals" in tables and producers:
            columns = [name for name, *_ in _rows(connection, "DESCRIBE intervals")]
            held = "intervals" if "run" in columns else _WITHOUT_RUN
            intervals = _rows(
                connection,
                f"SELECT run, producer, first_sequence, last_sequence FROM {held} "  # noqa: S608  # ours
                "WHERE producer IN (SELECT unnest(?))",
                producers,
            )
    version = versions[0][0] if versions else None
    return {"tables": tables, "version": version, "intervals": intervals}


def _rows(
    connection: duckdb.DuckDBPyConnection, statement: str, *parameters: object
) -> list[tuple[Any, ...]]:
    return connection.execute(statement, parameters).fetchall()


if __name__ == "__main__":
    try:
        answer = look(sys.argv[1], json.load(sys.stdin))
    except duckdb.Error as error:
        answer = {"error": str(error).partition("\n")[0]}
    print(json.dumps(answer))
