"""What is asked of the service and of each peer alike, and how a right answer is told."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

LOCATION = "locations/111"
POSTS = 50
WORKS = ("list", "status", "heartbeat", "token")
TITLES = {
    "list": "authenticated list of 50 posts",
    "status": "connection status read",
    "heartbeat": "heartbeat, durable",
    "token": "token grant, two RS256 signatures",
}


@dataclass(frozen=True)
class Access:
    """A key, its secret, a token of it, and a token of its owner."""

    client_id: str
    client_secret: str
    key_token: str
    user_token: str


@dataclass(frozen=True)
class Request:
    """One HTTP request, sent again and again."""

    method: str
    path: str
    headers: dict[str, str]
    body: str = ""


def request_of(work: str, access: Access) -> Request:
    """The request of a work; the same path and body for everybody."""
    by_key, by_user = {"Authorization": f"Bearer {access.key_token}"}, {"Authorization": f"Bearer {access.user_token}"}
    json_body = {"Content-Type": "application/json"}
    if work == "list":
        return Request("GET", f"/api/v1/posts?locationId={LOCATION}", by_key)
    if work == "status":
        return Request("GET", f"/api/v1/api-keys/{access.client_id}/status", by_user)
    if work == "heartbeat":
        beat = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
        return Request("POST", "/api/v1/api-keys/heartbeat", by_key | json_body, json.dumps(beat))
    grant = {"client_id": access.client_id, "client_secret": access.client_secret}
    body = json.dumps({"grant_type": "client_credentials", **grant})
    return Request("POST", "/api/v1/auth/token", json_body, body)


def check(work: str, port: int, request: Request) -> None:
    """AssertionError unless the answer is 200 and what it must be: nobody is quick by answering less."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(request.method, request.path, request.body, request.headers)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    assert response.status == 200, f"{work}: {response.status} {raw[:300]!r}"
    answer = json.loads(raw)
    _CHECKS[work](answer.get("data", answer) if answer.get("status") == "ok" else answer)


def _list(answer: Any) -> None:
    posts: Any = answer.get("localPosts", answer.get("data")) if isinstance(answer, dict) else answer
    assert len(posts) == POSTS, len(posts)
    assert all(post["summary"] for post in posts)


def _status(answer: Any) -> None:
    assert answer["connection_status"] == "online", answer
    assert answer["plugin_version"] == "2.4.1", answer


def _heartbeat(answer: Any) -> None:
    assert answer == {"received": True, "next_heartbeat_in": 3600}, answer


def _token(answer: Any) -> None:
    for name in ("access_token", "refresh_token"):
        assert answer[name].count(".") == 2, answer
    assert len(answer["permissions"]) == 2, answer


_CHECKS = {"list": _list, "status": _status, "heartbeat": _heartbeat, "token": _token}
