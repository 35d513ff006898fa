"""The callers that write when the service is killed, the writes it confirmed, and how each caller checks them."""

import collections
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from support.api import assert_error, assert_ok
from support.wire import KEYS, POSTS

TOKEN = "/api/v1/auth/token"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
KEY = {"name": "Crash", "business_id": 10, "assigned_location_id": "locations/112"}
LATELY = 5  # what is tried of the newest; all are looked up


def new_key(user: httpx.Client, **members: Any) -> dict[str, Any]:
    """A key with its secret."""
    made: dict[str, Any] = assert_ok(user.post(KEYS, json={**KEY, **members}), 201)
    return made


def tokens_of(http: httpx.Client, client_id: str, client_secret: str) -> httpx.Response:
    """The client credentials grant."""
    grant = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    return http.post(TOKEN, json=grant)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Story:
    """One caller. `step` writes once and remembers what was acknowledged; `check` finds all of that after a kill."""

    acknowledged = 0

    def step(self, user: httpx.Client) -> None:
        """Write something; httpx.TransportError when the service is killed meanwhile."""
        raise NotImplementedError

    def check(self, user: httpx.Client) -> None:
        """Everything that was acknowledged is there, and works."""
        raise NotImplementedError


@dataclass
class Keys(Story):
    """Makes keys, rolls each, and revokes the oldest."""

    secrets: dict[str, list[str]] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)

    def step(self, user: httpx.Client) -> None:
        key = new_key(user)
        self.secrets[key["client_id"]] = [key["client_secret"]]
        rolled = assert_ok(user.post(f"{KEYS}/{key['client_id']}/roll", json={"overlap_seconds": 3600}))
        self.secrets[key["client_id"]].append(rolled["client_secret"])
        self.acknowledged += 2
        while len(self.secrets) - len(self.revoked) > 6:  # more than one when a step was killed in the middle
            oldest = next(client_id for client_id in self.secrets if client_id not in self.revoked)
            self._revoke(user, oldest)
            self.revoked.add(oldest)
            self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        listed = assert_ok(user.get(f"{KEYS}?include_revoked=true"))["credentials"]
        states = {key["client_id"]: key["status"] for key in listed}
        assert set(self.secrets) <= set(states)
        revoked = {client_id for client_id in self.secrets if states[client_id] == "revoked"}
        assert self.revoked <= revoked
        assert len(revoked - self.revoked) <= 1
        self.revoked = revoked
        for client_id in list(self.secrets)[-LATELY:]:
            expected = 401 if states[client_id] == "revoked" else 200
            answers = [tokens_of(user, client_id, secret) for secret in self.secrets[client_id]]
            assert {answer.status_code for answer in answers} == {expected}
        here = {key["client_id"] for key in listed if key["assigned_location_id"] == KEY["assigned_location_id"]}
        unanswered = {client_id for client_id in here - set(self.secrets) if states[client_id] != "revoked"}
        assert len(unanswered) <= 1
        for client_id in unanswered:  # a location has room for twenty
            self._revoke(user, client_id)

    def _revoke(self, user: httpx.Client, client_id: str) -> None:
        assert_ok(user.delete(f"{KEYS}/{client_id}"))


@dataclass
class Heartbeats(Story):
    """A plugin that counts its heartbeats in what it reports."""

    client_id: str
    token: str

    def step(self, user: httpx.Client) -> None:
        body = {"wp_version": str(self.acknowledged + 1)}
        assert_ok(user.post(HEARTBEAT, json=body, headers=bearer(self.token)))
        self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        status = assert_ok(user.get(f"/api/v1/api-keys/{self.client_id}/status"))
        assert self.acknowledged <= int(status["wp_version"] or 0) <= self.acknowledged + 1


@dataclass
class Syncs(Story):
    """Syncs under idempotency keys."""

    made: dict[str, str] = field(default_factory=dict)

    def step(self, user: httpx.Client) -> None:
        value = f"sync-{self.acknowledged}-{random.random()}"
        self.made[value] = assert_ok(self._send(user, value))["syncId"]
        self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        assert set(self.made.values()) <= self._history(user)
        for value, made in list(self.made.items())[-LATELY:]:
            again = self._send(user, value)
            assert (assert_ok(again)["syncId"], again.headers["idempotency-replayed"]) == (made, "true")

    def _send(self, user: httpx.Client, value: str) -> httpx.Response:
        return user.post("/api/v1/sync/111", json={"title": value}, headers={"Idempotency-Key": value})

    def _history(self, user: httpx.Client) -> set[str]:
        found: set[str] = set()
        for page in itertools.count(1):
            entries = assert_ok(user.get(f"/api/v1/sync/history/111?limit=100&page={page}"))["history"]
            if not entries:
                break
            found |= {entry["syncId"] for entry in entries}
        return found


@dataclass
class Posts(Story):
    """Posts, which are the provider's."""

    names: set[str] = field(default_factory=set)

    def step(self, user: httpx.Client) -> None:
        self.names.add(assert_ok(user.post(POSTS, json={"summary": "Crash"}), 201)["name"])
        self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        assert self.names <= set(self._all(user))

    def _all(self, user: httpx.Client) -> Iterator[str]:
        token = None
        while token != "":
            page = assert_ok(user.get(f"{POSTS}&pageSize=100&pageToken={token or ''}"))
            yield from (post["name"] for post in page["localPosts"])
            token = page["nextPageToken"]


@dataclass
class Refreshes(Story):
    """A plugin that exchanges its newest refresh token, which is valid once."""

    token: str
    access: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=LATELY))

    def step(self, user: httpx.Client) -> None:
        answer = user.post(TOKEN, json={"grant_type": "refresh_token", "refresh_token": self.token})
        pair = assert_ok(answer)
        self.token = pair["refresh_token"]
        self.access.append(pair["access_token"])
        self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        """The response to the interrupted exchange is returned again (D-10), and its token is valid for the next."""
        for _ in range(2):
            self.step(user)
        for token in self.access:
            assert_ok(user.get(POSTS, headers=bearer(token)))


@dataclass
class Holds(Story):
    """Keys that are deactivated one after the other, then reactivated."""

    client_ids: list[str]
    tokens: list[str]

    def step(self, user: httpx.Client) -> None:
        turn, which = divmod(self.acknowledged, len(self.client_ids))
        verb = "reactivate" if turn % 2 else "deactivate"
        assert_ok(user.post(f"{KEYS}/{self.client_ids[which]}/{verb}"))
        self.acknowledged += 1

    def check(self, user: httpx.Client) -> None:
        """Of one key a change was under way: it is made again, which is no error."""
        self.step(user)
        for which, token in enumerate(self.tokens):
            changes = (self.acknowledged - which - 1) // len(self.tokens) + 1
            answer = user.get(POSTS, headers=bearer(token))
            if changes % 2:
                assert_error(answer, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
            else:
                assert_ok(answer)
