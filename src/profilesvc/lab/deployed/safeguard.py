"""The safeguard of a deployed service: it rejects requests that cannot be undone, and records the others in advance."""

import uuid
from collections.abc import Callable
from urllib.parse import unquote

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.domain import profiles
from profilesvc.lab.deployed.journal import Journal
from profilesvc.lab.views.record import body_of, data_of

API = "/api/v1"
_KEYS = f"{API}/developer/credentials"
# Paths that change nothing visible to the owner or a customer: tokens, and the reports of the notebooks' own keys.
_HARMLESS = (f"{API}/auth/", f"{API}/api-keys/", "/oauth2/", "/dev/issuer/")


class NeedsControl(RuntimeError):
    """The error of an action that a notebook may not do on a deployed service."""


class SafeTransport(httpx.BaseTransport):
    """A transport that calls the safeguard before each request and after each response."""

    def __init__(self, inner: httpx.BaseTransport, safeguard: "Safeguard") -> None:
        self._inner, self._safeguard = inner, safeguard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request if the safeguard allows it.

        Raises:
            NeedsControl: The safeguard rejects it.
        """
        request.read()
        entry = self._safeguard.before(request)
        response = self._inner.handle_request(request)
        response.read()
        self._safeguard.after(entry, response)
        return response

    def close(self) -> None:
        self._inner.close()


class Safeguard:
    """The check whether a request can be undone. It uses `read` to fetch a path of the API."""

    def __init__(self, journal: Journal, write: bool, read: Callable[..., httpx.Response]) -> None:
        self._journal, self._write = journal, write
        self._read = read
        self._baseline = journal.entries()[0]["baseline"]
        self._location: str = self._baseline["location"]
        self._made: set[str] = set()

    def before(self, request: httpx.Request) -> str | None:
        """Record the changes of a request before it is sent. Return the id of the entry, if there is one.

        Raises:
            NeedsControl: The request cannot be undone.
        """
        path = unquote(request.url.path)
        is_preview = path.startswith(f"{API}/sync/") and request.url.params.get_list("validateOnly") == ["true"]
        if request.method in {"GET", "HEAD", "OPTIONS"} or path.startswith(_HARMLESS) or is_preview:
            return None
        change = self._key(request, path) if path.startswith(_KEYS) else self._public(request, path)
        if change is None:
            return None
        entry = uuid.uuid4().hex
        self._journal.write(id=entry, **change)
        return entry

    def after(self, entry: str | None, response: httpx.Response) -> None:
        """Record the outcome of an entry. After a failure of the service it remains unknown."""
        if entry is None or response.status_code >= 500:
            return
        data = data_of(response)
        made = data.get("client_id") or data.get("name")
        if made is not None:
            self._made.add(made.rpartition("/")[2])
        self._journal.write(of=entry, made=made, failed=response.is_error)

    def _key(self, request: httpx.Request, path: str) -> JsonObject | None:
        """Return the entry of a new key. Reject other locations and keys that the notebook has not created."""
        if path == _KEYS and request.method == "POST":
            body = body_of(request)
            location = body.get("assigned_location_id") if isinstance(body, dict) else None
            if location is None:
                return None
            if _number(str(location)) != _number(self._location):
                raise NeedsControl(_sentence("another location", f"because keys are only for {self._location}"))
            return {"what": "key", "name": str(body.get("name", "")).strip()}
        if path.removeprefix(f"{_KEYS}/").partition("/")[0] not in self._made:
            raise NeedsControl(_sentence("other keys", "because this notebook has not created them"))
        return None

    def _public(self, request: httpx.Request, path: str) -> JsonObject | None:
        """Return the entry of a post, a reply, a sync or the sync switch, which customers or the owner see."""
        if not self._write:
            raise NeedsControl(f"Skipped here: this needs SMOKE_WRITE=1, because {request.method} {path} is public.")
        location = request.url.params.get("locationId", path)
        if _number(self._location) not in location.split("/"):
            raise NeedsControl(_sentence("another location", f"because only {self._location} may be changed"))
        parts, body = path.removeprefix(f"{API}/").split("/"), body_of(request)
        if parts[0] == "posts":
            return self._post(request.method, parts[-1], body)
        if parts[0] == "reviews":
            return self._reply(parts)
        if path.endswith("/sync"):
            return {"what": "switch"}
        if parts[0] == "sync" and request.method == "POST":
            values = body if isinstance(body, dict) else {}
            if lost := irrevocable(values, self._baseline["profile"]):
                raise NeedsControl(_sentence("the desired values", f"because no sync can undo {', '.join(lost)}"))
            return {"what": "sync", "body": values}
        if path.endswith("/refresh-verification"):
            return None  # the service stores the same state at its next read anyway
        raise NeedsControl(_sentence("the service", f"because {request.method} {path} cannot be undone"))

    def _post(self, method: str, name: str, body: object) -> JsonObject | None:
        if method == "POST":
            post = body if isinstance(body, dict) else {}
            return {"what": "post", "summary": post.get("summary"), "topic": post.get("topicType", "STANDARD")}
        if name not in self._made:
            raise NeedsControl(_sentence("other posts", "because this notebook has not created them"))
        return None

    def _reply(self, parts: list[str]) -> JsonObject:
        response = self._read(f"{API}/reviews/{parts[1]}", params={"locationId": self._location})
        if response.status_code not in {200, 404}:
            raise NeedsControl(_sentence("a review", "because its current reply cannot be read and restored"))
        comment = data_of(response).get("reviewReply", {}).get("comment")
        return {"what": "reply", "review": parts[1], "comment": comment}


def irrevocable(body: JsonObject, profile: JsonObject) -> list[str]:
    """Return the leaves of a sync that no later sync can undo.

    A desired value can be replaced, but not removed. A null undoes a new leaf only if the provider had no value and the
    format has the field.
    """
    desired, at_provider = (dict(profiles.leaves(profile[side])) for side in ("source", "provider"))
    filtered = set(profiles.filtered_leaves(body, None))
    return [
        path for path, _ in profiles.leaves(body) if path not in desired and (path in filtered or path in at_provider)
    ]


def _number(location: str) -> str:
    return unquote(location).removeprefix("locations/")


def _sentence(what: str, why: str) -> str:
    return f"Skipped here: this needs control of {what}, {why}."
