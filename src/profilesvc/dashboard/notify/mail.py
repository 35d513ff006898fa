"""The messages of a service without a mail server, in development; and the clock of a demo, which the page moves."""

from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path

from quart import Blueprint, Response

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, admit_if_signed_in, counted_by_address, view
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import ShiftedClock
from profilesvc.operations.notify import sweep

blueprint = Blueprint("mail", __name__)
_NEWEST = 50
_STEP = timedelta(hours=25)  # a silent site is reported after 24


@blueprint.get("/mail")
async def outbox() -> Response:
    """Show the newest messages that were written to files."""
    services = await counted_by_address()
    visit = await admit_if_signed_in()
    settings = services.settings
    if settings.production or settings.mail.url.get_secret_value():
        raise ServiceError(NOT_FOUND, "Page not found.")
    files = sorted((settings.data_dir / "mail").glob("*.eml"), reverse=True)[:_NEWEST]
    return pages.page(
        "mail.html",
        visit=visit,
        messages=[_message(file) for file in files],
        is_demo=isinstance(services.clock, ShiftedClock),
    )


@view(blueprint, "/mail/clock", "POST")
async def move(visit: Visit) -> Response:
    clock = visit.services.clock
    if not isinstance(clock, ShiftedClock):
        raise ServiceError(NOT_FOUND, "Page not found.")
    await sweep.pass_time(visit.services, clock, _STEP)
    return pages.redirect(f"{pages.PATH}/mail", "moved")


def _message(file: Path) -> dict[str, str]:
    message = message_from_bytes(file.read_bytes(), policy=policy.default)
    body = message.get_body(("plain",))
    text = "" if body is None else body.get_content()
    return {"to": message["To"], "subject": message["Subject"], "date": message["Date"], "text": text}
