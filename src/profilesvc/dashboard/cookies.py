"""The dashboard's cookies: no script reads them, and no other site's request brings them along.

Over https their names begin with `__Host-`: a browser then accepts them only from this very host and only over TLS,
so that no page of a neighbouring domain can put a session of its own in place. Over plain http, which is for
development, browsers would refuse such a name.
"""

from typing import Any

from quart import Response, request

from profilesvc.dashboard.pages import PATH
from profilesvc.services.context import Services

SESSION = "profilesvc_session"
SIGN_IN = "profilesvc_signin"


def get(running: Services, name: str) -> str | None:
    """What the browser sent."""
    return request.cookies.get(_name(running, name))


def put(response: Response, running: Services, name: str, value: str, seconds: int) -> None:
    """Store it for as long as that."""
    response.set_cookie(_name(running, name), value, max_age=seconds, **_attributes(running))


def remove(response: Response, running: Services, name: str) -> None:
    """End it; browsers apply the rules of the prefix to this as well."""
    response.delete_cookie(_name(running, name), **_attributes(running))


def _is_secure(running: Services) -> bool:
    return running.settings.base_url.startswith("https://")


def _name(running: Services, name: str) -> str:
    return f"__Host-{name}" if _is_secure(running) else name


def _attributes(running: Services) -> dict[str, Any]:
    secure = _is_secure(running)
    return {"path": "/" if secure else PATH, "secure": secure, "httponly": True, "samesite": "Lax"}
