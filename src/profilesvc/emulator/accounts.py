"""Accounts, and the token endpoint of the OAuth host."""

import hashlib
import json

from quart import Blueprint, ResponseReturnValue, request
from sqlmodel import col, delete, select

from profilesvc.contract.json import JsonObject
from profilesvc.emulator.state import emulator, now, switches
from profilesvc.emulator.tables import EmulatorAccountRow, EmulatorTokenRow
from profilesvc.emulator.wire import page, read_query

accounts = Blueprint("accounts", __name__)
TOKEN_SECONDS = 3599
SCOPE = "https://www.googleapis.com/auth/business.manage"


def digest_of(token: str) -> str:
    """Return the digest under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


@accounts.get("/v1/accounts")
async def list_accounts() -> JsonObject:
    """Return the caller's accounts, the personal one first."""
    query = read_query("pageSize", "pageToken")
    async with emulator().store.read() as session:
        rows = (await session.exec(select(EmulatorAccountRow).order_by(col(EmulatorAccountRow.position)))).all()
    chunk, more = page(list(rows), lambda row: [row.position], query, (20, 20))
    return {**({"accounts": [json.loads(row.document) for row in chunk]} if chunk else {}), **more}


@accounts.post("/token")
async def issue_token() -> ResponseReturnValue:
    """Issue an access token for any refresh token. Errors have the OAuth format, not the API's."""
    form = await request.form
    if form.get("grant_type") != "refresh_token":
        return {"error": "unsupported_grant_type", "error_description": "Only refresh_token."}, 400
    if switches().refuse_refresh or not (form.get("client_id") and form.get("refresh_token")):
        return {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400
    token = "ya29." + emulator().entropy.token_bytes(24).hex()
    async with emulator().store.write() as session:
        await session.exec(delete(EmulatorTokenRow).where(col(EmulatorTokenRow.expires) <= now()))
        row = EmulatorTokenRow(digest=digest_of(token), expires=now() + TOKEN_SECONDS * 1000)
        await session.merge(row)  # after a restart, seeded entropy repeats its tokens
    return {"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer", "scope": SCOPE}
