"""Decide whether the page that sends a request may read the response."""

from profilesvc.domain.domains import Origin, is_local, origin_allowed, parse_origin, site_of
from profilesvc.domain.request import RequestInfo
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from profilesvc.storage import domains
from profilesvc.storage.keys import KeyState, domains_of

_LOOPBACK = ("localhost", "127.0.0.1")


def read_header(settings: Settings, request: RequestInfo) -> None:
    """Store the origin of a request. Before the caller is known, only our own pages may read responses."""
    if request.origin_header is not None:
        request.origin = parse_origin(request.origin_header)
        request.may_read = request.origin is not None and _is_dashboard(settings, request.origin)


def decide(services: Services, request: RequestInfo, key: KeyState | None) -> None:
    """Decide whether the page may read the response to this caller: a key, or a user (None)."""
    origin, settings = request.origin, services.settings
    if origin is None:
        return
    if key is None or origin == own(settings):
        request.may_read = _is_dashboard(settings, origin)
    else:
        allowed = domains_of(key.allowed_domains)
        request.may_read = origin_allowed(origin, allowed, development=not settings.production)


async def preflight(services: Services, request: RequestInfo) -> None:
    """Accept the origin of a preflight if any live key accepts it, because a preflight has no credentials (D-30)."""
    origin, settings = request.origin, services.settings
    if origin is None or request.may_read:
        return
    domain = None
    if origin.scheme == "https" or not settings.production:
        domain = _site(origin, development=not settings.production)
    async with services.storage.read() as session:
        request.may_read = await domains.allow(session, domain, services.clock.now())


def _site(origin: Origin, *, development: bool) -> str | None:
    try:
        site = site_of(origin.address)
    except ValueError:
        return None
    return site if development or not is_local(site) else None


def own(settings: Settings) -> Origin | None:
    """Return the origin of our own pages."""
    return parse_origin("/".join(settings.base_url.split("/")[:3]))


def _is_dashboard(settings: Settings, origin: Origin) -> bool:
    """Accept our pages and the dashboard's; if none is configured, in development any page of this machine (D-31)."""
    if origin == own(settings):
        return True
    if not settings.dashboard_origins:
        return not settings.production and origin.host in _LOOPBACK
    return origin in [parse_origin(entry) for entry in settings.dashboard_origins]
