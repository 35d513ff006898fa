"""One message to the operator when alarms are held back (docs/operations.md, Alarms).

It has no owner, so it is not in the outbox of the owners. The marks of the sweep are its outbox: `held` is since when
alarms are held back, and `written` the last `held` for which the message was sent.
"""

from email.message import EmailMessage
from email.utils import formatdate

from profilesvc.delivery.smtp import Mailer, Rejected, Unsent
from profilesvc.domain.time import iso
from profilesvc.services.context import Services
from profilesvc.services.jobs import JobFailed
from profilesvc.storage.notify import watches

_TEXT = """\
Many sites fell silent together, or no site reports. The cause is probably the service or its network, so their owners
have not been alarmed since {since}.

Check whether sites can reach {base_url}. If they can, and the sites are really offline, run
`profilesvc alerts release`, and the owners are alarmed within two minutes. Otherwise the alarms wait until most sites
are back, for a day at most. `profilesvc alerts status` shows whether they still do.
"""


async def run_once(services: Services) -> None:
    """Send the message if the settings name an operator, and do not leave deliveries to other processes.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
        JobFailed: The mail server did not accept it; the next run sends it again.
    """
    if services.settings.mail.operator and services.settings.webhooks.deliver:
        await write(services, Mailer(services.settings))


async def write(services: Services, mailer: Mailer) -> None:
    """Send the message, unless it was sent."""
    async with services.storage.read() as session:
        marks = await watches.marks(session)
    held = marks.get("held")
    if not held or marks.get("written") == held:
        return
    try:
        await mailer.send(_message(services, held), services.settings.mail.operator, f"{held}-operator")
    except (Rejected, Unsent) as error:
        raise JobFailed(str(error)) from None
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
