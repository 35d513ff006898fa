"""POST /oauth2/revoke: one's own tokens end at once, everybody else's stay (D-16, D-95, RFC 7009)."""

from typing import Any

import httpx
from sqlalchemy import func, select

from conftest import AsService, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services import tokens as token_service
from profilesvc.services.context import Services
from profilesvc.storage.tables import revocations
from support.api import ALICE, BOB, Site, assert_error, assert_ok
from support.identity.oauth import (
    INACTIVE,
    OFFLINE,
    REVOKE,
    TOKEN,
    assert_oauth_error,
    assert_private,
    assert_tokens,
    basic,
    introspected,
)
from support.tokens import LOCATIONS


async def give_up(http: httpx.AsyncClient, token: str, headers: dict[str, str] | None = None, **form: str) -> None:
    response = await http.post(REVOKE, data={"token": token, **form}, headers=headers)
    assert (response.status_code, response.json()) == (200, {}), response.text
    assert_private(response)


async def assert_works(http: httpx.AsyncClient, token: str) -> None:
    assert_ok(await http.get(LOCATIONS, headers={"Authorization": f"Bearer {token}"}))


async def assert_ended(http: httpx.AsyncClient, token: str) -> None:
    response = await http.get(LOCATIONS, headers={"Authorization": f"Bearer {token}"})
    assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}


async def exchanged(http: httpx.AsyncClient, site: Site, token: str) -> dict[str, Any]:
    form = {"grant_type": "refresh_token", "refresh_token": token}
    return assert_tokens(await http.post(TOKEN, data=form, headers=basic(site)))


async def rows(services: Services) -> int:
    """How many revocations there are."""
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(revocations))).scalar_one())


async def test_revoking_an_access_token_ends_only_that_token(http: httpx.AsyncClient, plugin: Site) -> None:
    await assert_works(http, plugin.tokens["access_token"])
    await give_up(http, plugin.tokens["access_token"], basic(plugin))
    await assert_ended(http, plugin.tokens["access_token"])
    assert await introspected(http, plugin, plugin.tokens["access_token"]) == INACTIVE
    later = await exchanged(http, plugin, plugin.tokens["refresh_token"])
    await assert_works(http, later["access_token"])


async def test_revoking_a_refresh_token_ends_its_family(http: httpx.AsyncClient, as_service: AsService) -> None:
    site = await as_service()
    form = OFFLINE
    apart = assert_tokens(await http.post(TOKEN, data=form, headers=basic(site)))
    second = await exchanged(http, site, site.tokens["refresh_token"])
    await give_up(http, second["refresh_token"], basic(site))
    for pair in (site.tokens, second):
        await assert_ended(http, pair["access_token"])
        refused = await http.post(
            TOKEN,
            data={"grant_type": "refresh_token", "refresh_token": pair["refresh_token"]},
            headers=basic(site),
        )
        assert_oauth_error(refused, 400, "invalid_grant")
    await assert_works(http, apart["access_token"])  # another grant of the same key
    await exchanged(http, site, apart["refresh_token"])


async def test_an_older_generation_ends_the_family_too(http: httpx.AsyncClient, plugin: Site) -> None:
    second = await exchanged(http, plugin, plugin.tokens["refresh_token"])
    third = await exchanged(http, plugin, second["refresh_token"])
    await give_up(http, plugin.tokens["refresh_token"], basic(plugin))
    for pair in (plugin.tokens, second, third):
        await assert_ended(http, pair["access_token"])
    assert await introspected(http, plugin, third["refresh_token"]) == INACTIVE


async def test_again_and_with_any_hint(http: httpx.AsyncClient, as_service: AsService, services: Services) -> None:
    for name in ("access_token", "refresh_token"):
        for hint in ("access_token", "refresh_token", "nonsense", "\0"):
            site = await as_service()
            await give_up(http, site.tokens[name], basic(site), token_type_hint=hint)
            await assert_ended(http, site.tokens["access_token"])
            before = await rows(services)
            await give_up(http, site.tokens[name], basic(site), token_type_hint=hint)
            assert await rows(services) == before


async def test_the_body_may_carry_the_credentials(http: httpx.AsyncClient, plugin: Site) -> None:
    await give_up(http, plugin.tokens["access_token"], None, **plugin.credentials)
    await assert_ended(http, plugin.tokens["access_token"])


async def test_tokens_of_other_callers_stay_valid(
    http: httpx.AsyncClient, as_service: AsService, as_user: AsUser, services: Services
) -> None:
    """Another key of the same owner, another owner's key, and users of another tenant."""
    own, sibling, bobs = await as_service(), await as_service(), await as_service("locations/211")
    alice, bob = await as_user(ALICE), await as_user(BOB)
    users = [client.headers["Authorization"].removeprefix("Bearer ") for client in (alice, bob)]
    before = await rows(services)
    for name in ("access_token", "refresh_token"):
        for asking, asked in [(own, sibling), (own, bobs), (bobs, own)]:
            await give_up(http, asked.tokens[name], basic(asking))
        await give_up(bob, own.tokens[name])
        await give_up(alice, bobs.tokens[name])
    for asking in (own, bobs):
        for token in users:
            await give_up(http, token, basic(asking))
    await give_up(bob, users[0])
    assert await rows(services) == before
    for site in (own, sibling, bobs):
        await assert_works(http, site.tokens["access_token"])
        await exchanged(http, site, site.tokens["refresh_token"])
    for token in users:
        await assert_works(http, token)


async def test_a_string_that_is_not_a_token_gets_the_same_response(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    before = await rows(services)
    for token in ("x", "a.b.c", "x" * 9_000, "\0", "é", " ", "null"):
        await give_up(http, token, basic(plugin))
    clock.advance(days=90)
    await give_up(http, plugin.tokens["access_token"], basic(plugin))
    assert await rows(services) == before


async def test_d95_a_user_ends_tokens_of_their_own(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, as_service: AsService, services: Services
) -> None:
    other = await token_service.user_token(services, ALICE)
    await give_up(alice, other)
    await assert_ended(http, other)
    site = await as_service()
    await give_up(alice, site.tokens["refresh_token"])
    await assert_ended(http, site.tokens["access_token"])
    itself = alice.headers["Authorization"].removeprefix("Bearer ")
    await give_up(alice, itself)
    await assert_ended(http, itself)
    assert_oauth_error(await alice.post(REVOKE, data={"token": itself}), 401, "invalid_token")
    await assert_works(http, await token_service.user_token(services, ALICE))


async def test_only_authenticated_callers_revoke_tokens(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    form = {"token": plugin.tokens["access_token"]}
    assert_oauth_error(await http.post(REVOKE, data=form), 401, "invalid_client")
    assert_oauth_error(await plugin.http.post(REVOKE, data=form), 401, "invalid_token")
    wrong = {**form, "client_id": plugin.key["client_id"], "client_secret": "wrong"}
    assert_oauth_error(await http.post(REVOKE, data=wrong), 401, "invalid_client")
    assert_oauth_error(await http.post(REVOKE, data=plugin.credentials), 400, "invalid_request")
    await assert_works(http, plugin.tokens["access_token"])
    await key_service.deactivate(services, plugin.key["client_id"], "user_requested")
    held = await http.post(REVOKE, data=form, headers=basic(plugin))
    assert assert_oauth_error(held, 401, "invalid_client")["deactivation_reason"] == "user_requested"
