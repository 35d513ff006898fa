"""The requests to the service and to each peer, and the checks of their responses."""

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
    "token": "token grant",
}


@dataclass(frozen=True)
class Access:
    """A key with its secret and a token, and a token of its owner."""

    client_id: str
    client_secret: str
    key_token: str
    user_token: str


@dataclass(frozen=True)
class Request:
    """An HTTP request that is sent repeatedly."""

    method: str
    path: str
    headers: dict[str, str]
    body: str = ""


def request_of(work: str, access: Access) -> Request:
    """Return the request of a task, with the same path and body for all servers."""
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
    """Check that the response is 200 and complete, so that no server is faster by returning less.

    Raises:
        AssertionError: The response is wrong.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(request.method, request.path, request.body, request.headers)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    assert response.status == 200, f"{work}: {response.status} {raw[:300]!r}"
    body = json.loads(raw)
    _CHECKS[work](body.get("data", body) if body.get("status") == "ok" else body)


def _list(data: Any) -> None:
    posts: Any = data.get("localPosts", data.get("data")) if isinstance(data, dict) else data
    assert len(posts) == POSTS, len(posts)
    assert all(post["summary"] for post in posts)


def _status(data: Any) -> None:
    assert data["connection_status"] == "online", data
    assert data["plugin_version"] == "2.4.1", data


def _heartbeat(data: Any) -> None:
    assert data == {"received": True, "next_heartbeat_in": 3600}, data


def _token(data: Any) -> None:
    for name in ("access_token", "refresh_token"):
        assert data[name].count(".") == 2, data
    assert len(data["permissions"]) == 2, data


_CHECKS = {"list": _list, "status": _status, "heartbeat": _heartbeat, "token": _token}
