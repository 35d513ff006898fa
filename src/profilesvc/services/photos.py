"""Photos of posts. The provider fetches a photo from a URL, so a photo that an owner uploads is served here."""

import re

from profilesvc.contract.errors import CONFLICT, PLAN_RESTRICTION
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.photos import media_type
from profilesvc.domain.time import DAY
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.storage import photos
from profilesvc.storage.photos import Photo
from profilesvc.tokens.signer import random_id

KEPT = 30 * DAY  # the provider has its own copy by then
MOST = 200  # of an owner
_PATH = "/dashboard/photos/"
_NAME = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{22})\.(?:jpg|png)", re.ASCII)


async def store(services: Services, caller: Caller, content: bytes) -> str:
    """Store a photo for 30 days and return its public URL, which contains 128 random bits.

    Raises:
        ServiceError: PLAN_RESTRICTION; VALIDATION_ERROR; CONFLICT for too many.
    """
    if not caller.plan.posts:
        raise ServiceError(PLAN_RESTRICTION, f"The plan {caller.plan.display_name} does not include posts.")
    try:
        found = media_type(content)
    except ValueError as error:
        raise invalid("body", "media", str(error)) from None
    ident = random_id(services.entropy)
    async with services.storage.write() as session:
        if await photos.count(session, caller.owner_id) >= MOST:
            raise ServiceError(CONFLICT, f"You have uploaded {MOST} photos in 30 days. Use the URL of a photo instead.")
        photo = Photo(found, content)
        await photos.add(session, caller.owner_id, ident, photo, services.clock.now() + KEPT)
    ending = "png" if found == "image/png" else "jpg"
    return f"{services.settings.base_url}{_PATH}{caller.owner_id}-{ident}.{ending}"


def is_ours(services: Services, url: str) -> bool:
    """Return whether a URL is that of a photo that is stored here."""
    return _name(services, url) is not None


def _name(services: Services, url: str) -> re.Match[str] | None:
    prefix = f"{services.settings.base_url}{_PATH}"
    return _NAME.fullmatch(url.removeprefix(prefix)) if url.startswith(prefix) else None


async def keep_until(services: Services, caller: Caller, url: str, due_at: int) -> None:
    """Keep a photo of a post that is scheduled for 30 days after its time."""
    match = _name(services, url)
    if match is None or int(match[1]) != caller.owner_id:
        return
    async with services.storage.write() as session:
        await photos.extend(session, caller.owner_id, match[2], due_at + KEPT)


async def read(services: Services, name: str) -> Photo:
    """Return a photo by the last part of its URL.

    Raises:
        ServiceError: NOT_FOUND.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise missing("photo")
    async with services.storage.read() as session:
        found = await photos.find(session, int(match[1]), match[2], services.clock.now())
    if found is None:
        raise missing("photo")
    return found
