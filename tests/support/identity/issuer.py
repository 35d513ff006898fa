"""A foreign identity provider on a real socket: its keys, its ID tokens, its bad days."""

import asyncio
import json
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from conftest import START
from profilesvc.domain.time import FrozenClock
from profilesvc.server.serving import EmbeddedServer
from support.api import assert_error

ISSUER = "https://login.example/realms/main"
CLIENT = "profiles-dashboard"
NOW = START // 1000
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
PATH = "/api/v1/auth/token"

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
_RSA: list[rsa.RSAPrivateKey] = []


def rsa_key(index: int = 0) -> rsa.RSAPrivateKey:
    """The first, second … RSA key of the session."""
    while len(_RSA) <= index:
        _RSA.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    return _RSA[index]


def jwk(key: Any, kid: str | None = "k1", **members: Any) -> dict[str, Any]:
    """The public JWK of a private key."""
    readers: dict[type, type[Any]] = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    algorithm = next((found for kind, found in readers.items() if isinstance(key, kind)), OKPAlgorithm)
    made = json.loads(algorithm.to_jwk(key.public_key()))
    made = {name: value for name, value in made.items() if name != "key_ops"}
    return {**made, **({} if kid is None else {"kid": kid}), **members}


def claims(**changes: Any) -> dict[str, Any]:
    """Those of a good ID token of Alice; None takes one away."""
    good = {"iss": ISSUER, "aud": CLIENT, "sub": "alice-at-login", "iat": NOW, "exp": NOW + 300, **changes}
    return {name: value for name, value in good.items() if value is not None}


def signed(made: dict[str, Any] | None = None, key: Any = None, alg: str = "RS256", **header: Any) -> str:
    """An ID token; header fields replace `kid`, and None removes it."""
    headers = {"kid": "k1", **header}
    headers = {name: value for name, value in headers.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short HMAC keys are what an attacker uses
        payload = json.dumps(claims() if made is None else made).encode()
        return jwt.PyJWS().encode(payload, rsa_key() if key is None else key, alg, headers)


def body(token: Any, **members: Any) -> dict[str, Any]:
    return {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": ID_TOKEN, **members}


async def exchanged(http: httpx.AsyncClient, token: Any, **members: Any) -> httpx.Response:
    return await http.post(PATH, json=body(token, **members))


def assert_refused(response: httpx.Response, reason: str = "invalid") -> None:
    """The 401 of every fault of an ID token; nothing of the token is in it."""
    assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": reason}
    assert response.headers["cache-control"] == "no-store"
    assert "www-authenticate" not in response.headers


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class FakeIssuer:
    """Answers every path with `answer`, by default its key set, and counts who asks."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self._ended = threading.Event()
        self.well()
        self._server = EmbeddedServer(self)

    def well(self, *keys: dict[str, Any]) -> None:
        """Serve these keys."""
        self.serve(json.dumps({"keys": list(keys) or [jwk(rsa_key())]}).encode())

    def serve(self, content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Serve this, whatever it is."""
        raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]

        async def answer(receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": content})

        self.answer = answer

    def endless(self, chunk: bytes) -> None:
        """Serve a chunk again and again, until the other side goes away; `sent` counts."""
        self.sent = 0

        async def answer(receive: Receive, send: Send) -> None:
            gone = asyncio.ensure_future(_until_gone(receive))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not gone.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                self.sent += len(chunk)
                await asyncio.sleep(0)

        self.answer = answer

    def silent(self, *, after_headers: bool = False) -> None:
        """Take the request and say nothing until the end: it may not hear that the other side goes away."""

        async def answer(receive: Receive, send: Send) -> None:
            if after_headers:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b'{"keys":', "more_body": True})
            await asyncio.to_thread(self._ended.wait)

        self.answer = answer

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        self.hits.append(scope["path"])
        await self.answer(receive, send)

    @property
    def url(self) -> str:
        return f"{self._server.base_url}/jwks.json"

    def __enter__(self) -> "FakeIssuer":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.stop()


class Logins:
    """Numbered logins, each with an ID token of its own at the time of the clock."""

    def __init__(self, http: httpx.AsyncClient, clock: FrozenClock) -> None:
        self._http, self._clock, self._count = http, clock, 0

    async def __call__(self, key: rsa.RSAPrivateKey | None = None, kid: str = "k1") -> httpx.Response:
        self._count += 1
        now = self._clock.now() // 1000
        made = claims(iat=now, exp=now + 300, jti=str(self._count))
        return await exchanged(self._http, signed(made, key, kid=kid))
