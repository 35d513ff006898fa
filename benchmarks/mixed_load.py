"""The mixed load of a deployment at a steady rate: sites, dashboards and invalid requests."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

KEYS, TOKEN, POSTS = "/api/v1/developer/credentials", "/api/v1/auth/token", "/api/v1/posts"
OWNERS = {"locations/111": ("alice@example.com", 10), "locations/211": ("bob@example.com", 20)}
SITES_PER_LOCATION, POSTS_PER_LOCATION, ADDRESSES = 17, 50, 5_000
_REPORT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2", "detected_plugins": ["seo", "shop"]}
# Requests per second, below the limits of a normal site, so that a 429 is rare.
RATES = {
    "heartbeat": 11.0,
    "list": 18.0,
    "status": 8.0,
    "refresh": 2.5,
    "grant": 2.5,
    "location": 3.0,
    "locations": 2.0,
    "keys": 2.0,
    "validate": 1.0,
    "bad_token": 3.0,
    "not_found": 3.0,
    "bad_body": 1.0,
    "wrong_secret": 0.5,
    "create_post": 0.4,
    "delete_post": 0.4,
    "history": 0.5,
    "sync": 0.2,
    "comparison": 0.1,
    "new_key": 0.06,
    "metrics": 0.05,
}


@dataclass
class Site:
    """A key and its current tokens. The lock prevents an older pair from replacing a newer one."""

    key: dict[str, Any]
    location: str
    tokens: dict[str, Any]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Mixed:
    """The load on a running service. `outcomes` counts (kind of request, status or name of the failure)."""

    def __init__(self, http: httpx.AsyncClient, user_tokens: dict[str, str], seed: int = 1) -> None:
        self._http, self._users, self._chance = http, user_tokens, random.Random(seed)
        self._sites: list[Site] = []
        self._posts: dict[str, list[str]] = {location: [] for location in OWNERS}
        self.outcomes: Counter[tuple[str, str]] = Counter()

    async def prepare(self) -> None:
        """Create keys, tokens and posts.

        Raises:
            AssertionError: A request was rejected.
        """
        for location in OWNERS:
            for _ in range(SITES_PER_LOCATION):
                created = await self._create_key(location)
                assert created.is_success, created.text
                key = created.json()["data"]
                grant = await self._post(TOKEN, "", self._credentials(key))
                assert grant.is_success, grant.text
                self._sites.append(Site(key, location, grant.json()["data"]))
            for _ in range(POSTS_PER_LOCATION):
                assert (await self._create_post(location)).is_success

    async def run(self, seconds: float, each: Callable[[float], None]) -> None:
        """Send requests at the rates of RATES. Call `each` with the elapsed time twice a second."""
        kinds, total = list(RATES), sum(RATES.values())
        started, at, running = time.monotonic(), 0.0, set[asyncio.Task[None]]()
        reported = 0.0
        while at < seconds:
            at += self._chance.expovariate(total)
            await asyncio.sleep(max(0.0, started + at - time.monotonic()))
            (kind,) = self._chance.choices(kinds, weights=[*RATES.values()])
            task = asyncio.create_task(self._request(kind))
            running.add(task)
            task.add_done_callback(running.discard)
            if at - reported >= 0.5:
                reported = at
                each(at)
        await asyncio.gather(*running)

    async def _request(self, kind: str) -> None:
        request: Callable[[Site], Awaitable[httpx.Response]] = getattr(self, f"_{kind}")
        try:
            outcome = str((await request(self._chance.choice(self._sites))).status_code)
        except httpx.TransportError as error:
            outcome = type(error).__name__
        self.outcomes[kind, outcome] += 1

    async def _heartbeat(self, site: Site) -> httpx.Response:
        return await self._post("/api/v1/api-keys/heartbeat", site.tokens["access_token"], _REPORT)

    async def _list(self, site: Site) -> httpx.Response:
        return await self._get(POSTS, site.tokens["access_token"], locationId=site.location)

    async def _status(self, site: Site) -> httpx.Response:
        return await self._get(f"/api/v1/api-keys/{site.key['client_id']}/status", self._owner(site.location))

    async def _refresh(self, site: Site) -> httpx.Response:
        async with site.lock:
            body = {"grant_type": "refresh_token", "refresh_token": site.tokens["refresh_token"]}
            return self._with_new_tokens(site, await self._post(TOKEN, "", body))

    async def _grant(self, site: Site) -> httpx.Response:
        async with site.lock:
            return self._with_new_tokens(site, await self._post(TOKEN, "", self._credentials(site.key)))

    async def _location(self, site: Site) -> httpx.Response:
        return await self._get(f"/api/v1/external-business/{site.location}", site.tokens["access_token"])

    async def _locations(self, site: Site) -> httpx.Response:
        return await self._get("/api/v1/external-business/locations", self._owner(site.location))

    async def _keys(self, site: Site) -> httpx.Response:
        return await self._get(KEYS, self._owner(site.location))

    async def _validate(self, site: Site) -> httpx.Response:
        body = {name: site.key[name] for name in ("client_id", "client_secret")}
        return await self._post("/api/v1/auth/validate-service-credentials", "", body)

    async def _bad_token(self, site: Site) -> httpx.Response:
        head, claims, _ = site.tokens["access_token"].split(".")
        forged = self._chance.randbytes(256).hex()
        return await self._get(POSTS, f"{head}.{claims}.{forged}", locationId=site.location)

    async def _not_found(self, site: Site) -> httpx.Response:
        return await self._get(f"/{self._chance.randbytes(6).hex()}/wp-login.php", site.tokens["access_token"])

    async def _bad_body(self, site: Site) -> httpx.Response:
        return await self._post("/api/v1/api-keys/heartbeat", site.tokens["access_token"], {"wp_version": 6})

    async def _wrong_secret(self, site: Site) -> httpx.Response:
        wrong = {**self._credentials(site.key), "client_secret": self._chance.randbytes(48).hex()}
        return await self._post(TOKEN, "", wrong)

    async def _create_post(self, target: Site | str) -> httpx.Response:
        location = target if isinstance(target, str) else target.location
        body = {"summary": f"News {self._chance.randbytes(4).hex()}: fresh bread every morning from six."}
        response = await self._post(POSTS, self._owner(location), body, locationId=location)
        if response.is_success:
            self._posts[location].append(response.json()["data"]["name"].rsplit("/", 1)[1])
        return response

    async def _delete_post(self, site: Site) -> httpx.Response:
        posts = self._posts[site.location]
        post = posts.pop(0) if posts else "none"
        return await self._send("DELETE", f"{POSTS}/{post}", self._owner(site.location), locationId=site.location)

    async def _history(self, site: Site) -> httpx.Response:
        return await self._get(f"/api/v1/sync/history/{_short(site)}", site.tokens["access_token"])

    async def _comparison(self, site: Site) -> httpx.Response:
        return await self._get(f"/api/v1/sync/comparison/{_short(site)}", site.tokens["access_token"])

    async def _sync(self, site: Site) -> httpx.Response:
        body = {"title": f"Harbour {self._chance.randrange(100)}"}
        return await self._post(f"/api/v1/sync/{_short(site)}", site.tokens["access_token"], body)

    async def _new_key(self, site: Site) -> httpx.Response:
        """Create, use and revoke a key. Two at the same time can exceed the limit of a location."""
        created = await self._create_key(site.location)
        if not created.is_success:
            return created
        key = created.json()["data"]
        grant = await self._post(TOKEN, "", self._credentials(key))
        if grant.is_success:
            await self._post("/api/v1/api-keys/heartbeat", grant.json()["data"]["access_token"], _REPORT)
        return await self._send("DELETE", f"{KEYS}/{key['client_id']}", self._owner(site.location))

    async def _metrics(self, _site: Site) -> httpx.Response:
        return await self._get("/metrics", "")

    async def _create_key(self, location: str) -> httpx.Response:
        owner, business = OWNERS[location]
        body = {"name": "Soak", "business_id": business, "assigned_location_id": location}
        return await self._post(KEYS, self._users[owner], body)

    def _with_new_tokens(self, site: Site, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            site.tokens = response.json()["data"]
        return response

    def _owner(self, location: str) -> str:
        return self._users[OWNERS[location][0]]

    def _credentials(self, key: dict[str, Any]) -> dict[str, Any]:
        pair = {name: key[name] for name in ("client_id", "client_secret")}
        return {"grant_type": "client_credentials", **pair}

    async def _get(self, path: str, token: str, **query: str) -> httpx.Response:
        return await self._send("GET", path, token, **query)

    async def _post(self, path: str, token: str, body: Any, **query: str) -> httpx.Response:
        return await self._send("POST", path, token, body, **query)

    async def _send(self, method: str, path: str, token: str, body: Any = None, **query: str) -> httpx.Response:
        """Send a request with one of thousands of client addresses, as a proxy does."""
        number = self._chance.randrange(ADDRESSES)
        headers = {"X-Forwarded-For": f"10.1.{number >> 8}.{number & 255}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return await self._http.request(method, path, params=query, json=body, headers=headers)


def _short(site: Site) -> str:
    return site.location.removeprefix("locations/")
