"""The links in alerts, which need no sign-in: confirm an address, and stop all mail to it."""

from quart import Blueprint, Response

from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import counted_by_address
from profilesvc.services.notify import alerts

blueprint = Blueprint("alert_links", __name__)


@blueprint.get("/alerts/confirm/<link>")
async def confirmation(link: str) -> Response:
    """Show a button, because programs that check links follow every one of them."""
    row = await alerts.to_confirm(await counted_by_address(), link)
    done = row.confirmed_at is not None
    return pages.page("alert_link.html", purpose="confirm", address=row.target, done=done)


@blueprint.post("/alerts/confirm/<link>")
async def confirm(link: str) -> Response:
    services = await counted_by_address()
    row = await alerts.to_confirm(services, link)
    await alerts.confirm(services, row)
    return pages.page("alert_link.html", purpose="confirm", address=row.target, done=True)


@blueprint.get("/alerts/unsubscribe/<link>")
async def unsubscription(link: str) -> Response:
    row = await alerts.to_unsubscribe(await counted_by_address(), link)
    return pages.page(
        "alert_link.html", purpose="unsubscribe", address=row.target, done=row.disabled_reason == "unsubscribed"
    )


@blueprint.post("/alerts/unsubscribe/<link>")
async def unsubscribe(link: str) -> Response:
    """Stop all mail to the address; mail programs send this request too (RFC 8058)."""
    services = await counted_by_address()
    row = await alerts.to_unsubscribe(services, link)
    await alerts.unsubscribe(services, row)
    return pages.page("alert_link.html", purpose="unsubscribe", address=row.target, done=True)
