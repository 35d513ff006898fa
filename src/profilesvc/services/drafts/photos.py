"""Photos of posts. The provider fetches a photo from a URL, so a photo that an owner uploads is served here."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from weakref import WeakValueDictionary

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.photos import media_type, without_metadata
from profilesvc.domain.time import DAY
from profilesvc.services.access import missing, require_plan
from profilesvc.services.context import Caller, Services
from profilesvc.storage.drafts import photos
from profilesvc.storage.drafts.photos import Photo
from profilesvc.tokens.jose import b64
from profilesvc.tokens.signer import random_id

RETENTION = 30 * DAY  # the provider has its own copy by then
MOST, MOST_BYTES = 200, 250 * 1024 * 1024  # of an owner
_MB = 1024 * 1024
_HELD = 253_370_764_800_000  # the year 9999: as long as a draft needs it
_FREE = "Delete drafts or posts with photos that you do not need, or use the URL of a photo instead."
_PATH = "/dashboard/photos/"
Settle = Callable[[Services, AsyncSession, int, str], Awaitable[None]]  # what becomes of the photos of a post, as JSON
_NAME = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{22})\.(?:jpg|png)", re.ASCII)


async def store(services: Services, caller: Caller, content: bytes, once: str = "") -> str:
    """Store a photo for 30 days and return its public URL, which cannot be guessed.

    A form that is sent twice has the same `once`, so its photo gets the same URL and is stored once.

    Raises:
        ServiceError: PLAN_RESTRICTION; VALIDATION_ERROR; CONFLICT for too many photos or bytes.
    """
    require_plan(caller, "posts")
    try:
        media_type(content)  # before the work: a file that is too large is no photo to clean
        content = await asyncio.to_thread(without_metadata, content)
        kind = media_type(content)
    except ValueError as error:
        raise invalid("body", "media", str(error)) from None
    ident = _repeatable_id(once, content) if once else random_id(services.entropy)
    url = f"{services.settings.base_url}{_PATH}{caller.owner_id}-{ident}.{'png' if kind == 'image/png' else 'jpg'}"
    now = services.clock.now()
    async with services.storage.write() as session:
        if once and await photos.find(session, caller.owner_id, ident, now) is not None:
            return url  # a draft that has it may keep it for longer than 30 days
        number, size = await photos.total(session, caller.owner_id)
        if number >= MOST:
            raise ServiceError(CONFLICT, f"You have {MOST} photos here. {_FREE}")
        if size + len(content) > MOST_BYTES:
            used = f"{size / _MB:.1f} of {MOST_BYTES // _MB} MB"
            raise ServiceError(CONFLICT, f"Your photos use {used}, so this one does not fit. {_FREE}")
        await photos.add(session, caller.owner_id, ident, Photo(kind, content), now + RETENTION)
    return url


def _repeatable_id(once: str, content: bytes) -> str:
    """Return an id like that of `random_id`; `once` is a random string of the form, which only its page has."""
    return b64(hashlib.sha256(once.encode(errors="replace") + b"\n" + content).digest()[:16])


def is_ours(services: Services, url: str) -> bool:
    """Return whether a URL is that of a photo that is stored here."""
    return _name(services, url) is not None


def _name(services: Services, url: str) -> re.Match[str] | None:
    prefix = f"{services.settings.base_url}{_PATH}"
    return _NAME.fullmatch(url.removeprefix(prefix)) if url.startswith(prefix) else None


async def hold(services: Services, session: AsyncSession, owner_id: int, document: str) -> None:
    """Keep the photos of a post, as JSON, for as long as it is a draft."""
    for name in _own(services, owner_id, document):
        await photos.keep(session, owner_id, name, _HELD)


async def keep(services: Services, session: AsyncSession, owner_id: int, document: str) -> None:
    """Keep the photos of a draft that is now a post for 30 days, unless another draft has them."""
    for name in _own(services, owner_id, document):
        if not await photos.is_drafted(session, owner_id, name):
            await photos.keep(session, owner_id, name, services.clock.now() + RETENTION)


async def release(services: Services, session: AsyncSession, owner_id: int, document: str) -> None:
    """Delete the photos of a draft or post that was deleted, unless another draft or post has them."""
    for name in _own(services, owner_id, document):
        if await photos.is_drafted(session, owner_id, name) or await photos.is_posted(session, owner_id, name):
            continue
        await photos.remove(session, owner_id, name)


def _own(services: Services, owner_id: int, document: str) -> list[str]:
    """Return the ids of the owner's photos in a post, as JSON."""
    items = json.loads(document).get("media") or []
    matches = [_name(services, str(item.get("sourceUrl"))) for item in items]
    return [match[2] for match in matches if match is not None and int(match[1]) == owner_id]


async def read(services: Services, name: str) -> Photo:
    """Return a photo by the last part of its URL.

    Raises:
        ServiceError: NOT_FOUND.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise missing("photo")
    owner_id, ident = int(match[1]), match[2]
    now = services.clock.now()
    async with services.storage.read() as session:
        is_there = await photos.exists(session, owner_id, ident, now)
    photo = await services.part(Copies).get(name, lambda: _load(services, owner_id, ident)) if is_there else None
    if photo is None:
        raise missing("photo")
    return photo


async def _load(services: Services, owner_id: int, ident: str) -> Photo | None:
    """Read a photo. One that was stored by an earlier version may have metadata."""
    async with services.storage.read() as session:
        photo = await photos.find(session, owner_id, ident, services.clock.now())
    if photo is None:
        return None
    try:
        return Photo(photo.media_type, await asyncio.to_thread(without_metadata, photo.content))
    except ValueError:
        return photo


class Copies:
    """The photos that are being sent, by name. Their readers share a copy, because slow ones would fill the memory."""

    def __init__(self) -> None:
        self._photos: WeakValueDictionary[str, Photo] = WeakValueDictionary()
        self._loading: dict[str, asyncio.Task[Photo | None]] = {}

    async def get(self, name: str, load: Callable[[], Coroutine[object, None, Photo | None]]) -> Photo | None:
        """Return the copy of a photo; `load` reads it if there is none, once for all who wait for it."""
        if (photo := self._photos.get(name)) is not None:
            return photo
        loading = self._loading.get(name)
        if loading is None:
            loading = self._loading[name] = asyncio.get_running_loop().create_task(load())
            loading.add_done_callback(lambda done: self._loaded(name, done))
        return await asyncio.shield(loading)

    def _loaded(self, name: str, done: "asyncio.Task[Photo | None]") -> None:
        del self._loading[name]
        if not done.cancelled() and done.exception() is None and (photo := done.result()) is not None:
            self._photos[name] = photo
