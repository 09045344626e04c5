"""Schema 0003: sequence numbers are known by run and producer, no longer by producer alone."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Give every range the runs of which its producer told.

    A producer tells of one run, or of a node. Where one told of several, each has all its ranges:
    no number was used twice. A producer whose records have all expired stays without a run.
    """
    op.rename_table("intervals", "intervals_by_producer")
    op.create_table(
        "intervals",
        sa.Column("run", sa.Text),
        sa.Column("producer", sa.Text, nullable=False),
        sa.Column("first_sequence", sa.BigInteger, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
    )
    op.execute(
        """
        INSERT INTO intervals
        SELECT known.run, i.producer, i.first_sequence, i.last_sequence
        FROM intervals_by_producer i
        LEFT JOIN (SELECT DISTINCT run, producer FROM events) known ON known.producer = i.producer
        """
    )
    op.drop_table("intervals_by_producer")
