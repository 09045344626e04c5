"""What alerting remembers: small rows that change, so in SQLite beside the database of events.

The events' engine is made for many rows at once and has one writer; here single rows change every
few seconds, and a restart of the collector must find them as they were.
"""

from sqlalchemy import JSON, Column, Float, Integer, MetaData, String, Table

METADATA = MetaData()
VERSION = 1
"""Version of these tables, kept in the file's `user_version`."""
ALERTS = Table(
    "alerts",
    METADATA,
    Column("rule", String, primary_key=True),
    Column("labels", String, primary_key=True, comment="JSON, sorted"),
    Column("row", JSON, nullable=False, comment="state, value and times of the alert"),
)
GROUPS = Table(
    "groups",
    METADATA,
    Column("key", String, primary_key=True, comment="key of the notices about it"),
    Column("row", JSON, nullable=False, comment="whom it was told, when, and who took it"),
)
SILENCES = Table(
    "silences",
    METADATA,
    Column("silence", Integer, primary_key=True, autoincrement=True),
    Column("matchers", JSON, nullable=False),
    Column("owner", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("begins", Float, nullable=False, comment="seconds UTC"),
    Column("ends", Float, nullable=False, comment="seconds UTC"),
)
OUTBOX = Table(
    "outbox",
    METADATA,
    Column("notice", Integer, primary_key=True, autoincrement=True),
    Column("receiver", String, nullable=False),
    Column("key", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("body", JSON, nullable=False),
    Column(
        "state",
        String,
        nullable=False,
        comment="waiting, refused (and still tried), delivered, superseded or given up",
    ),
    Column("created", Float, nullable=False, comment="seconds UTC"),
    Column("due", Float, nullable=False, comment="seconds UTC of the next try"),
    Column("tries", Integer, nullable=False, default=0),
    Column("ended", Float, comment="seconds UTC of the delivery, or of giving up"),
    Column("answer", String, comment="what the receiver said last"),
)
