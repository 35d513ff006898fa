"""The rooms that are composed with the core: parts that the service can do without (docs/architecture.md, "Rooms").

Their endpoints are imported when an app is built, so that a command does not import them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from quart import Blueprint
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.request import Finished
from profilesvc.operations.notify import webhooks
from profilesvc.services.context import Services
from profilesvc.services.drafts import photos
from profilesvc.services.insight import request_log


@dataclass(frozen=True)
class Room:
    """The additions of a room to the core: its endpoints, and what it does at moments of the core (see `Services`)."""

    name: str
    blueprints: Callable[[], Sequence[Blueprint]] = tuple
    finished: Callable[[Services, Finished], None] | None = None
    post_deleted: Callable[[Services, AsyncSession, int, str], Awaitable[None]] | None = None
    counted: Callable[[Services], Awaitable[dict[str, dict[str, int]]]] | None = None


def _insight() -> Sequence[Blueprint]:
    from profilesvc.api.routes import key_requests

    return (key_requests.routes.blueprint,)


def _notify() -> Sequence[Blueprint]:
    from profilesvc.api.routes import alerts
    from profilesvc.api.routes import webhooks as endpoints

    return endpoints.routes.blueprint, alerts.routes.blueprint


def _reviews() -> Sequence[Blueprint]:
    from profilesvc.api.routes import reviews

    return (reviews.routes.blueprint,)


def _feed() -> Sequence[Blueprint]:
    from profilesvc.api.routes import google_updates, notifications

    return notifications.blueprint, google_updates.routes.blueprint


def _logins() -> Sequence[Blueprint]:
    from profilesvc.api.routes import provider_connections

    return (provider_connections.routes.blueprint,)


def _dashboard() -> Sequence[Blueprint]:
    from profilesvc.dashboard import routes

    return (routes.blueprint(),)


ROOMS = (
    Room("insight", _insight, finished=request_log.note),
    Room("notify", _notify, counted=webhooks.figures),
    Room("drafts", post_deleted=photos.release),
    Room("reviews", _reviews),
    Room("feed", _feed),
    Room("logins", _logins),
    Room("accounts"),
    Room("dashboard", _dashboard),
)
