"""Alembic's environment: the caller brings the connection; each migration is a transaction."""

from alembic import context

from profilesvc.storage.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    compare_type=True,
    transaction_per_migration=True,
    render_as_batch=connection is not None and connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
