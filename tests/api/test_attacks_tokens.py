"""Attacks on tokens, signing keys and the routes without a token that worked once, as they would be tried again."""

import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.contract.tokens import RefreshGrant
from profilesvc.database.engine import Storage
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock
from profilesvc.fixtures import fixture_path
from profilesvc.limits.settings import LimitSettings
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from profilesvc.tokens.keys import hmac_key, rsa_key
from support.api import Site, assert_error, assert_ok
from support.cases.hostile import Forge, confused
from support.tokens import PATH, claims, grant
from support.work import counted

POSTS = "/api/v1/posts?locationId=111"


class LosingTheKey:
    """The storage of a process that learns, while it writes, that the active signing key was removed."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def __getattr__(self, name: str) -> Any:
        return getattr(self._services.storage, name)

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[Any]:
        async with self._services.storage.write() as session:
            yield session
        self._services.signer.keyring.replace([])


async def test_a_signing_key_that_is_removed_during_an_exchange_is_a_rejection(
    services: Services, plugin: Site
) -> None:
    storage: Any = LosingTheKey(services)
    assert isinstance(services.storage, Storage)
    body = RefreshGrant(grant_type="refresh_token", refresh_token=plugin.tokens["refresh_token"])
    with pytest.raises(ServiceError) as refused:
        await tokens.refresh(dataclasses.replace(services, storage=storage), body)
    assert refused.value.kind.code == "AUTH_INVALID_TOKEN"


async def test_no_confusion_of_access_and_refresh_tokens_is_accepted(
    http: httpx.AsyncClient, plugin: Site, caplog: pytest.LogCaptureFixture
) -> None:
    access_key = rsa_key(fixture_path("signing_key.pem").read_bytes())
    refresh_key = hmac_key(fixture_path("refresh_key.pem").read_bytes())
    access, refresh = claims(plugin.tokens["access_token"]), claims(plugin.tokens["refresh_token"])
    forges = Forge(access_key, access, access["iat"], "at+jwt"), Forge(refresh_key, refresh, refresh["iat"], "rt+jwt")
    accepted, asked = [], 0
    for name, typ, token in confused(*forges):
        if typ == "at+jwt":
            answer = await http.get(POSTS, headers={"Authorization": f"Bearer {token}"})
        else:
            answer = await http.post(PATH, json={"grant_type": "refresh_token", "refresh_token": token})
        asked += 1
        if answer.status_code != 401:
            accepted.append(name)
    assert accepted == []
    assert asked >= 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert_ok(await http.get(POSTS, headers={"Authorization": f"Bearer {forges[0].good()}"}))
    assert_ok(await http.post(PATH, json={"grant_type": "refresh_token", "refresh_token": forges[1].good()}))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/sync/111", b'{"labels":[%s]}' % b",".join([b"1"] * 120_000)),
        ("/api/v1/sync/111", b'{"regularHours":{"periods":[%s]}}' % b",".join([b"{}"] * 80_000)),
        ("/api/v1/sync/111", b'{"storefrontAddress":{"addressLines":[%s]}}' % b",".join([b'"a"'] * 60_000)),
        (POSTS, b'{"summary":"x","media":[%s]}' % b",".join([b"{}"] * 80_000)),
    ],
)
@ON_ONE_DATABASE
async def test_A102_many_small_values_do_not_delay_other_callers(plugin: Site, path: str, body: bytes) -> None:
    with counted() as work:
        answer = await plugin.http.post(path, content=body, headers={"Content-Type": "application/json"})
    (problem,) = assert_error(answer, 400, "VALIDATION_ERROR")["errors"]
    assert problem == {"in": "body", "field": "", "problem": "must not contain more than 10000 values"}
    assert work.calls < 20_000  # less than one for each value


async def test_A102_ten_thousand_values_are_accepted(plugin: Site) -> None:
    plugins = {"other": list(range(9_997))}  # with the body, the list and the version it is one less than too many
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={**plugins, "wp_version": "6"}))
    one_more = {"other": list(range(9_998)), "wp_version": "6"}
    assert_error(await plugin.http.post("/api/v1/api-keys/heartbeat", json=one_more), 400, "VALIDATION_ERROR")


class TestNeighbours:
    """Sites that share an address with somebody who knows their client ids."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"limits": LimitSettings()})

    async def test_A024_wrong_secrets_from_an_address_do_not_limit_another_site_there(
        self, http: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
    ) -> None:
        site = await as_service()
        wrong = grant(site, client_secret="wrong")
        codes = [(await http.post(PATH, json=wrong)).status_code for _ in range(200)]
        assert codes == [401] * 10 + [429] * 190
        assert_ok(await http.post(PATH, json=grant(site)))
