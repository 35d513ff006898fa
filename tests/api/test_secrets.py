"""No secret and no token is anywhere but in the answer that is meant to show it."""

import collections
import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest
from quart import Quart

from conftest import client_of
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage.tables import metadata
from support.api import ALICE, assert_ok
from support.identity.oauth import OFFLINE

KEYS = "/api/v1/developer/credentials"
TOKEN = "/api/v1/auth/token"
LOCATIONS = "/api/v1/external-business/locations"


class Broken:
    """A database whose every use is a defect that names its argument."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"broken {name}")


class Witness:
    """Keeps every answer, and how often each secret was given out on purpose."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.meant: collections.Counter[str] = collections.Counter()

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        self.answers.append(f"{response.status_code} {response.headers!r} {response.text}")

    def given(self, *secrets: str) -> None:
        """The last answer was meant to show these."""
        self.meant.update(secrets)


async def flow(http: httpx.AsyncClient, user: str, seen: Witness) -> dict[str, Any]:
    """A key's life, with every way to send its secrets, right and wrong."""
    owner = {"Authorization": f"Bearer {user}"}
    seen.meant[user] = 0
    body = {"name": "Secret", "business_id": 10, "assigned_location_id": "111"}
    key = assert_ok(await http.post(KEYS, json=body, headers=owner), 201)
    seen.given(key["client_secret"])
    credentials = {name: key[name] for name in ("client_id", "client_secret")}
    grant = {"grant_type": "client_credentials", **credentials}
    pair = assert_ok(await http.post(TOKEN, json=grant))
    seen.given(pair["access_token"], pair["refresh_token"])
    refresh = {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"]}
    for _ in range(2):  # the second is the repeat within the grace
        successor = assert_ok(await http.post(TOKEN, json=refresh))
        seen.given(successor["access_token"], successor["refresh_token"])
    await misplaced(http, key["client_secret"], pair["access_token"], pair["refresh_token"])
    rolled = assert_ok(await http.post(f"{KEYS}/{key['client_id']}/roll", json={}, headers=owner))
    seen.given(rolled["client_secret"])
    auth = (key["client_id"], rolled["client_secret"])
    standard = (await http.post("/oauth2/token", data=OFFLINE, auth=auth)).json()
    seen.given(standard["access_token"], standard["refresh_token"])
    for route in ("introspect", "revoke"):
        for name in ("access_token", "refresh_token"):
            await http.post(f"/oauth2/{route}", data={"token": standard[name]}, auth=auth)
    for path in (
        KEYS,
        f"/api/v1/api-keys/{key['client_id']}/status",
        f"{KEYS}/{key['client_id']}/audit",
        f"{KEYS}/{key['client_id']}/requests",
    ):
        assert_ok(await http.get(path, headers=owner))
    await http.delete(f"{KEYS}/{key['client_id']}", headers=owner)
    return {**grant, "client_secret": rolled["client_secret"]}


async def misplaced(http: httpx.AsyncClient, secret: str, access: str, refresh: str) -> None:
    """Secrets where they do not belong."""
    for text in (secret, access, refresh):
        await http.get(LOCATIONS, params={"access_token": text, "page": text, "type": text})
        await http.get(f"{LOCATIONS}/{text}", headers={"Authorization": f"Bearer {access}"})
        await http.get("/api/v1/posts", params={"locationId": text}, headers={"Authorization": f"Bearer {access}"})
        await http.get(LOCATIONS, headers={"Authorization": f"Bearer {text}x", "Origin": text})
        await http.post(TOKEN, json={"grant_type": text, "client_id": text, "client_secret": [text]})
        await http.post(TOKEN, json={"grant_type": "client_credentials", "client_id": text, "client_secret": text})
        await http.post(TOKEN, json={"grant_type": "refresh_token", "refresh_token": f"{text}x"})
        await http.post(TOKEN, content=f'{{"client_secret":"{text}', headers={"Content-Type": "application/json"})
        await http.post(TOKEN, content=f"client_secret={text}", headers={"Content-Type": text[:40]})
        await http.post("/oauth2/token", data={"grant_type": text, "client_id": text, "client_secret": text})
        await http.post(f"/api/v1/{text}", json={text: text})


async def dump(services: Services) -> str:
    """Every row of every table."""
    async with services.storage.read() as session:
        rows = [(await session.execute(table.select())).all() for table in metadata.sorted_tables]
    return repr(rows)


def traces(secret: str) -> list[str]:
    """The part of a secret that must not leak: all of it, or the signature of a token."""
    return [secret, secret.rpartition(".")[2]] if secret.count(".") == 2 else [secret]


@pytest.mark.in_process("reads the log")
async def test_no_secret_is_anywhere_else(app: Quart, services: Services, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Witness()
    user = await tokens.user_token(services, ALICE)
    async with client_of(app) as http:
        http.event_hooks["response"].append(seen)
        grant = await flow(http, user, seen)
        await services.background.drain()
        stored = await dump(services)
        broken: Any = Broken()
        app.extensions["profilesvc"] = replace(services, storage=broken)
        assert (await http.post(TOKEN, json=grant)).status_code == 500
        app.extensions["profilesvc"] = services
    ours = [record for record in caplog.records if record.name != "httpx"]  # which is this test's client
    logged = "\n".join(f"{record.getMessage()} {record.exc_text or ''} {record.args}" for record in ours)
    assert len(seen.meant) >= 8
    assert len(seen.answers) > 40
    assert "broken" in logged
    for secret, times in seen.meant.items():
        for trace in traces(secret):
            assert sum(trace in answer for answer in seen.answers) == times, secret
            assert trace not in logged
            assert trace not in stored
