"""The dashboard's cookies. Scripts cannot read them, and requests from other sites do not carry them.

Over https their names start with `__Host-`, so browsers accept them only from this host and only over TLS, and another
subdomain cannot set a session. Over http, which is for development, browsers reject such names.
"""

from typing import Literal, TypedDict

from quart import Response, request

from profilesvc.dashboard.pages import PATH
from profilesvc.services.context import Services


class _Attributes(TypedDict):
    path: str
    secure: bool
    httponly: bool
    samesite: Literal["Lax"]


SESSION = "profilesvc_session"
SIGN_IN = "profilesvc_signin"
CONSENT = "profilesvc_consent"
TYPED = "profilesvc_typed"  # and the number of a piece
LANGUAGE = "profilesvc_language"


def get(services: Services, name: str) -> str | None:
    """Return the value that the browser sent, if any."""
    return request.cookies.get(_name(services, name))


def put(response: Response, services: Services, name: str, value: str, seconds: int) -> None:
    """Set a cookie for that many seconds."""
    response.set_cookie(_name(services, name), value, max_age=seconds, **_attributes(services))


def remove(response: Response, services: Services, name: str) -> None:
    """Delete a cookie. Its attributes must be the same, because browsers apply the rules of `__Host-` here too."""
    response.delete_cookie(_name(services, name), **_attributes(services))


def _is_secure(services: Services) -> bool:
    return services.settings.base_url.startswith("https://")


def _name(services: Services, name: str) -> str:
    return f"__Host-{name}" if _is_secure(services) else name


def _attributes(services: Services) -> _Attributes:
    secure = _is_secure(services)
    return {"path": "/" if secure else PATH, "secure": secure, "httponly": True, "samesite": "Lax"}
