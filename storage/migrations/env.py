"""Run by alembic: applies the migrations on the connection that `migrate` passes in."""

from alembic import context

from headway.storage.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table_pk=False,
)
with context.begin_transaction():
    context.run_migrations()
