"""A row of an owner in every table that has an `owner_id`, made from the tables themselves."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Integer, LargeBinary, Table, insert
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.storage.tables import metadata
from profilesvc.storage.tables.directories import DIRECTORIES

# What the constraints of a table ask for; `{owner}` is the number of the owner.
_VALUES: dict[str, dict[str, Any]] = {
    "locations": {"assigned_at": 1},
    "holds": {"reason": "billing_issue"},
    "watches": {"state": "new"},
    "families": {"generation": 1},
    "syncs": {"status": "success", "direction": "push"},
    "revocations": {"kind": "token"},
    "channels": {"kind": "webhook"},
    "deliveries": {"state": "delivered"},
    "provider_connections": {"state": "active", "subject": "subject", "email": "login@example.com"},
    "drafts": {"state": "draft"},
    "changed_locations": {"what": "profile"},
    "keys": {"allowed_domains": '["deleted-{owner}.example"]'},
    "key_domains": {"domain": "deleted-{owner}.example"},
    "audit": {"event": "key.created", "actor": "key:7", "ip_prefix": "192.0.2.0/24", "request_id": "r", "once": "o"},
}


_JSON = ("profile", "document", "fields", "data")


def of_owners() -> list[Table]:
    """The tables with an `owner_id`; a table comes after those that it refers to, and the directories at the end."""
    found = [table for table in metadata.sorted_tables if "owner_id" in table.c]
    return sorted(found, key=lambda table: table.name in DIRECTORIES)


async def fill(session: AsyncSession, owner_id: int, *, without: frozenset[str] = frozenset()) -> None:
    """Insert a row of the owner in each table."""
    made: dict[str, dict[str, Any]] = {}
    for table in of_owners():
        if table.name not in without:
            made[table.name] = _row(table, owner_id, made)
            await session.execute(insert(table).values(made[table.name]))


def _row(table: Table, owner_id: int, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"owner_id": owner_id}
    for constraint in table.foreign_key_constraints:
        for element in constraint.elements:
            parent = element.column.table.name
            if parent in made:
                row[element.parent.name] = made[parent][element.column.name]
    own = _VALUES.get(table.name, {})
    for column in table.columns:
        if column.name in row:
            continue
        if column.name in own:
            value = own[column.name]
            row[column.name] = value.replace("{owner}", str(owner_id)) if isinstance(value, str) else value
        elif not column.nullable and column.server_default is None:
            row[column.name] = _value(column, owner_id)
    if table.name in ("location_owners", "changed_locations"):  # a directory has no foreign keys
        row |= {name: made["locations"]["name"] for name in ("name", "location_name") if name in table.c}
    if table.name == "key_domains":
        row["key_id"] = made["keys"]["id"]
    return row


def _value(column: Any, owner_id: int) -> Any:
    if isinstance(column.type, LargeBinary):
        return b"x"
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, BigInteger | Integer):
        return 1_000_000 + owner_id if column.name == "id" else 1
    return "{}" if column.name in _JSON else f"{column.name}-{owner_id}"[:30]
