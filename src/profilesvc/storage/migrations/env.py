"""Alembic's environment: the caller brings the connection and owns the transaction."""

from alembic import context

from profilesvc.storage.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    compare_type=True,
    render_as_batch=connection is not None and connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
