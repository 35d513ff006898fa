"""What a deployment is asked in a day, mixed: sites, dashboards and strangers, at a steady rate over HTTP."""

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
# How many of each in a second; below what an honest site is limited to, so that a 429 is rare.
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
    """A key and its present tokens, which it gets one at a time: an older pair must not take a newer one's place."""

    key: dict[str, Any]
    location: str
    tokens: dict[str, Any]
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Mixed:
    """The load on a running service; `outcomes` counts (what was asked, status or the failure's name)."""

    def __init__(self, http: httpx.AsyncClient, user_tokens: dict[str, str], seed: int = 1) -> None:
        self._http, self._users, self._chance = http, user_tokens, random.Random(seed)
        self._sites: list[Site] = []
        self._posts: dict[str, list[str]] = {location: [] for location in OWNERS}
        self.outcomes: Counter[tuple[str, str]] = Counter()

    async def prepare(self) -> None:
        """Keys, tokens and posts to begin with. AssertionError when one is refused."""
        for location in OWNERS:
            for _ in range(SITES_PER_LOCATION):
                made = await self._make_key(location)
                assert made.is_success, made.text
                key = made.json()["data"]
                granted = await self._post(TOKEN, "", self._credentials(key))
                assert granted.is_success, granted.text
                self._sites.append(Site(key, location, granted.json()["data"]))
            for _ in range(POSTS_PER_LOCATION):
                assert (await self._create_post(location)).is_success

    async def run(self, seconds: float, each: Callable[[float], None]) -> None:
        """Ask at the rates of RATES for so long, whatever the answers; `each` is told the time twice a second."""
        kinds, total = list(RATES), sum(RATES.values())
        begun, at, running = time.monotonic(), 0.0, set[asyncio.Task[None]]()
        told = 0.0
        while at < seconds:
            at += self._chance.expovariate(total)
            await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
            (kind,) = self._chance.choices(kinds, weights=[*RATES.values()])
            task = asyncio.create_task(self._ask(kind))
            running.add(task)
            task.add_done_callback(running.discard)
            if at - told >= 0.5:
                told = at
                each(at)
        await asyncio.gather(*running)

    async def _ask(self, kind: str) -> None:
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
        async with site.turn:
            body = {"grant_type": "refresh_token", "refresh_token": site.tokens["refresh_token"]}
            return self._kept(site, await self._post(TOKEN, "", body))

    async def _grant(self, site: Site) -> httpx.Response:
        async with site.turn:
            return self._kept(site, await self._post(TOKEN, "", self._credentials(site.key)))

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

    async def _create_post(self, where: Site | str) -> httpx.Response:
        location = where if isinstance(where, str) else where.location
        body = {"summary": f"News {self._chance.randbytes(4).hex()}: fresh bread every morning from six."}
        answer = await self._post(POSTS, self._owner(location), body, locationId=location)
        if answer.is_success:
            self._posts[location].append(answer.json()["data"]["name"].rsplit("/", 1)[1])
        return answer

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
        """Made, used and revoked; two at once may be one more than a location may have."""
        made = await self._make_key(site.location)
        if not made.is_success:
            return made
        key = made.json()["data"]
        granted = await self._post(TOKEN, "", self._credentials(key))
        if granted.is_success:
            await self._post("/api/v1/api-keys/heartbeat", granted.json()["data"]["access_token"], _REPORT)
        return await self._send("DELETE", f"{KEYS}/{key['client_id']}", self._owner(site.location))

    async def _metrics(self, _site: Site) -> httpx.Response:
        return await self._get("/metrics", "")

    async def _make_key(self, location: str) -> httpx.Response:
        owner, business = OWNERS[location]
        body = {"name": "Soak", "business_id": business, "assigned_location_id": location}
        return await self._post(KEYS, self._users[owner], body)

    def _kept(self, site: Site, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            site.tokens = answer.json()["data"]
        return answer

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
        """From one of thousands of addresses, as a proxy tells it."""
        number = self._chance.randrange(ADDRESSES)
        headers = {"X-Forwarded-For": f"10.1.{number >> 8}.{number & 255}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return await self._http.request(method, path, params=query, json=body, headers=headers)


def _short(site: Site) -> str:
    return site.location.removeprefix("locations/")
