"""Starlette + asyncpg + msgspec, written by hand: no ORM, no models of requests beyond structs, no documents.

Like the service, it caches verified tokens, commits heartbeats in groups, and counts requests and grants for rows that
are written later.
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.peers.anchor import statements

SQL = statements()
ISSUER = os.environ["BENCH_BASE_URL"]
ACCESS_SECONDS, REFRESH_SECONDS = 7_776_000, 2_592_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CACHED_TOKENS, CONNECTIONS, WRITE_SECONDS = 1_000, 10, 5


class Header(msgspec.Struct):
    alg: str
    typ: str
    kid: str


class Claims(msgspec.Struct):
    iss: str
    aud: str
    exp: int
    sub: str
    scope: str
    epoch: int
    jti: str
    fam: str = ""
    permissions: list[str] = []
    kid: str = ""


class Beat(msgspec.Struct):
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None


class Grant(msgspec.Struct):
    grant_type: str
    client_id: str
    client_secret: str


_header, _claims = msgspec.json.Decoder(Header), msgspec.json.Decoder(Claims)
_beat, _grant = msgspec.json.Decoder(Beat), msgspec.json.Decoder(Grant)
_encode = msgspec.json.Encoder().encode
_verified: dict[str, Claims] = {}
_tasks: set[asyncio.Task[None]] = set()


def b64(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def unb64(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def now() -> int:
    return time.time_ns() // 1_000_000


def month_of(at: int) -> int:
    day = datetime.fromtimestamp(at / 1000, UTC)
    return int(datetime(day.year, day.month, 1, tzinfo=UTC).timestamp() * 1000)


def iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def owner_of(client_id: str) -> int:
    """Return the owner in `svcid_<owner>_<instant>_<name>`."""
    parts = client_id.split("_", 3)
    if len(parts) < 4 or parts[0] != "svcid" or not parts[1].isdecimal():
        raise HTTPException(401)
    return int(parts[1])


class State:
    """What the process has: connections, keys, and what it writes later."""

    pool: asyncpg.Pool

    def __init__(self) -> None:
        self.requests: Counter[tuple[int, int]] = Counter()
        self.grants: Counter[tuple[int, int, str, str]] = Counter()
        self.waiting: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
        self.is_writing = False

    async def open(self) -> None:
        async def keep(_connection: object) -> None:
            """Reset nothing."""

        self.pool = await asyncpg.create_pool(
            os.environ["BENCH_DATABASE_URL"], min_size=CONNECTIONS, max_size=CONNECTIONS, reset=keep
        )
        self.rsa: dict[str, Any] = {}
        for alg, kid, pem in await self.pool.fetch(SQL["signing_keys"], now()):
            key: Any = load_pem_private_key(pem.encode(), None)
            head = b64(_encode({"alg": alg, "typ": "at+jwt" if alg == "RS256" else "rt+jwt", "kid": kid}))
            if alg == "RS256":
                self.rsa[kid], self.private, self.access_head = key.public_key(), key, head
            else:
                self.secret, self.refresh_head = key.private_bytes_raw(), head

    def access(self, payload: bytes) -> bytes:
        signed = self.access_head + b"." + b64(payload)
        return signed + b"." + b64(self.private.sign(signed, PKCS1v15(), SHA256()))

    def refresh(self, payload: bytes) -> bytes:
        signed = self.refresh_head + b"." + b64(payload)
        return signed + b"." + b64(hmac.digest(self.secret, signed, "sha256"))

    def note_use(self, owner: int, key: int, last_used: int | None, at: int) -> None:
        """Count a request of a key, and store its last use once a minute."""
        self.requests[owner, key] += 1
        if last_used is None or last_used < at - MINUTE:
            spawn(self.execute("used", owner, key, at))

    async def execute(self, name: str, *values: object) -> None:
        await self.pool.execute(SQL[name], *values)

    async def beat(self, *values: Any) -> None:
        """Return when the heartbeat is durable. Those that arrive during a commit share the next one."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((values, done))
        if not self.is_writing:
            self.is_writing = True
            spawn(self._write_beats())
        await done

    async def _write_beats(self) -> None:
        while self.waiting:
            batch, self.waiting = self.waiting, []
            rows = [values for values, _ in batch]
            latest = list({row[:2]: (*row[:3], month_of(row[2])) for row in rows}.values())
            try:
                async with self.pool.acquire() as connection, connection.transaction():
                    await connection.executemany(SQL["beat"], rows)
                    await connection.executemany(SQL["extend"], latest)
                    await connection.executemany(SQL["start"], latest)
            except Exception as error:
                for _, done in batch:
                    done.set_exception(error)
            else:
                for _, done in batch:
                    done.set_result(None)
        self.is_writing = False

    async def write_counts(self) -> None:
        """Write what was counted since the last time."""
        requests, self.requests = self.requests, Counter()
        grants, self.grants = self.grants, Counter()
        at = now()
        day, month = at - at % DAY, month_of(at)
        for (owner, key), times in requests.items():
            await self.execute("usage", owner, key, day, times)
        for (owner, key, network, permissions), times in grants.items():
            details = _encode({"last_at": iso(at), "permissions": permissions.split()}).decode()
            once = f"token.issued:{key}:{day}:{network}"
            await self.execute("issued", owner, at, month, key, f"key:{key}", network, details, once, times)


state = State()


def spawn(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def success(data: bytes) -> Response:
    return Response(b'{"status":"ok","data":' + data + b"}", media_type="application/json")


def verified(request: Request, scope: str) -> Claims:
    """Return the claims of the caller's access token: 401 for an invalid one, 403 for another kind of caller."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    claims = _verified.get(token)
    if claims is None:
        if kind.lower() != "bearer":
            raise HTTPException(401)
        claims = check_signature(token)
        if len(_verified) >= CACHED_TOKENS:
            _verified.clear()
        _verified[token] = claims
    if claims.exp <= time.time():
        raise HTTPException(401)
    if claims.scope != scope:
        raise HTTPException(403)
    return claims


def check_signature(token: str) -> Claims:
    try:
        head, payload, signature = token.split(".")
        header = _header.decode(unb64(head))
        if (header.alg, header.typ) != ("RS256", "at+jwt"):
            raise HTTPException(401)
        state.rsa[header.kid].verify(unb64(signature), f"{head}.{payload}".encode(), PKCS1v15(), SHA256())
        claims: Claims = _claims.decode(unb64(payload))
    except (KeyError, ValueError, InvalidSignature, msgspec.MsgspecError) as error:
        raise HTTPException(401) from error
    if claims.iss != ISSUER or claims.aud != ISSUER:
        raise HTTPException(401)
    claims.kid = header.kid
    return claims


async def caller(statement: str, claims: Claims, at: int, *more: object) -> Any:
    """Return the owner of the caller's key, and the row of a statement that checks it."""
    owner = owner_of(claims.sub)
    about = claims.sub, claims.jti, claims.fam, claims.kid, claims.epoch
    row = await state.pool.fetchrow(SQL[statement], owner, *about, at, *more)
    if row is None or row["status"] != 200:
        raise HTTPException(401 if row is None else row["status"])
    state.note_use(owner, row["id"], row["last_used_at"], at)
    return owner, row


async def read_posts(request: Request) -> Response:
    claims, query = verified(request, "service"), request.query_params
    size = query.get("pageSize", "50")
    if "locationId" not in query or not size.isdecimal() or not 1 <= int(size) <= 100:
        raise HTTPException(400)
    if "business.read" not in claims.permissions:
        raise HTTPException(403)
    _, row = await caller("list", claims, now(), query["locationId"], int(size))
    posts = (row["documents"] or "").encode()
    return success(b'{"localPosts":[' + posts + b'],"nextPageToken":' + _encode(row["next_page"] or "") + b"}")


async def read_status(request: Request) -> Response:
    claims, at = verified(request, "user"), now()
    values = int(claims.sub), request.path_params["client_id"], claims.jti, claims.kid, claims.epoch, at
    row = await state.pool.fetchrow(SQL["status"], *values)
    if row is None or row["status"] != 200:
        raise HTTPException(401 if row is None else row["status"])
    seen, *versions = row[:4]
    connection, hint = "offline", "never_connected" if seen is None else "was_online"
    if seen is not None and at - seen <= 2 * HOUR:
        connection, hint = "online", ""
    elif seen is not None and at - seen < DAY:
        connection = "idle"
    data = {
        "connection_status": connection,
        "last_heartbeat_at": None if seen is None else iso(seen),
        **dict(zip(("plugin_version", "wp_version", "php_version"), versions, strict=True)),
        "reason_hint": "deactivated" if row["is_held"] else hint or None,
    }
    if row["is_held"] is False and hint == "was_online":
        data["reason_at"] = iso(seen)
    return success(_encode(data))


async def heartbeat(request: Request) -> Response:
    claims, at = verified(request, "service"), now()
    try:
        beat = _beat.decode(await request.body())
    except msgspec.MsgspecError as error:
        raise HTTPException(400) from error
    versions = beat.plugin_version, beat.wp_version, beat.php_version
    if any(len(each or "") > 64 for each in versions):
        raise HTTPException(400)
    owner, row = await caller("caller", claims, at)
    await state.beat(owner, row["id"], at, *versions)
    return success(b'{"received":true,"next_heartbeat_in":3600}')


async def token(request: Request) -> Response:
    try:
        grant = _grant.decode(await request.body())
    except msgspec.MsgspecError as error:
        raise HTTPException(400) from error
    owner, at = owner_of(grant.client_id), now()
    row = await state.pool.fetchrow(SQL["credentials"], owner, grant.client_id, at)
    if row is None or row["status"] == 401:
        raise HTTPException(401)
    digest = hashlib.sha256(grant.client_secret.encode()).hexdigest()
    matches = [hmac.compare_digest(digest, each) for each in (row["digests"] or "").split()]
    if not any(matches):
        raise HTTPException(401)
    if row["status"] != 200:
        raise HTTPException(row["status"])
    assert request.client is not None
    network = request.client.host.rpartition(".")[0] + ".0/24"
    state.grants[owner, row["id"], network, row["permissions"]] += 1
    state.note_use(owner, row["id"], row["last_used_at"], at)
    return success(_encode(tokens(grant.client_id, row, at // 1000)))


def tokens(client_id: str, row: Any, issued: int) -> dict[str, Any]:
    """Return an access token (RS256) and a refresh token (HS256), which end before their key."""
    left = ACCESS_SECONDS if row["expires_at"] is None else row["expires_at"] // 1000 - issued
    access_ttl, refresh_ttl = min(ACCESS_SECONDS, left), min(REFRESH_SECONDS, left)
    permissions = row["permissions"].split()
    shared = {
        "sub": client_id,
        "client_id": client_id,
        "scope": "service",
        "permissions": permissions,
        "location": row["location_name"],
        "business_id": row["business_id"],
        "epoch": row["epoch"],
        "fam": secrets.token_urlsafe(16),
        "gen": 0,
        "auth_time": issued,
    }

    def payload(audience: str, seconds: int) -> bytes:
        about = {"iss": ISSUER, "aud": audience, "iat": issued, "exp": issued + seconds}
        encoded: bytes = _encode({**about, **shared, "jti": secrets.token_urlsafe(16)})
        return encoded

    return {
        "token_type": "Bearer",
        "scope": "service",
        "plan": row["plan"],
        "access_token": state.access(payload(ISSUER, access_ttl)).decode(),
        "expires_in": access_ttl,
        "permissions": permissions,
        "refresh_token": state.refresh(payload(f"{ISSUER}/api/v1/auth/token", refresh_ttl)).decode(),
        "refresh_expires_in": refresh_ttl,
    }


async def write_regularly() -> None:
    while True:
        await asyncio.sleep(WRITE_SECONDS)
        await state.write_counts()


@contextlib.asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncGenerator[None, None]:
    await state.open()
    writer = asyncio.create_task(write_regularly())
    yield
    writer.cancel()
    await state.write_counts()
    await state.pool.close()


app = Starlette(
    routes=[
        Route("/api/v1/posts", read_posts),
        Route("/api/v1/api-keys/heartbeat", heartbeat, methods=["POST"]),
        Route("/api/v1/api-keys/{client_id}/status", read_status),
        Route("/api/v1/auth/token", token, methods=["POST"]),
    ],
    lifespan=lifespan,
)
