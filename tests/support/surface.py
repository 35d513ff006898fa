"""A request of each operation, and a check of each response against the OpenAPI document."""

import itertools
import re
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from support.api import Site
from support.documents import inlined
from support.provider.consent import connect_by_token
from support.provider.drive import drift


class Record:
    """Checks each response against the document, and records the statuses."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = inlined(document)
        self.seen: set[tuple[str, str]] = set()

    def promised(self) -> set[tuple[str, str]]:
        """Every (operation, status) of the API; those that speak a standard have test_oauth2_document.py."""
        return {
            (operation["operationId"], status)
            for path, methods in self._document["paths"].items()
            if path.startswith("/api/v1/")
            for operation in methods.values()
            for status in operation["responses"]
            if status != "304"  # which test_delivery.py is about
        }

    def operations(self) -> set[str]:
        """The names of all operations of the API."""
        return {name for name, _ in self.promised()}

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        if response.request.url.path.startswith(("/dev/", "/dashboard/")):  # a consent is in a browser
            return
        operation = self._operation(response.request)
        promised = operation["responses"].get(str(response.status_code))
        assert promised is not None, f"{operation['operationId']} does not promise {response.status_code}"
        schema = {**promised["content"]["application/json"]["schema"], "components": self._document["components"]}
        errors = [
            f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(response.json())
        ]
        assert errors == [], operation["operationId"]
        if response.status_code >= 400:
            code = response.json()["error"]["code"]
            assert code in promised["content"]["application/json"]["examples"], (operation["operationId"], code)
        for header in ("www-authenticate", "retry-after", "location"):
            documented = {name.lower() for name in promised.get("headers", {})}
            assert header in documented or header not in response.headers, (operation["operationId"], header)
        self.seen.add((operation["operationId"], str(response.status_code)))

    def _operation(self, request: httpx.Request) -> dict[str, Any]:
        for path, methods in self._document["paths"].items():
            pattern = re.sub(r"{\w+}", "[^/]+", path)
            method = request.extensions.get("instead_of", request.method).lower()
            if re.fullmatch(pattern, request.url.path) and method in methods:
                found: dict[str, Any] = methods[method]
                return found
        raise AssertionError(f"{request.method} {request.url.path} is not documented")


# A request that succeeds for a key of locations/111 (or for its owner), by operation.
POST_TARGET = {"locationId": "locations/111"}
NEW_KEY = {"name": "Surface", "business_id": 10, "assigned_location_id": "locations/111"}
Request = tuple[str, str, dict[str, Any] | None, dict[str, str]]
REQUESTS: dict[str, Request] = {
    "send_heartbeat": ("POST", "/api/v1/api-keys/heartbeat", {"plugin_version": "1"}, {}),
    "get_connection_status": ("GET", "/api/v1/api-keys/CLIENT/status", None, {"history": "true"}),
    "issue_token": ("POST", "/api/v1/auth/token", {"grant_type": "client_credentials"}, {}),
    "validate_credentials": ("POST", "/api/v1/auth/validate-service-credentials", {}, {}),
    "list_businesses": ("GET", "/api/v1/businesses", None, {}),
    "create_key": ("POST", "/api/v1/developer/credentials", NEW_KEY, {}),
    "list_keys": ("GET", "/api/v1/developer/credentials", None, {"include_revoked": "true"}),
    "list_locations": ("GET", "/api/v1/external-business/locations", None, {}),
    "get_location": ("GET", "/api/v1/external-business/locations/111", None, {}),
    "refresh_verification": ("POST", "/api/v1/external-business/locations/111/refresh-verification", None, {}),
    "switch_sync": ("PATCH", "/api/v1/external-business/locations/111/sync", {"syncEnabled": True}, {}),
    "get_google_updated": ("GET", "/api/v1/external-business/locations/111/google-updated", None, {}),
    "accept_google_update": (
        "POST",
        "/api/v1/external-business/locations/111/google-updated/accept",
        {"updateMask": "websiteUri"},
        {},
    ),
    "reject_google_update": (
        "POST",
        "/api/v1/external-business/locations/111/google-updated/reject",
        {"updateMask": "labels"},
        {},
    ),
    "list_posts": ("GET", "/api/v1/posts", None, POST_TARGET),
    "create_post": ("POST", "/api/v1/posts", {"summary": "Hello"}, POST_TARGET),
    "change_post": ("PATCH", "/api/v1/posts/11101", {"summary": "Changed"}, POST_TARGET),
    "delete_post": ("DELETE", "/api/v1/posts/11102", None, POST_TARGET),
    "list_reviews": ("GET", "/api/v1/reviews", None, POST_TARGET),
    "get_review": ("GET", "/api/v1/reviews/111002", None, POST_TARGET),
    "reply_to_review": ("PUT", "/api/v1/reviews/111002/reply", {"comment": "Thanks"}, POST_TARGET),
    "delete_reply": ("DELETE", "/api/v1/reviews/111002/reply", None, POST_TARGET),
    "compare_profile": ("GET", "/api/v1/sync/comparison/111", None, {}),
    "sync_profile": ("POST", "/api/v1/sync/111", {"title": "T", "x": 1}, {}),
    "list_sync_history": ("GET", "/api/v1/sync/history/111", None, {}),
    "roll_key": ("POST", "/api/v1/developer/credentials/CLIENT/roll", {}, {}),
    "get_key": ("GET", "/api/v1/developer/credentials/CLIENT", None, {}),
    "change_key": ("PATCH", "/api/v1/developer/credentials/CLIENT", {"name": "Changed"}, {}),
    "end_previous_secret": ("POST", "/api/v1/developer/credentials/CLIENT/end-previous-secret", None, {}),
    "deactivate_key": ("POST", "/api/v1/developer/credentials/CLIENT/deactivate", None, {}),
    "reactivate_key": ("POST", "/api/v1/developer/credentials/CLIENT/reactivate", None, {}),
    "list_key_audit": ("GET", "/api/v1/developer/credentials/CLIENT/audit", None, {}),
    "list_key_requests": ("GET", "/api/v1/developer/credentials/CLIENT/requests", None, {}),
    "list_audit": ("GET", "/api/v1/audit", None, {}),
    "create_alert": ("POST", "/api/v1/alerts", {"address": "NUMBER@harbour.example.com"}, {}),
    "list_alerts": ("GET", "/api/v1/alerts", None, {}),
    "get_alert": ("GET", "/api/v1/alerts/ALERT", None, {}),
    "change_alert": ("PATCH", "/api/v1/alerts/ALERT", {"reminders": True}, {}),
    "test_alert": ("POST", "/api/v1/alerts/ALERT/test", None, {}),
    "delete_alert": ("DELETE", "/api/v1/alerts/ALERT", None, {}),
    "get_key_alerts": ("GET", "/api/v1/developer/credentials/CLIENT/alerts", None, {}),
    "change_key_alerts": ("PATCH", "/api/v1/developer/credentials/CLIENT/alerts", {"grace_seconds": 60}, {}),
    "start_provider_connection": ("POST", "/api/v1/provider-connections", None, {}),
    "create_provider_connection_link": ("POST", "/api/v1/provider-connection-links", None, {}),
    "list_provider_connections": ("GET", "/api/v1/provider-connections", None, {}),
    "get_provider_connection": ("GET", "/api/v1/provider-connections/LOGIN", None, {}),
    "import_provider_locations": ("POST", "/api/v1/provider-connections/LOGIN/import", {"locations": ["119"]}, {}),
    "export_provider_connection": ("GET", "/api/v1/provider-connections/LOGIN/export", None, {}),
    "delete_provider_connection": ("DELETE", "/api/v1/provider-connections/LOGIN", None, {}),
    "create_webhook": ("POST", "/api/v1/webhooks", {"url": "https://hooks.example/NUMBER"}, {}),
    "list_webhooks": ("GET", "/api/v1/webhooks", None, {}),
    "get_webhook": ("GET", "/api/v1/webhooks/WEBHOOK", None, {}),
    "change_webhook": ("PATCH", "/api/v1/webhooks/WEBHOOK", {"description": "Changed"}, {}),
    "roll_webhook": ("POST", "/api/v1/webhooks/WEBHOOK/roll", None, {}),
    "test_webhook": ("POST", "/api/v1/webhooks/WEBHOOK/test", None, {}),
    "list_deliveries": ("GET", "/api/v1/webhooks/WEBHOOK/deliveries", None, {}),
    "resend_delivery": ("POST", "/api/v1/webhooks/WEBHOOK/deliveries/DELIVERY/resend", None, {}),
    "recover_webhook": ("POST", "/api/v1/webhooks/WEBHOOK/recover", {"since": "2026-01-02T00:00:00Z"}, {}),
    "delete_webhook": ("DELETE", "/api/v1/webhooks/WEBHOOK", None, {}),
    "list_events": ("GET", "/api/v1/events", None, {}),
    "revoke_key": ("DELETE", "/api/v1/developer/credentials/CLIENT", None, {}),
}
OVERRIDDEN = {"locations/111": {"websiteUri": "https://provider.example/", "labels": ["provider"]}}
BY_KEY = {"send_heartbeat"}
PUBLIC = {"issue_token", "validate_credentials"}
# D-71 promises it for a location that was never read; the import reads every one.
NEVER = {("get_location", "502")}


class Surface:
    """Sends the requests of the table, unchanged or with a fault."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        record: Record,
        owner: httpx.AsyncClient,
        sites: dict[str, Site],
        emulator: httpx.AsyncClient,
    ) -> None:
        self.http, self.record, self._sites, self._emulator = http, record, sites, emulator
        self._owner = owner.headers["Authorization"].removeprefix("Bearer ")
        self._numbers = itertools.count(1)
        self._webhook: tuple[str, str] | None = None  # with a delivery

    def promising(self, status: str) -> list[str]:
        """The operations that promise a status."""
        found = self.record.promised() - NEVER
        return [name for name in REQUESTS if (name, status) in found]

    def client_id(self, site: str) -> str:
        """The client id of a site's key."""
        return str(self._sites[site].key["client_id"])

    async def ask(self, name: str, *, site: str = "good", token: str | None = None, **changes: Any) -> httpx.Response:
        """Send a request; `changes` replace `method`, `path`, `body`, `params`, or add `content` and `headers`."""
        method, path, body, params = REQUESTS[name]
        if "method" in changes:  # another one than the operation's, whose path it is
            changes["extensions"] = {"instead_of": method}
            method = changes.pop("method")
        used = self._sites[site]
        if name in PUBLIC:
            body = {**(body or {}), **used.credentials}
        if token is None:
            token = used.tokens["access_token"] if name in BY_KEY or site != "good" else self._owner
        headers = {"Authorization": f"Bearer {token}"} if token and name not in PUBLIC else {}
        options = {"params": changes.pop("params", params), "headers": headers | changes.pop("headers", {})}
        path = changes.pop("path", path).replace("CLIENT", used.key["client_id"])
        if "WEBHOOK" in path:
            webhook, delivery = await self._own_webhook()
            path = path.replace("WEBHOOK", webhook).replace("DELIVERY", delivery)
        if "LOGIN" in path:
            path = path.replace("LOGIN", await self._own_login())
        if "ALERT" in path:
            path = path.replace("ALERT", await self._own_alert())
        if "/google-updated/" in path:
            await drift(self._emulator, google_updated=OVERRIDDEN)
        if "content" not in changes:
            changes["json"] = self._numbered(changes.pop("body", body))
        response = await self.http.request(method, path, **options, **changes)
        if name == "delete_webhook" and response.is_success:
            self._webhook = None
        return response

    def _numbered(self, body: Any) -> Any:
        """Give each webhook a URL of its own, and each alert an address."""
        for name in ("url", "address"):
            if isinstance(body, dict) and "NUMBER" in str(body.get(name)):
                return {**body, name: body[name].replace("NUMBER", str(next(self._numbers)))}
        return body

    async def _own_alert(self) -> str:
        """Return the id of an address of the owner; it exists while the service works."""
        headers = {"Authorization": f"Bearer {self._owner}"}
        listed = await self.http.get("/api/v1/alerts", headers=headers)
        found = listed.json()["data"]["alerts"] if listed.is_success else []
        if found:
            return str(found[0]["id"])
        created = await self.http.post("/api/v1/alerts", json={}, headers=headers)
        return str(created.json()["data"]["id"]) if created.is_success else "1"

    async def _own_login(self) -> str:
        """Return the id of a login of the owner at the provider; it exists while the service works."""
        listed = await self.http.get("/api/v1/provider-connections", headers={"Authorization": f"Bearer {self._owner}"})
        found = listed.json()["data"]["connections"] if listed.is_success else []
        if found or not listed.is_success:
            return str(found[0]["id"]) if found else "1"
        return await connect_by_token(self.http, self._owner, "100001")

    async def _own_webhook(self) -> tuple[str, str]:
        """Return the ids of a webhook of the owner and of a delivery to it; they exist while the service works."""
        if self._webhook is None:
            headers = {"Authorization": f"Bearer {self._owner}"}
            body = self._numbered(REQUESTS["create_webhook"][2])
            created = await self.http.post("/api/v1/webhooks", json=body, headers=headers)
            if not created.is_success:
                return "1", "1"
            webhook = str(created.json()["data"]["id"])
            tested = await self.http.post(f"/api/v1/webhooks/{webhook}/test", headers=headers)
            self._webhook = webhook, str(tested.json()["data"]["id"])
        return self._webhook
