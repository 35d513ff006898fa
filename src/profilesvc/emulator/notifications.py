"""Notification settings (Notifications v1), and what the provider publishes to their topic (format: Pub/Sub push).

A push subscription sends each message as `{message: {data, messageId, publishTime, attributes}, subscription}`, signed
by an OIDC token whose key is at /oauth2/v3/certs. Whatever is not acknowledged with a 2xx is sent again. The names in
`data` are those that the provider documents: `locationName` and `reviewName`.
"""

import asyncio
import base64
import json
import random
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from quart import Blueprint
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.notification import NotificationSetting, NotificationType
from profilesvc.domain.time import SECOND, iso
from profilesvc.emulator.consent import consent
from profilesvc.emulator.locations import find_account
from profilesvc.emulator.masks import applied, update_mask
from profilesvc.emulator.state import Emulator, Switches, emulator, switches
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import EmulatorNotificationRow, EmulatorPushKeyRow
from profilesvc.emulator.wire import pruned, read_message, read_query

notifications = Blueprint("notifications", __name__)
ISSUER = "https://accounts.google.com"
CERTS = "/oauth2/v3/certs"
_WHOLE = "notificationSetting"  # the mask of the documentation
_FIELDS = "notificationTypes,pubsubTopic"
_TOKEN_SECONDS = 3600
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1  # before the second attempt; then twice as long each time


class Change(NamedTuple):
    """A change at the provider: of a location of an account, or of a review of it."""

    kind: NotificationType
    account: str
    location: str
    review: str = ""


@notifications.get("/v1/accounts/<name:account>/notificationSetting")
async def get_setting(account: str) -> JsonObject:
    read_query()
    async with emulator().store.read() as session:
        return _rendered(account, await _document(session, account))


@notifications.patch("/v1/accounts/<name:account>/notificationSetting")
async def patch_setting(account: str) -> JsonObject:
    """Set the masked fields."""
    text = read_query("updateMask").get("updateMask")
    mask = update_mask(_FIELDS if text in (_WHOLE, "notification_setting") else text, NotificationSetting, strict=True)
    body = await read_message(NotificationSetting, "notification_setting")
    async with emulator().store.write() as session:
        document = applied(await _document(session, account), body, mask)
        await session.merge(EmulatorNotificationRow(account=f"accounts/{account}", document=dump(document)))
    return _rendered(account, document)


async def _document(session: AsyncSession, account: str) -> JsonObject:
    known = await find_account(session, account)
    row = await session.get(EmulatorNotificationRow, known.name)
    return {} if row is None else dict(json.loads(row.document))


def _rendered(account: str, document: JsonObject) -> JsonObject:
    setting: JsonObject = pruned({**document, "name": f"accounts/{account}/notificationSetting"})
    return setting


@consent.get(CERTS)
async def certs() -> JsonObject:
    """Return the public key of the tokens of pushes, as a JWK set."""
    async with emulator().store.write() as session:
        kid, key = await _signing_key(session)
    public = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    return {"keys": [{**public, "kid": kid, "alg": "RS256", "use": "sig"}]}


async def _signing_key(session: AsyncSession) -> tuple[str, rsa.RSAPrivateKey]:
    """Return the key in the emulator's file, made at its first use."""
    row = (await session.exec(select(EmulatorPushKeyRow))).first()
    if row is None:
        made = await asyncio.to_thread(rsa.generate_private_key, 65537, 2048)
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        row = EmulatorPushKeyRow(kid=secrets.token_hex(8), pem=made.private_bytes(*form).decode())
        session.add(row)
    # The emulator has made it. To check it would take 40 ms at each push.
    key = serialization.load_pem_private_key(row.pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, rsa.RSAPrivateKey)
    return row.kid, key


async def published(session: AsyncSession, changes: Sequence[Change]) -> list[JsonObject]:
    """Return the pushes of changes in accounts that have a topic for them. `push` sends them after the transaction."""
    messages = []
    shared, current = emulator(), _pushing()
    now = shared.clock.now() + current.clock_offset_ms
    for change in changes:
        row = await session.get(EmulatorNotificationRow, change.account)
        setting = {} if row is None else json.loads(row.document)
        if setting.get("pubsubTopic") and change.kind in setting.get("notificationTypes", []):
            messages.append(_message(change, setting["pubsubTopic"], now))
    if not messages:
        return []
    kid, key = await _signing_key(session)
    token = _token(current, kid, key, now // SECOND)
    return [{"authorization": f"Bearer {token}", "body": message} for message in messages]


def push(pushes: list[JsonObject]) -> None:
    """Record pushes, and send them to the endpoint if there is one."""
    shared, current = emulator(), _pushing()
    shared.pushes.extend(pushes)
    if current.push_endpoint and pushes:
        shared.start(_deliver(shared, current, pushes))


def _pushing() -> Switches:
    """Return the switches; without an endpoint, those of the service in the same process."""
    current = switches()
    return current if current.push_endpoint else current.model_copy(update=emulator().pushing)


def _message(change: Change, topic: str, now: int) -> JsonObject:
    data = {"notificationType": change.kind, "locationName": f"{change.account}/{change.location}"}
    data |= {"reviewName": change.review} if change.review else {}
    message = {
        "data": base64.b64encode(dump(data).encode()).decode(),
        "messageId": str(secrets.randbelow(10**17)),  # seeded entropy repeats itself after a restart
        "publishTime": iso(now),
        "attributes": {},
    }
    return {"message": message, "subscription": f"{topic.partition('/topics/')[0]}/subscriptions/profiles"}


def _token(current: Switches, kid: str, key: rsa.RSAPrivateKey, now: int) -> str:
    email = current.push_service_account
    audience = current.push_audience or current.push_endpoint
    claims: JsonObject = {"iss": ISSUER, "aud": audience, "azp": email, "sub": email, "email": email}
    claims |= {"email_verified": True, "iat": now, "exp": now + _TOKEN_SECONDS}
    return jwt.encode(claims, key, "RS256", {"kid": kid})


async def _deliver(shared: Emulator, current: Switches, pushes: list[JsonObject]) -> None:
    """Push messages as often, in the order and as late as the switches say."""
    await asyncio.sleep(current.push_delay_seconds)
    deliveries = [push for push in pushes for _ in range(current.push_times)]
    if current.push_shuffled:
        random.shuffle(deliveries)
    async with httpx.AsyncClient(transport=shared.push_transport, trust_env=False, timeout=10) as client:
        await asyncio.gather(*(_push(client, current.push_endpoint, push) for push in deliveries))


async def _push(client: httpx.AsyncClient, endpoint: str, push: JsonObject) -> None:
    """Push one message until it is acknowledged."""
    for attempt in range(_ATTEMPTS):
        try:
            headers = {"Authorization": push["authorization"]}
            if (await client.post(endpoint, json=push["body"], headers=headers)).is_success:
                return
        except httpx.HTTPError:
            pass
        await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
