"""One message to the operator when alarms are held back (docs/operations.md, Alarms).

It has no owner, so it is not in the outbox of the owners. The marks of the sweep are its outbox: `held` is since when
alarms are held back, and `written` the last `held` for which the message was sent.
"""

import contextlib
import logging
from email.message import EmailMessage
from email.utils import formatdate
from functools import partial

from profilesvc.delivery.smtp import Mailer, Rejected, Unsent
from profilesvc.domain.time import iso
from profilesvc.services import rounds
from profilesvc.services.context import Services
from profilesvc.storage.notify import watches

log = logging.getLogger("profilesvc")
_PAUSES = (0.0, 60.0)  # seconds before the first round, and between rounds
_TEXT = """\
Many sites fell silent together, or no site reports. The cause is probably the service or its network, so their owners
have not been alarmed since {since}.

Check whether sites can reach {base_url}. If they can, and the sites are really offline, run
`profilesvc alerts release`, and the owners are alarmed within two minutes. Otherwise the alarms wait until most sites
are back, for a day at most. `profilesvc alerts status` shows whether they still do.
"""


async def write(services: Services, mailer: Mailer) -> None:
    """Send the message, unless it was sent. One process does it, and the next round repeats what failed.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    await rounds.run_alone(services, "operator", partial(_write, mailer))


async def _write(mailer: Mailer, services: Services) -> None:
    async with services.storage.read() as session:
        marks = await watches.marks(session)
    held = marks.get("held")
    if not held or marks.get("written") == held:
        return
    try:
        await mailer.send(_message(services, held), services.settings.mail.operator, f"{held}-operator")
    except (Rejected, Unsent) as error:
        log.warning("mail to the operator: %s", error)
        return
    async with services.storage.write() as session:
        await watches.mark(session, written=held)


def _message(services: Services, held: int) -> EmailMessage:
    message, settings = EmailMessage(), services.settings
    message["From"], message["To"] = settings.mail.from_, settings.mail.operator
    message["Subject"] = "Alarms of many sites are held back"
    message["Date"] = formatdate(services.clock.now() // 1000)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_TEXT.format(since=iso(held), base_url=settings.base_url))
    return message


def in_background(services: Services) -> contextlib.AbstractAsyncContextManager[None]:
    """Look every minute as long as the block runs, if the settings name an operator."""
    if not services.settings.mail.operator or not services.settings.webhooks.deliver:
        return contextlib.nullcontext()
    work = partial(write, mailer=Mailer(services.settings))
    return rounds.in_background(services, "mail to the operator", {work: _PAUSES})
