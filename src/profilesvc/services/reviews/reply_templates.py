"""An owner's templates of replies to reviews."""

from profilesvc.contract.errors import CONFLICT
from profilesvc.domain.errors import ServiceError, invalid, invalid_many, problems_of
from profilesvc.domain.keys import clean_name
from profilesvc.domain.reviews import check_reply
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.storage.reviews import reply_templates
from profilesvc.storage.reviews.reply_templates import ReplyTemplate
from profilesvc.tokens.signer import random_id

MOST = 100
LONGEST_NAME = 60


async def listing(services: Services, caller: Caller) -> list[ReplyTemplate]:
    """Return the templates of the owner by name."""
    async with services.storage.read() as session:
        return await reply_templates.templates(session, caller.owner_id)


async def save(services: Services, caller: Caller, name: str, text: str) -> None:
    """Store a template, which replaces one with the same name.

    Raises:
        ServiceError: VALIDATION_ERROR with all problems; CONFLICT for too many.
    """
    if problems := problems_of(lambda: _clean(name), lambda: check_reply({"comment": text})):
        raise invalid_many(problems)
    clean = _clean(name)
    async with services.storage.write() as session:
        if await reply_templates.count_others(session, caller.owner_id, clean) >= MOST:
            raise ServiceError(CONFLICT, f"You have {MOST} templates. Delete some first.")
        await reply_templates.put(session, caller.owner_id, ReplyTemplate(random_id(services.entropy), clean, text))


def _clean(name: str) -> str:
    if len(name.strip()) > LONGEST_NAME:
        raise invalid("body", "name", f"must have at most {LONGEST_NAME} characters")
    return clean_name(name)


async def delete(services: Services, caller: Caller, template_id: str) -> None:
    """Delete a template.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        if not await reply_templates.remove(session, caller.owner_id, template_id):
            raise missing("template")
