"""Whether the page that a request comes from may use what the request carries (D-30, D-31).

`arrive` notes the page, `weigh` decides as soon as it is known who is calling, `require` refuses in its turn (D-03).
Between the last two stand refusals that a page in its place may read.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.domain.domains import Origin, normal_domain, origin_allowed, parse_origin
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from profilesvc.storage import domains
from profilesvc.storage.keys import KeyState, domains_of

_LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(slots=True)
class Page:
    """The `Origin` header of a request, None without one, and what it means, None when it is no web origin.

    `accepted`: that page may read the answer, as far as is known by now.
    """

    header: str | None = None
    origin: Origin | None = None
    accepted: bool = False


# Set once per request, also without an origin: requests may follow one another in one task. Shared with the task that
# runs the operation; a command line leaves the default.
_NO_PAGE = Page()  # never changed: without an origin nothing is decided
page: ContextVar[Page] = ContextVar("page", default=_NO_PAGE)


def arrive(settings: Settings, header: str | None) -> None:
    """Note where a request comes from. Before the caller is known only our own pages may read answers."""
    if header is None:
        page.set(_NO_PAGE)
        return
    origin = parse_origin(header)
    page.set(Page(header, origin, origin is not None and _dashboard(settings, origin)))


def weigh(services: Services, key: KeyState | None) -> None:
    """Decide, now that it is known who is calling: a key, or (None) a user."""
    here, settings = page.get(), services.settings
    if here.origin is None:
        return
    if key is None or here.origin == _own(settings):
        here.accepted = _dashboard(settings, here.origin)
    else:
        domains_allowed = domains_of(key.allowed_domains)
        here.accepted = origin_allowed(here.origin, domains_allowed, development=not settings.production)


def require() -> None:
    """AUTH_INSUFFICIENT_PERMISSIONS for a page elsewhere; a request without an origin is not a page's."""
    here = page.get()
    if here.header is not None and not here.accepted:
        raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "These credentials are not for pages of this origin.")


async def foresee(services: Services) -> None:
    """Decide for a preflight, which carries no credentials: does any live key take this origin? (D-30)"""
    here, settings = page.get(), services.settings
    if here.origin is None or here.accepted:
        return
    domain = None
    if here.origin.scheme == "https" or not settings.production:
        domain = _domain(here.origin.host, development=not settings.production)
    async with services.storage.read() as session:
        here.accepted = await domains.allow(session, domain, services.clock.now())


def _domain(host: str, *, development: bool) -> str | None:
    try:
        return normal_domain(host, development=development)
    except ValueError:
        return None


def _own(settings: Settings) -> Origin | None:
    """The origin of our own pages."""
    return parse_origin("/".join(settings.base_url.split("/")[:3]))


def _dashboard(settings: Settings, origin: Origin) -> bool:
    """Our own pages, and the dashboard's; unless that is configured, in development any page of this machine (D-31)."""
    if origin == _own(settings):
        return True
    if not settings.dashboard_origins:
        return not settings.production and origin.host in _LOOPBACK
    return origin in [parse_origin(entry) for entry in settings.dashboard_origins]
