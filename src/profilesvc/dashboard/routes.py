"""The dashboard's blueprint: its pages, static files and headers."""

from pathlib import Path

from quart import Blueprint, Response, request

from profilesvc import look
from profilesvc.api.documents import documents
from profilesvc.api.request import current_services
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.dashboard import pages, patterns, reader, returning, visits
from profilesvc.dashboard.accounts import account, audit, deletion, logins, plan
from profilesvc.dashboard.keys import badge, keys
from profilesvc.dashboard.keys import requests as key_requests
from profilesvc.dashboard.notify import alert_links, alerts, deliveries, mail, webhooks
from profilesvc.dashboard.posts import calendar, drafts, photos, posts
from profilesvc.dashboard.posts import many as many_posts
from profilesvc.dashboard.profile import profile
from profilesvc.dashboard.reviews import reply_templates, reviews
from profilesvc.dashboard.session import session
from profilesvc.dashboard.sites import differences, selected, site, sites
from profilesvc.domain.errors import ServiceError

_OF_A_SITE = [site, differences, profile, posts, drafts, calendar, reviews, reply_templates, many_posts]
_OF_THE_USER = [keys, key_requests, logins, alerts, webhooks, deliveries, audit, plan, account, deletion]
_PARTS = [session, sites, selected, *_OF_A_SITE, *_OF_THE_USER, badge]
_UNLISTED = [photos, alert_links, patterns, mail, reader]  # no link of the navigation
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def blueprint() -> Blueprint:
    """Build the blueprint of everything under /dashboard."""
    dashboard = Blueprint("dashboard", __name__, url_prefix=pages.PATH)
    for part in (*_PARTS, *_UNLISTED):
        dashboard.register_blueprint(part.blueprint)
    dashboard.before_request(reader.recognise)
    dashboard.register_error_handler(Exception, pages.failed)
    dashboard.after_request(pages.add_headers)
    files = {file.name: file for file in (*_STATIC.iterdir(), look.TOKENS)}

    @dashboard.get("/static/<name>")
    async def static(name: str) -> Response:
        if name not in files:
            raise ServiceError(NOT_FOUND, "File not found.")
        content_type = _TYPES.get(files[name].suffix, "text/plain; charset=utf-8")
        return await documents().respond(f"dashboard/{name}", files[name].read_bytes, content_type)

    @dashboard.get("/logo")
    async def logo() -> Response:
        product = current_services().settings.dashboard
        if product.logo_file is None:
            raise ServiceError(NOT_FOUND, "File not found.")
        return await documents().respond("dashboard logo", product.logo_file.read_bytes, product.logo_type)

    @dashboard.get("/")
    async def home() -> Response:
        return pages.redirect(pages.PATH)

    @dashboard.get("/<path:missing>")
    async def not_found(missing: str) -> Response:
        await visits.admit_if_signed_in()
        if (page := returning.page_of(request.path)) is not None:
            return pages.redirect(page)
        raise ServiceError(NOT_FOUND, "Page not found.")

    return dashboard
