"""The floor of ingest: the same rows as Arrow tables straight into DuckDB, nothing else."""

import tempfile
import time
import zlib
from itertools import chain
from pathlib import Path

from benchmarks.ingesting.load import Body
from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.otlp.logs import decode_logs
from headway.storage.event_columns import event_table

_JOINED = 10


def arrow_insert(bodies: list[Body]) -> float:
    """Return rows or steps a second, ten requests in a transaction as a collector joins them."""
    import duckdb

    parts = [
        decode_logs(
            zlib.decompress(body.content, 16 + zlib.MAX_WBITS),
            content_type=PROTOBUF,
            limit=2**30,
            received=0,
        ).parts
        for body in bodies
    ]
    tables = [
        event_table(list(chain.from_iterable(parts[first : first + _JOINED])))
        for first in range(0, len(parts), _JOINED)
    ]
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(str(Path(folder) / "floor.duckdb"))
        connection.register("batch", tables[0])
        connection.execute("CREATE TABLE events AS SELECT * FROM batch LIMIT 0")
        begin = time.monotonic()
        for table in tables:
            connection.register("batch", table)
            connection.execute("INSERT INTO events SELECT * FROM batch")
        lasted = time.monotonic() - begin
        connection.close()
    return sum(body.steps or body.records for body in bodies) / lasted
