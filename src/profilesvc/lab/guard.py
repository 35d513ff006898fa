"""What a page may send to a deployed service, and the note of it that goes to the journal before the request."""

import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httpx

from profilesvc.domain import profiles
from profilesvc.lab.journal import Journal
from profilesvc.lab.record import body_of

API = "/api/v1"
_KEYS = f"{API}/developer/credentials"
# What changes nothing that the owner or a customer sees: tokens, and the reports of keys that the pages have made.
_FREE = (f"{API}/auth/", f"{API}/api-keys/", "/oauth2/", "/dev/issuer/")
Document = dict[str, Any]


class NeedsControl(RuntimeError):
    """Something that a deployed service does not let a page do."""


class Guarded(httpx.BaseTransport):
    """A transport that asks the guard before each request and reports each response to it."""

    def __init__(self, inner: httpx.BaseTransport, guard: "Guard") -> None:
        self._inner, self._guard = inner, guard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request that the guard lets through. Raises NeedsControl for any other."""
        request.read()
        entry = self._guard.before(request)
        response = self._inner.handle_request(request)
        response.read()
        self._guard.after(entry, response)
        return response

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class Guard:
    """Lets through what can be undone; `read` fetches a path of the API for it."""

    def __init__(self, journal: Journal, write: bool, read: Callable[..., httpx.Response]) -> None:
        self._journal, self._write, self._read = journal, write, read
        self._baseline = journal.entries()[0]["baseline"]
        self._location: str = self._baseline["location"]
        self._made: set[str] = set()

    def before(self, request: httpx.Request) -> str | None:
        """Note what a request will make or change; the id of the note. Raises NeedsControl."""
        path = unquote(request.url.path)
        if request.method in {"GET", "HEAD", "OPTIONS"} or path.startswith(_FREE) or _is_preview(request, path):
            return None
        noted = self._key(request, path) if path.startswith(_KEYS) else self._public(request, path)
        if noted is None:
            return None
        entry = uuid.uuid4().hex
        self._journal.write(id=entry, **noted)
        return entry

    def after(self, entry: str | None, response: httpx.Response) -> None:
        """Note what came of it; without a note, or after a failure of the service, the outcome is unknown."""
        if entry is None or response.status_code >= 500:
            return
        body = body_of(response)
        data = body.get("data") if isinstance(body, dict) else None
        made = (data.get("client_id") or data.get("name")) if isinstance(data, dict) and response.is_success else None
        if made is not None:
            self._made.add(made.rpartition("/")[2])
        self._journal.write(of=entry, made=made, refused=response.is_error)

    def _key(self, request: httpx.Request, path: str) -> Document | None:
        """A new key for the location, or a change of a key that was made here."""
        if path == _KEYS and request.method == "POST":
            body = body_of(request)
            wanted = body.get("assigned_location_id") if isinstance(body, dict) else None
            if wanted is not None and _number(str(wanted)) != _number(self._location):
                raise NeedsControl(_sentence("another location", f"because keys are only made for {self._location}"))
            return {"what": "key", "name": str(body.get("name", "")).strip()} if wanted is not None else None
        if path.removeprefix(f"{_KEYS}/").partition("/")[0] not in self._made:
            raise NeedsControl(_sentence("other keys", "because this page has not made them"))
        return None

    def _public(self, request: httpx.Request, path: str) -> Document | None:
        """A post, a reply, a sync or the sync switch of the location: what customers or the owner see."""
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
            return self._sync(body)
        if path.endswith("/refresh-verification"):
            return None  # what the provider says is stored anyway when it is read next
        raise NeedsControl(_sentence("the service", f"because {request.method} {path} cannot be undone"))

    def _post(self, method: str, name: str, body: Any) -> Document | None:
        if method == "POST":
            told = body if isinstance(body, dict) else {}
            return {"what": "post", "summary": told.get("summary"), "topic": told.get("topicType", "STANDARD")}
        if name not in self._made:
            raise NeedsControl(_sentence("other posts", "because this page has not made them"))
        return None

    def _reply(self, parts: list[str]) -> Document:
        found = self._read(f"{API}/reviews/{parts[1]}", params={"locationId": self._location})
        if found.status_code not in {200, 404}:
            raise NeedsControl(
                _sentence("a review", "because it cannot be read, so that its reply could not be restored")
            )
        data = body_of(found).get("data") or {}
        return {"what": "reply", "review": parts[1], "comment": data.get("reviewReply", {}).get("comment")}

    def _sync(self, body: Any) -> Document:
        told = body if isinstance(body, dict) else {}
        lost = irrevocable(told, self._baseline["profile"])
        if lost:
            raise NeedsControl(_sentence("the desired values", f"because no sync could take back {', '.join(lost)}"))
        return {"what": "sync", "body": told}


def irrevocable(body: Document, profile: Document) -> list[str]:
    """The leaves of a sync that no later sync could undo.

    A desired value can be replaced, but not removed: a leaf that was not wished for is undone by a null, which is
    right only where the provider has no value and where the format has the field.
    """
    wished, at_provider = (dict(profiles.leaves(profile[side])) for side in ("source", "provider"))
    filtered = set(profiles.filtered_leaves(body, None))
    return [
        path for path, _ in profiles.leaves(body) if path not in wished and (path in filtered or path in at_provider)
    ]


def _is_preview(request: httpx.Request, path: str) -> bool:
    return path.startswith(f"{API}/sync/") and request.url.params.get_list("validateOnly") == ["true"]


def _number(location: str) -> str:
    return unquote(location).removeprefix("locations/")


def _sentence(what: str, why: str) -> str:
    return f"Skipped here: this needs control of {what}, {why}."
