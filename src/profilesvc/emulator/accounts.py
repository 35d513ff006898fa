"""Accounts (Account Management v1)."""

import json

from quart import Blueprint
from sqlmodel import col, select

from profilesvc.contract.json import JsonObject
from profilesvc.emulator.state import emulator, login
from profilesvc.emulator.tables import EmulatorAccountRow
from profilesvc.emulator.wire import page, read_query

accounts = Blueprint("accounts", __name__)


@accounts.get("/v1/accounts")
async def list_accounts() -> JsonObject:
    """Return the caller's accounts, the personal one first."""
    query = read_query("pageSize", "pageToken")
    async with emulator().store.read() as session:
        rows = list((await session.exec(select(EmulatorAccountRow).order_by(col(EmulatorAccountRow.position)))).all())
    rows = [row for row in rows if login().sees(row.name)]
    chunk, more = page(rows, lambda row: [row.position], query, (20, 20))
    return {**({"accounts": [json.loads(row.document) for row in chunk]} if chunk else {}), **more}
