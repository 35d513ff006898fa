"""The sender of each kind of channel."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from profilesvc.delivery.mail import MailSender
from profilesvc.delivery.senders import Sender
from profilesvc.delivery.smtp import Mailer
from profilesvc.delivery.transport import Transport
from profilesvc.delivery.webhooks import WebhookSender
from profilesvc.services.context import Services
from profilesvc.services.notify.resolving import resolver_of


@contextlib.asynccontextmanager
async def open_senders(services: Services) -> AsyncIterator[Mapping[str, Sender]]:
    """Yield the senders by kind. A sender may keep connections until the block ends."""
    settings = services.settings.webhooks
    made = Transport(allow_private=settings.allow_private, resolver=resolver_of(services))
    async with contextlib.aclosing(made) as transport:
        webhook = WebhookSender(transport)
        mail = MailSender(Mailer(services.settings))
        chats = {"slack": webhook, "teams": webhook, "discord": webhook}
        yield {"webhook": webhook, **chats, "email": mail, "notice": mail}
