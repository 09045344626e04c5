"""How a database file comes from any released schema to the newest, in one transaction.

A file without a version that has the table of events is of the first release, which wrote none.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.ddl.impl import DefaultImpl
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

FIRST = "0001"
"""Schema of the first release."""
VERSION_TABLE = "alembic_version"
"""Where a database says of which schema it is."""
_FOLDER = Path(__file__).parent


class SchemaError(RuntimeError):
    """A database that this version cannot bring to its own schema; says what to do next."""


class DuckDBImpl(DefaultImpl):
    """Tells alembic that its general statements fit DuckDB; the dialect ships no such word."""

    __dialect__ = "duckdb"
    transactional_ddl = True


def migrate(connection: Connection, *, to: str = "head") -> None:
    """Bring a database to a schema within the transaction of the connection.

    Raises:
        SchemaError: another program's database, or one of a newer version.
    """
    configured = config()
    configured.attributes["connection"] = connection
    found = version(connection)
    if found is None:
        tables = sqlalchemy.inspect(connection).get_table_names()
        if "events" in tables:
            command.stamp(configured, FIRST)
        elif tables:
            raise SchemaError(
                f"it holds the tables {', '.join(sorted(tables)[:5])} and no events, so it is "
                "another program's database"
            )
    elif found not in versions():
        raise SchemaError(
            f"its schema is {found}, and this version knows {', '.join(versions())}: a newer "
            "version of headway wrote it; upgrade headway"
        )
    if version(connection) != (versions()[-1] if to == "head" else to):
        command.upgrade(configured, to)


def version(connection: Connection) -> str | None:
    """Return the schema of a database; None where none is written."""
    context = MigrationContext.configure(connection, opts={"version_table_pk": False})
    return context.get_current_revision()


@cache
def versions() -> Sequence[str]:
    """Return every released schema, the oldest first."""
    scripts = ScriptDirectory.from_config(config())
    return tuple(script.revision for script in scripts.walk_revisions())[::-1]


def config() -> Config:
    """Return alembic's configuration."""
    found = Config()
    found.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return found
