"""Callers of a cluster that loses hosts: what was acknowledged to them, and whether it is still there."""

import collections
import concurrent.futures
import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from support.crash.stories import HEARTBEAT, TOKEN, bearer
from support.waiting import until
from support.wire import KEYS, POSTS

Result = TypeVar("Result")
KEY = {"name": "Failover", "business_id": 10, "assigned_location_id": "locations/112"}
_PAUSE_SECONDS = 0.05
_BEFORE_SECONDS = 3.0
_SETTLED_SECONDS = 3.0
_FRESH_SECONDS = 2.0  # less than _SETTLED_SECONDS, so that what was under way during the harm does not count
_END_SECONDS = 120.0


@dataclass
class Record:
    """All responses of a story, by the time they arrived (monotonic), and what was wrong."""

    writes: list[tuple[float, str]] = field(default_factory=list)  # acknowledged, with the kind
    rejected: list[float] = field(default_factory=list)  # 503, or a connection that the story expects to be lost
    closed: int = 0  # of these, connections
    may_lose_connections: bool = False  # of a request that HAProxy does not repeat
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    summary: str = "not recovered"
    closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def longest_gap(self, since: float) -> float:
        """Return the longest time without an acknowledged write of any kind that ended after `since`."""
        times = sorted(at for at, _ in self.writes)
        pairs = itertools.pairwise(times)
        return max((after - before for before, after in pairs if after >= since), default=float("inf"))

    def well_after(self, since: float) -> float:
        """Return the seconds from `since` to the last rejected request, 0 if none was."""
        return max((at - since for at in self.rejected if at >= since), default=0.0)


class WrongError(Exception):
    """A response that no caller may get; the record has it."""


class Wire:
    """Requests of one caller; only a success or 503 is an expected response to them."""

    def __init__(self, record: Record, url: str, token: str = "") -> None:
        self._record = record
        headers = bearer(token) if token else {}
        self._http = record.closing.enter_context(
            httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=False)
        )

    def send(self, method: str, path: str, *, also: int = 0, **content: Any) -> httpx.Response | None:
        """Return the response; None for a 503, after which the request was carried out or not.

        `also` is another status that is expected.
        """
        response: httpx.Response | None
        try:
            response = self._http.request(method, path, **content)
        except httpx.TransportError as error:
            if method == "GET" or not self._record.may_lose_connections:
                self._record.wrong.append(f"{method} {path}: {error!r}")
                raise WrongError from error
            response = None
            self._record.closed += 1
        if response is None or response.status_code == 503:
            self._record.rejected.append(time.monotonic())
            time.sleep(_PAUSE_SECONDS)
            return None
        if not response.is_success and response.status_code != also:
            self._record.wrong.append(f"{method} {path}: {response.status_code} {response.text}")
            raise WrongError
        return response

    def write(self, kind: str, method: str, path: str, **content: Any) -> Any:
        """Return the data of an acknowledged write, {} if it has none; None if it was not acknowledged."""
        response = self.send(method, path, **content)
        if response is None:
            return None
        if response.is_success:
            self._record.writes.append((time.monotonic(), kind))
        return response.json().get("data") or {} if response.content else {}


class Caller:
    """One caller. `step` writes once; `check` adds to `record.lost` what was acknowledged and is not there."""

    def __init__(self, record: Record, url: str, user: str) -> None:
        self.record, self.url = record, url
        self.user = Wire(record, url, user)

    def step(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def lose(self, text: str) -> None:
        """Note what was acknowledged and lost."""
        self.record.lost.append(f"{type(self).__name__}: {text}")

    def get(self, path: str, **content: Any) -> Any:
        """Return the data of a read that must succeed by now."""
        response = until(lambda: self.user.send("GET", path, **content), f"{path} to be available", 60, every=0.1)
        assert response is not None
        return response.json()["data"]

    def new_site(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a new key and its first tokens."""
        key = self.user.write("key", "POST", KEYS, json=KEY)
        grant = {name: key[name] for name in ("client_id", "client_secret")}
        return key, self.user.write("token", "POST", TOKEN, json={"grant_type": "client_credentials", **grant})


class Heartbeats(Caller):
    """A plugin that counts its heartbeats in what it reports, and reads the count before each."""

    def __init__(self, record: Record, url: str, user: str) -> None:
        super().__init__(record, url, user)
        self._key, pair = self.new_site()
        self._site = Wire(record, url, pair["access_token"])
        self._sent = self._acknowledged = 0

    def step(self) -> None:
        response = self.user.send("GET", f"/api/v1/api-keys/{self._key['client_id']}/status")
        if response is not None:
            self._compare(response.json()["data"])
        self._sent += 1
        if self._site.write("heartbeat", "POST", HEARTBEAT, json={"wp_version": str(self._sent)}) is not None:
            self._acknowledged = self._sent

    def check(self) -> None:
        self._compare(self.get(f"/api/v1/api-keys/{self._key['client_id']}/status"))

    def _compare(self, status: dict[str, Any]) -> None:
        stored = int(status["wp_version"] or 0)
        if not self._acknowledged <= stored <= self._sent:
            self.lose(f"{stored} is stored, {self._acknowledged} was acknowledged")
            self._acknowledged = stored


class Posts(Caller):
    """Posts of a location, and their count against the monthly quota."""

    def __init__(self, record: Record, url: str, user: str) -> None:
        super().__init__(record, url, user)
        self._names: set[str] = set()

    def step(self) -> None:
        made = self.user.write("post", "POST", POSTS, json={"summary": "Failover"})
        if made is not None:
            self._names.add(made["name"])

    def check(self) -> None:
        found, token = set(), None
        while token != "":
            page = self.get(f"{POSTS}&pageSize=100&pageToken={token or ''}")
            found |= {post["name"] for post in page["localPosts"]}
            token = page["nextPageToken"]
        for name in self._names - found:
            self.lose(name)


class Keys(Caller):
    """Makes keys, and revokes the oldest. `revoked` are the tokens that must not be accepted any more."""

    def __init__(self, record: Record, url: str, user: str, revoked: list[str]) -> None:
        super().__init__(record, url, user)
        self._revoked, self._live = revoked, collections.deque[tuple[str, str]]()
        self._ended: set[str] = set()

    def step(self) -> None:
        if len(self._live) >= 4:
            client_id, token = self._live[0]
            # A revocation that was not acknowledged is repeated: then the key may be gone.
            if self.user.write("revocation", "DELETE", f"{KEYS}/{client_id}", also=404) is not None:
                self._live.popleft()
                self._ended.add(client_id)
                self._revoked.append(token)
            return
        key = self.user.write("key", "POST", KEYS, json=KEY)
        if key is None:
            return
        grant = {name: key[name] for name in ("client_id", "client_secret")}
        pair = None
        while pair is None:
            pair = self.user.write("token", "POST", TOKEN, json={"grant_type": "client_credentials", **grant}, also=401)
        if "access_token" in pair:
            self._live.append((key["client_id"], pair["access_token"]))
        else:
            self.lose(f"new key {key['client_id']}")

    def check(self) -> None:
        listed = self.get(f"{KEYS}?include_revoked=true")["credentials"]
        states = {key["client_id"]: key["status"] for key in listed}
        for client_id, _ in self._live:
            if states.get(client_id) != "active":
                self.lose(f"{client_id} is {states.get(client_id)}")
        for client_id in self._ended:
            if states.get(client_id, "revoked") != "revoked":  # the list has not all of those
                self.lose(f"{client_id} is {states[client_id]}, not revoked")


class Revocations(Caller):
    """Gets tokens of one key and revokes them."""

    def __init__(self, record: Record, url: str, user: str, revoked: list[str]) -> None:
        super().__init__(record, url, user)
        self._revoked, self._site = revoked, Wire(record, url)
        key, _ = self.new_site()
        self._grant = {name: key[name] for name in ("client_id", "client_secret")}

    def step(self) -> None:
        pair = self.user.write("token", "POST", TOKEN, json={"grant_type": "client_credentials", **self._grant})
        if pair is None:
            return
        answer = None
        form = {"token": pair["access_token"], **self._grant}
        while answer is None:
            answer = self._site.write("revocation", "POST", "/oauth2/revoke", data=form)
        self._revoked.append(pair["access_token"])

    def check(self) -> None:
        """`Guard` does."""


class Refreshes(Caller):
    """A plugin that exchanges each refresh token twice at the same time, and again until it has the successor."""

    def __init__(self, record: Record, url: str, user: str) -> None:
        super().__init__(record, url, user)
        _, pair = self.new_site()
        self._token = pair["refresh_token"]
        self._wires = [Wire(record, url), Wire(record, url)]
        self._pool = record.closing.enter_context(concurrent.futures.ThreadPoolExecutor(2))

    def step(self) -> None:
        pairs = [pair for pair in self._pool.map(self._exchange, self._wires) if pair is not None]
        successors = {pair.get("refresh_token", "") for pair in pairs}
        if len(successors) > 1:
            self.record.wrong.append(f"{len(successors)} successors of a refresh token")
        if "" in successors:
            self.lose("a refresh token")
            raise WrongError
        if successors:
            self._token = successors.pop()

    def check(self) -> None:
        self.step()

    def _exchange(self, wire: Wire) -> Any:
        grant = {"grant_type": "refresh_token", "refresh_token": self._token}
        return wire.write("refresh", "POST", TOKEN, json=grant, also=401)


class Guard:
    """Uses revoked tokens at each app host, which must reject them."""

    def __init__(self, record: Record, urls: list[str], revoked: list[str]) -> None:
        self._record, self._revoked, self.used = record, revoked, 0
        # Without a limit on waiting a frozen host would end the watch.
        self._clients = [
            record.closing.enter_context(httpx.Client(base_url=url, timeout=8, trust_env=False, verify=False))
            for url in urls
        ]

    def step(self) -> None:
        """Use the newest of them and one of the older ones."""
        newest = self._revoked[-3:]
        for token in (*newest, *self._revoked[self.used % max(len(self._revoked), 1) :][:1]):
            for client in self._clients:
                self._use(client, token)
        self.used += 1

    def _use(self, client: httpx.Client, token: str) -> None:
        try:
            status = client.get(POSTS, headers=bearer(token)).status_code
        except httpx.TransportError:
            return  # that host is lost
        if status not in (401, 503):
            self._record.wrong.append(f"a revoked token: {status}")

    def check(self) -> None:
        """Use all of them once more."""
        for token in self._revoked:
            self._use(self._clients[0], token)


class Load:
    """All callers at once, from `start` to `stop`."""

    def __init__(self, url: str, apps: list[str], user: str) -> None:
        self.record, self.revoked = Record(), list[str]()
        common = self.record, url, user
        self._user = Wire(*common)
        self._make_room()
        self.callers: list[Caller] = [
            Heartbeats(*common),
            Heartbeats(*common),
            Posts(*common),
            Keys(*common, self.revoked),
            Revocations(*common, self.revoked),
            Refreshes(*common),
        ]
        self._guard = Guard(self.record, apps, self.revoked)
        self._ended = threading.Event()

    def start(self) -> None:
        steps = [caller.step for caller in self.callers] + [self._guard.step]
        self._pool = concurrent.futures.ThreadPoolExecutor(len(steps))
        self._running = [self._pool.submit(self._repeat, step) for step in steps]

        self.wait(_BEFORE_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait while the callers work."""
        time.sleep(seconds)

    def harm(self, what: Callable[[], Result]) -> Result:
        """Do something to the cluster; from now on times count."""
        self._harmed = time.monotonic()
        result = what()
        self._done = time.monotonic()
        return result

    def recover(self, within: float, *only: str) -> None:
        """Wait until no request has been rejected for a while, and each kind was written in the last seconds.

        A frozen host rejects nothing: requests wait for it, so that the absence of rejections alone proves nothing.

        Raises:
            AssertionError: this is not so `within` seconds after the harm.
        """
        kinds = set(only) or {kind for _, kind in self.record.writes}
        while True:
            now = time.monotonic()
            since = max([self._done, *self.record.rejected])
            written = {kind for at, kind in list(self.record.writes) if at > max(since, now - _FRESH_SECONDS)}
            if now - since > _SETTLED_SECONDS and written >= kinds:
                break
            late = now - self._harmed - _SETTLED_SECONDS > within
            assert not late, f"{self.record.summary}; not written: {kinds - written}, {self.record.wrong[:3]}"
            time.sleep(0.1)
        self.gap, self.well = self.record.longest_gap(self._harmed), self.record.well_after(self._harmed)
        self.record.summary = (
            f"without writes {self.gap:.1f} s, {len(self.record.rejected) - self.record.closed} responses were 503 "
            f"and {self.record.closed} connections lost, the last after {self.well:.1f} s"
        )

    def close(self) -> None:
        """End the callers and their connections."""
        self._end()
        self.record.closing.close()

    def _end(self) -> None:
        self._ended.set()
        for running in self._running:
            running.result(_END_SECONDS)
        self._pool.shutdown()

    def stop(self) -> None:
        """End the callers, then look for everything that was acknowledged."""
        self._end()
        self.check()
        counted = collections.Counter(kind for _, kind in self.record.writes)
        self.record.summary += f", {len(self.record.lost)} lost of {dict(counted)}, {len(self.record.wrong)} wrong"

    def check(self) -> None:
        """Look for everything that was acknowledged."""
        for caller in self.callers:
            with contextlib.suppress(WrongError):
                caller.check()
        self._guard.check()

    def _make_room(self) -> None:
        """Revoke the keys of earlier callers, because a location may have twenty."""
        listed = self._user.send("GET", KEYS)
        assert listed is not None
        for key in listed.json()["data"]["credentials"]:
            if key["name"] == KEY["name"]:
                assert self._user.send("DELETE", f"{KEYS}/{key['client_id']}") is not None

    def _repeat(self, step: Callable[[], None]) -> None:
        with contextlib.suppress(WrongError):
            while not self._ended.wait(_PAUSE_SECONDS):
                step()
