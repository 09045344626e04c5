"""What the engine may take of memory, and how it gives back what it keeps of its file.

DuckDB keeps each block that it wrote or read until its limit is reached, and the limit has to be
what the largest answers need. Lowered for a moment, it makes the engine let go.
"""

from contextlib import suppress

import duckdb

ENGINE = {
    "enable_external_access": False,
    "lock_configuration": True,
    "allowed_configs": ["memory_limit"],
    "memory_limit": "1GiB",
    "max_temp_directory_size": "2GiB",
}
"""How the process opens its database: no file, network or extension is in reach of any query, and
nothing of this can be changed but the limit, by `trim`. What a query needs beyond the limit goes
beside the file, up to another."""
KEPT = 64 * 2**20
"""Bytes that the engine may keep while nobody asks; the kernel keeps the file's pages anyway."""


def used(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the bytes that the engine holds, of its file and for what runs."""
    found = connection.execute(
        "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()"
    ).fetchone()
    return 0 if found is None else int(found[0])


def trim(connection: duckdb.DuckDBPyConnection, kept: int = KEPT) -> None:
    """Let the engine keep so many bytes of its file at most; of what runs it takes nothing.

    What would ask for more meanwhile, some milliseconds, fails: let nothing run that is large.
    """
    if used(connection) <= kept:
        return
    try:
        # Refused while more than that is in use: then it is tried again later.
        with suppress(duckdb.OutOfMemoryException):
            connection.execute(f"SET memory_limit = '{kept >> 20}MiB'")
    finally:
        connection.execute(f"SET memory_limit = '{ENGINE['memory_limit']}'")
