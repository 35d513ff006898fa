"""The types of ASGI, and the names of the values that server and app pass to each other in a scope and in the state."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]  # Quart types the scopes and messages more narrowly

BEFORE = "profilesvc.before"  # how many requests this process was running or had queued when this one arrived
ARRIVED = "profilesvc.arrived"  # a function: how many bytes of the body can be read now, and whether more will arrive
LEFT = "profilesvc.left"  # a function: whether the client has disconnected, so that the response is not read
MALFORMED = "profilesvc.malformed"  # a function of the app, in the state, called for each malformed request
