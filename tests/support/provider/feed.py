"""The change feed in a test: its settings, the emulator that pushes to the app, and tokens of our own making."""

import base64
import json
from typing import Any, cast

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from quart import Quart

from profilesvc.bootstrap import Runtime
from profilesvc.emulator.state import Emulator
from profilesvc.services.context import Services
from profilesvc.services.feed import feed
from profilesvc.settings import NotificationSettings

PATH = "/provider/notifications"
TOPIC, ACCOUNT = "projects/p/topics/profiles", "push@emulator.iam.gserviceaccount.com"
FEED = NotificationSettings(topic=TOPIC, service_account=ACCOUNT, reads_per_minute=300)


async def connect(app: Quart, world: Runtime, services: Services, *accounts: str) -> Emulator:
    """Let the emulator push what changes in these accounts to the app, without a socket."""
    assert world.emulator is not None
    shared: Emulator = world.emulator.extensions["emulator"]
    shared.push_transport = httpx.ASGITransport(app=cast(Any, app))
    for account in accounts:
        await services.provider.set_notifications(account, TOPIC, feed.TYPES)
    return shared


async def push(http: httpx.AsyncClient, sent: dict[str, Any]) -> httpx.Response:
    """Deliver a push once more."""
    return await http.post(PATH, json=sent["body"], headers={"Authorization": sent["authorization"]})


def message(ident: str, kind: str = "GOOGLE_UPDATE", location: str = "locations/111", **data: Any) -> dict[str, Any]:
    """The body of a push."""
    text = json.dumps({"notificationType": kind, "locationName": f"accounts/1/{location}", **data})
    sent = {"data": base64.b64encode(text.encode()).decode(), "messageId": ident, "attributes": {}}
    return {"message": sent, "subscription": "projects/p/subscriptions/profiles"}


def claims(now: int, audience: str, **changed: Any) -> dict[str, Any]:
    """The claims of a genuine token, with some of them changed; None leaves one out."""
    seconds = now // 1000
    genuine: dict[str, Any] = {
        "iss": "https://accounts.google.com",
        "aud": audience,
        "azp": "1",
        "sub": "1",
        "email": ACCOUNT,
    }
    genuine |= {"email_verified": True, "iat": seconds, "exp": seconds + 3600, **changed}
    return {name: value for name, value in genuine.items() if value is not None}


class Signer:
    """The key of the emulator, or another one."""

    def __init__(self, kid: str, key: rsa.RSAPrivateKey) -> None:
        self.kid, self.key = kid, key

    def token(self, values: dict[str, Any], **header: Any) -> str:
        return jwt.encode(values, self.key, "RS256", {"kid": self.kid, **header})
