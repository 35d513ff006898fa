"""Alembic's environment: the caller brings the connection; each migration is a transaction."""

from typing import Any

from alembic import context

from profilesvc.storage.tables import metadata
from profilesvc.storage.tables.partitions import is_partition


def _is_compared(item: Any, _name: str | None, kind: str, *_other: object) -> bool:
    """Leave out partitions, and the unique constraint that is on SQLite what the primary key of a numbered table is."""
    if kind == "table":
        return not is_partition(item.name)
    if kind != "unique_constraint" or item.table.name not in metadata.tables:
        return True
    return list(item.columns.keys()) != list(metadata.tables[item.table.name].primary_key.columns.keys())


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    compare_type=True,
    include_object=_is_compared,
    transaction_per_migration=True,
    render_as_batch=connection is not None and connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
