"""The life of signing keys: taken in, announced, rotated, removed (D-13), the same for all processes.

The table decides. Each process reads it every few seconds and before it issues a token, so that what it issues is never
dead; a key signs only after every process had the time to read it. Verifying a token asks the ring in memory alone.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.domain import signing_keys as rules
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import KeyDates, Schedule, State
from profilesvc.domain.world import DAY, SECOND, iso
from profilesvc.services.context import Services
from profilesvc.settings import PREFIX, SettingsError
from profilesvc.storage import revocations
from profilesvc.storage import signing_keys as table
from profilesvc.storage.signing_keys import StoredKey
from profilesvc.tokens.keyring import SigningKey, generate, pem_of, signing_key

RELOAD_SECONDS = 2
log = logging.getLogger("profilesvc")


class KeyInfo(NamedTuple):
    """A signing key as the operator sees it."""

    dates: KeyDates
    state: State


def schedule(services: Services) -> Schedule:
    """The configured one. A key is kept for as long as any token lasts, and a day."""
    tokens = services.settings.tokens
    longest = max(tokens.access_ttl_seconds, tokens.refresh_ttl_seconds, tokens.user_ttl_seconds)
    rotate = None if tokens.signing_key_file is not None else tokens.rotate_days * DAY
    return Schedule(rotate, tokens.announce_days * DAY, longest * SECOND + DAY)


def _passphrase(services: Services) -> bytes | None:
    return services.settings.tokens.key_passphrase.get_secret_value().encode() or None


async def _stored(services: Services) -> list[StoredKey]:
    async with services.storage.read() as session:
        return await table.every(session)


def _read(services: Services, stored: StoredKey) -> SigningKey:
    try:
        return signing_key((stored.private_pem or "").encode(), _passphrase(services), {stored.dates.kid})
    except (ValueError, TypeError):
        raise SettingsError(
            f"{PREFIX}TOKENS__KEY_PASSPHRASE does not open the signing key {stored.dates.kid}"
        ) from None


async def reload(services: Services, *, given: SigningKey | None = None, strict: bool = False) -> None:
    """Hold the keys that the table has now; those that are new here are decrypted, but not `given`.

    One that cannot be read is left out and logged; SettingsError when `strict`.
    """
    ring, held = services.signer.keyring, []
    at_hand = {} if given is None else {given.kid: given}
    there = await _stored(services)
    for stored in there:
        kid = stored.dates.kid
        if stored.private_pem is None:
            continue
        try:
            key = ring[kid] if kid in ring else at_hand.get(kid)
            held.append((stored.dates, key or _read(services, stored)))
        except SettingsError as error:
            if strict:
                raise
            if kid not in ring.unreadable:
                log.error("%s", error)  # noqa: TRY400  one line says it all
            ring.unreadable.add(kid)
    ring.replace(held, there[0].stamp if there else None)


async def open_ring(services: Services, given: SigningKey | None, first: Callable[[], SigningKey]) -> None:
    """Load the ring as a process starts. SettingsError for a key that the passphrase does not open.

    `given` is the operator's own key: it is taken in once, and signs from then on. `first` makes the key of a database
    that has none; of those who start at the same time one puts it in.
    """
    await reload(services, given=given, strict=True)
    names = {stored.dates.kid: stored.dates.removed_at for stored in await _stored(services)}
    if given is not None and names.get(given.kid) is not None:
        log.warning("TOKENS__SIGNING_KEY_FILE: the signing key %s was removed and stays so", given.kid)
    if not services.signer.keyring.dates or (given is not None and given.kid not in names):
        await _take_in(services, await asyncio.to_thread(first) if given is None else given, given is not None)
    await _encrypt(services)
    await reload(services, given=given, strict=True)


async def _take_in(services: Services, key: SigningKey, is_given: bool) -> None:
    now = services.clock.now()
    async with services.storage.write() as session:
        there = await _locked(session)
        if key.kid in {dates.kid for dates in there} or (rules.in_order(there) and not is_given):
            return  # another process was first
        for waiting in rules.announced(there, now):  # they would end the turn of the operator's own key
            await table.remove(session, waiting.kid, now)
        await _add(services, session, key, rules.soonest(now, there, now))


async def _encrypt(services: Services) -> None:
    """Encrypt what was stored before there was a passphrase."""
    passphrase = _passphrase(services)
    stored = [] if passphrase is None else await _stored(services)
    plain = [key for key in stored if key.private_pem is not None and "ENCRYPTED" not in key.private_pem]
    if plain:
        async with services.storage.write() as session:
            for key in plain:
                await table.change(session, key.dates.kid, private_pem=pem_of(_read(services, key), passphrase))


async def _locked(session: AsyncSession) -> list[KeyDates]:
    """What there is, while nobody else can change it."""
    await table.lock(session)
    return [stored.dates for stored in await table.every(session)]


async def _add(services: Services, session: AsyncSession, key: SigningKey, active_from: int) -> None:
    dates = KeyDates(key.kid, services.clock.now(), active_from)
    await table.add(session, dates, pem_of(key, _passphrase(services)))
    log.info("signing key %s is announced and signs from %s", key.kid, iso(active_from))


async def listing(services: Services) -> list[KeyInfo]:
    """All keys, removed ones too, oldest first."""
    there, now = [stored.dates for stored in await _stored(services)], services.clock.now()
    return [KeyInfo(dates, rules.state(dates, there, now)) for dates in there]


async def _info(services: Services, kid: str) -> KeyInfo:
    await reload(services)
    return next(info for info in await listing(services) if info.dates.kid == kid)


async def rotate(services: Services, at_once: bool = False) -> KeyInfo:
    """Announce the next key; `at_once` lets it, or the one announced before, sign as soon as every process knows it.

    CONFLICT when one is announced already and it is not `at_once`.
    """
    key, now = await asyncio.to_thread(generate), services.clock.now()
    async with services.storage.write() as session:
        there = await _locked(session)
        waiting = next(iter(rules.announced(there, now)), None)
        if waiting is None:
            soon = rules.soonest(now, there, now)
            await _add(services, session, key, soon if at_once else max(soon, now + schedule(services).announce))
        elif not at_once:
            when = iso(waiting.active_from)
            raise ServiceError(CONFLICT, f"The signing key {waiting.kid} is announced already; it signs from {when}.")
        else:
            await _bring_forward(session, waiting, there, now)
    return await _info(services, key.kid if waiting is None else waiting.kid)


async def _bring_forward(session: AsyncSession, waiting: KeyDates, there: list[KeyDates], now: int) -> None:
    soon = rules.soonest(waiting.created_at, there, now)
    await table.change(session, waiting.kid, active_from=min(waiting.active_from, soon))


async def remove(services: Services, kid: str) -> KeyInfo:
    """End a key and every token that it signed, at once on every process; again is harmless. NOT_FOUND.

    If it is the active one, the same transaction makes another active: the one announced next, or a new one.
    """
    spare, now = await asyncio.to_thread(generate), services.clock.now()
    async with services.storage.write() as session:
        there = await _locked(session)
        found = next((dates for dates in there if dates.kid == kid), None)
        if found is None:
            raise ServiceError(NOT_FOUND, f"There is no signing key {kid}.")
        if found.removed_at is None:
            await table.remove(session, kid, now)
            await revocations.add(session, "signing_key", kid, now, now + schedule(services).keep)
            if rules.state(found, there, now) == "active":
                await _succeed(services, session, [dates for dates in there if dates.kid != kid], spare)
            log.warning("signing key %s was removed: its tokens end", kid)
    return await _info(services, kid)


async def _succeed(services: Services, session: AsyncSession, left: list[KeyDates], spare: SigningKey) -> None:
    """A retired key, which every process knows, stands in until the next one is as well known."""
    now = services.clock.now()
    waiting = next(iter(rules.announced(left, now)), None)
    if waiting is not None:
        await _bring_forward(session, waiting, left, now)
    else:
        await _add(services, session, spare, rules.soonest(now, left, now))


async def keep_schedule(services: Services) -> None:
    """Announce what is due and remove what outlived its tokens; of any number of processes one does it."""
    plan, now, ring = schedule(services), services.clock.now(), services.signer.keyring
    spare = None if rules.due(ring.dates, now, plan) is None else await asyncio.to_thread(generate)
    if spare is None and not rules.outlived(ring.dates, now, plan.keep):
        return
    async with services.storage.write() as session:
        there = await _locked(session)
        active_from = rules.due(there, now, plan)
        if spare is not None and active_from is not None:
            await _add(services, session, spare, active_from)
        for kid in rules.outlived(there, now, plan.keep):
            await table.remove(session, kid, now)
            log.info("signing key %s outlived its tokens and was removed", kid)
    await reload(services)


@contextlib.asynccontextmanager
async def kept(services: Services) -> AsyncIterator[None]:
    """Follow the table and keep the schedule for as long as the block runs."""
    stop = asyncio.Event()
    following = asyncio.create_task(_follow(services, stop))
    try:
        yield
    finally:
        stop.set()
        await following


async def _follow(services: Services, stop: asyncio.Event) -> None:
    while not await _stopped(stop):
        services.storage.renew()
        try:
            await reload(services)
            await keep_schedule(services)
        except ServiceError:  # the database is in trouble, as every request says
            continue
        except Exception:  # whatever it is, the next round may go well
            log.exception("the signing keys could not be read anew")


async def _stopped(stop: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), RELOAD_SECONDS)
    return stop.is_set()
