"""Work that makes the service send every statement that it has."""

import httpx

from profilesvc.contract.audit import AuditQuery, Wanted
from profilesvc.contract.keys import KeyRoll
from profilesvc.contract.webhooks import DeliveryAttempt, DeliveryListQuery, WebhookCreate
from profilesvc.delivery import requests
from profilesvc.domain.time import DAY, HOUR
from profilesvc.operations import operator
from profilesvc.services import access, audit, credentials, events, keys, sessions, tokens
from profilesvc.services.accounts import deletion
from profilesvc.services.accounts import export as account_export
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.services.drafts import drafts, photos, several
from profilesvc.services.idempotency import IdempotencyKey
from profilesvc.services.insight import badges, overview
from profilesvc.services.notify import alerts, deliveries, webhooks
from profilesvc.services.reviews import reply_templates
from profilesvc.storage import identities
from profilesvc.storage.notify import deliveries as stored_deliveries
from support.api import BOB, Site, assert_ok
from support.pictures import png
from support.surface import REQUESTS, Surface


async def every_operation(surface: Surface) -> None:
    """Each as it succeeds, and in the variants that ask the database something else."""
    refused = {"grant_type": "client_credentials", "client_id": surface.client_id("good"), "client_secret": "wrong"}
    await surface.ask("issue_token", body=refused)
    for name, params in [
        ("list_keys", {"include_revoked": "false"}),
        ("list_keys", {"limit": "1"}),
        ("list_locations", {"unassigned": "true"}),
        ("list_locations", {"page": "2", "limit": "1"}),
        ("list_sync_history", {"page": "2", "limit": "1"}),
        ("list_key_requests", {"before": "1767323045678-9", "errors_only": "true", "days": "30"}),
        ("list_events", {"after": "evt_1_1", "types": "key.created,key.rolled"}),
    ]:
        assert (await surface.ask(name, params=params)).is_success, name
    for _ in range(2):
        assert (await surface.ask("test_webhook")).is_success
    for name, params in [
        ("list_keys", {"include_revoked": "true", "limit": "1"}),
        ("list_audit", {"limit": "1"}),
        ("list_key_audit", {"limit": "1"}),
        ("list_deliveries", {"limit": "1"}),
    ]:
        first = assert_ok(await surface.ask(name, params=params))
        assert (await surface.ask(name, params={**params, "before": first["next_before"]})).is_success, name
    for change in ({"types": ["key.created"]}, {"url": "https://hooks.example/NUMBER"}, {"enabled": True}):
        assert (await surface.ask("change_webhook", body=change)).is_success
    assert (await surface.ask("recover_webhook")).is_success
    first = assert_ok(await surface.ask("list_posts", params={"locationId": "111", "pageSize": "1"}))
    next_page = {"locationId": "111", "pageSize": "1", "pageToken": first["nextPageToken"]}
    assert_ok(await surface.ask("list_posts", params=next_page))
    for name in ("create_post", "sync_profile"):
        for _ in range(2):
            assert (await surface.ask(name, headers={"X-Idempotency-Key": "once"})).is_success
    for name in REQUESTS:
        assert (await surface.ask(name)).is_success, name


async def beside_the_api(http: httpx.AsyncClient, service: dict[str, str], credentials: dict[str, str]) -> None:
    """The standard's routes, refreshes and preflights."""
    refresh = {"grant_type": "refresh_token", "refresh_token": service["refresh_token"]}
    for _ in range(2):
        pair = assert_ok(await http.post("/api/v1/auth/token", json={**refresh, **credentials}))
    again = {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"]}
    assert_ok(await http.post("/api/v1/auth/token", json={**again, **credentials}))
    basic = (credentials["client_id"], credentials["client_secret"])
    for path in ("introspect", "revoke"):
        assert (await http.post(f"/oauth2/{path}", data={"token": pair["access_token"]}, auth=basic)).is_success
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
    assert (await http.options("/api/v1/posts", headers=asked)).is_success
    assert (await http.get("/readyz")).is_success


async def of_the_dashboard(services: Services, caller: Caller, site: Site) -> None:
    """What the pages of a user ask, and what they do with a key."""
    client_id = site.key["client_id"]
    for page in (overview.keys_of, overview.sites, overview.choices, overview.usage, overview.person, keys.businesses):
        await page(services, caller)
    sites = await overview.sites(services, caller)
    await overview.histories(services, caller, sites)
    await overview.all_keys(services, caller, ended=True)
    await audit.search(services, caller.owner_id, Wanted(["key.created"], [1, 2], 1, 2**60), None, 1)
    for act in several.ACTS:
        chosen = [one for one in await overview.sites(services, caller) if one.keys][:1]
        await several.run(services, caller, act, chosen, IdempotencyKey(f"page {act}", act))
    link = await badges.show(services, caller, client_id, is_shown=True)
    await badges.read(services, link or "")
    await keys.deactivate(services, client_id, "user_requested", caller=caller)
    await keys.reactivate_own(services, caller, client_id)
    await credentials.roll(services, caller, client_id, KeyRoll(overlap_seconds=0))
    await audit.key_trail(services, caller, client_id, AuditQuery())
    await alerts.failures(services, caller)
    await _sessions(services)
    location = await access.require_location(services, caller, "locations/111")
    await _what_owners_write(services, caller, location)
    await events.location_events(services, location, None, 1)
    webhook = await webhooks.create(services, caller, WebhookCreate(url="https://hooks.example/page"))
    sent = await deliveries.test(services, caller, str(webhook.id))
    shown = await deliveries.get_delivery(services, caller, str(webhook.id), str(sent.id))
    await deliveries.list_deliveries(services, caller, str(webhook.id), DeliveryListQuery(), state="failed")
    attempt = DeliveryAttempt(at=shown.created_at, status=200, error=None, duration_ms=1, response=None)
    tried = shown.model_copy(update={"attempts": [attempt]})
    assert await requests.sent_request(services, caller, webhook.id, tried) is not None
    await webhooks.delete(services, caller, str(webhook.id))
    async with services.storage.read() as session:
        await stored_deliveries.last_attempts(session, caller.owner_id, 1)
    await keys.revoke(services, caller, client_id)


async def first_login(services: Services) -> None:
    """A person who becomes a user, and comes back."""
    user = await operator.add_user(services, "zoe@example.com")
    async with services.storage.write() as session:
        await identities.mark_used(session, "digest", services.clock.now() + 1)
        await identities.link(session, "https://issuer.example", "zoe", user.id, services.clock.now())
        assert await identities.user_of(session, "https://issuer.example", "zoe") == user


async def _what_owners_write(services: Services, caller: Caller, location: AllowedLocation) -> None:
    now = services.clock.now()
    url = await photos.store(services, caller, png())
    post = {"topicType": "STANDARD", "summary": "Later", "media": [{"mediaFormat": "PHOTO", "sourceUrl": url}]}
    draft = await drafts.save(services, location, {}, post, (now + HOUR, "UTC"))
    await drafts.listing(services, location, 25)
    await drafts.texts(services, caller.owner_id, [head.id for head in await drafts.heads(services, caller)])
    for where in (location.name, None):
        places = await drafts.places(services, caller.owner_id, where, 0, now + DAY)
        await drafts.contents(services, caller.owner_id, places)
    await photos.read(services, url.rpartition("/")[2])
    await drafts.delete(services, location, draft)
    await drafts.end(services, location, await drafts.save(services, location, {}, post))
    await reply_templates.save(services, caller, "Thanks", "Thank you.")
    for template in await reply_templates.listing(services, caller):
        await reply_templates.delete(services, caller, template.id)


async def _sessions(services: Services) -> None:
    """Two of Bob's are ended, and the third one continues."""
    bob = await operator.act_for(services, BOB)
    this, *others = [await tokens.user_token(services, BOB) for _ in range(3)]
    for other in others:
        await sessions.end(services, bob, services.signer.verify(other, "at+jwt", services.clock.now())["jti"])
    await sessions.started_at(services, bob, this)
    await deletion.plan(services, bob, this)
    assert [piece async for piece in account_export.archive(services, bob)]
    renewed = await sessions.end_others(services, bob, this)
    assert len((await sessions.list_live(services, bob, renewed.token)).rows) == 1
