"""Schema 0001, the first release: events, interval sets and quarantine."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "events",
        *(
            sa.Column(name, kind)
            for name, kind in (
                ("producer", sa.Text),
                ("anchor", sa.BigInteger),
                ("first_sequence", sa.BigInteger),
                ("last_sequence", sa.BigInteger),
                ("run", sa.Text),
                ("attempt", sa.Text),
                ("rank", sa.BigInteger),
                ("node", sa.Text),
                ("boot_id", sa.Text),
                ("wall", sa.BigInteger),
                ("monotonic", sa.BigInteger),
            )
        ),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("fields", sa.Text, nullable=False),
        sa.Column("packed", sa.LargeBinary),
    )
    op.create_table(
        "intervals",
        sa.Column("producer", sa.Text, nullable=False),
        sa.Column("first_sequence", sa.BigInteger, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "quarantine",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("raw", sa.Text, nullable=False),
    )
