"""The life of signing keys: added, announced, rotated, removed, in the same way for every process (D-13).

The table decides. Each process reads it every few seconds and before it issues a token, so that no issued token is
invalid from the start. A key signs only after every process had the time to read it. Verifying a token needs only the
keyring in memory. RSA keys (access tokens) and HMAC keys (refresh tokens) have the same life, each on its own.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.database.engine import Storage
from profilesvc.domain import signing_keys as rules
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import ALGORITHMS, Algorithm, KeyDates, Schedule, State
from profilesvc.domain.world import DAY, SECOND, Clock, iso
from profilesvc.settings import PREFIX, SettingsError, TokenSettings
from profilesvc.storage import revocations
from profilesvc.storage import signing_keys as table
from profilesvc.storage.signing_keys import StoredKey
from profilesvc.tokens.keyring import Keyring, SigningKey, generate, pem_of, read_key

RELOAD_SECONDS = 2
log = logging.getLogger("profilesvc")


class KeyInfo(NamedTuple):
    """A signing key as the operator sees it."""

    dates: KeyDates
    state: State


class SigningKeys:
    """The keys in the table, and this process's keyring."""

    def __init__(self, settings: TokenSettings, clock: Clock, storage: Storage, ring: Keyring) -> None:
        self._settings, self._clock, self._storage, self._ring = settings, clock, storage, ring

    def schedule(self, alg: Algorithm) -> Schedule:
        """Return the configured schedule. A key is kept for as long as any token lasts, and a day."""
        tokens = self._settings
        longest = max(tokens.access_ttl_seconds, tokens.refresh_ttl_seconds, tokens.user_ttl_seconds)
        file = tokens.signing_key_file if alg == "RS256" else tokens.refresh_key_file
        rotate = None if file is not None else tokens.rotate_days * DAY
        return Schedule(rotate, tokens.announce_days * DAY, longest * SECOND + DAY)

    @property
    def _passphrase(self) -> bytes | None:
        return self._settings.key_passphrase.get_secret_value().encode() or None

    async def _stored(self) -> list[StoredKey]:
        async with self._storage.read() as session:
            return await table.every(session)

    def _read(self, stored: StoredKey) -> SigningKey:
        kid, pem = stored.dates.kid, (stored.private_pem or "").encode()
        try:
            return read_key(stored.dates.alg, pem, self._passphrase, {kid})
        except (ValueError, TypeError):
            raise SettingsError(f"{PREFIX}TOKENS__KEY_PASSPHRASE does not open the signing key {kid}") from None

    async def reload(self, given: Sequence[SigningKey] = (), *, strict: bool = False) -> None:
        """Hold the keys that the table has now. New ones are decrypted, except those `given`.

        A key that cannot be read is left out and logged.

        Raises:
            SettingsError: A key cannot be read, and the reading is `strict`.
        """
        ring, held = self._ring, []
        at_hand = {key.kid: key for key in given}
        there = await self._stored()
        for stored in there:
            kid, keys = stored.dates.kid, ring.of(stored.dates.alg)
            if stored.private_pem is None:
                continue
            try:
                key = keys[kid] if kid in keys else at_hand.get(kid)
                held.append((stored.dates, key or self._read(stored)))
            except SettingsError as error:
                if strict:
                    raise
                if kid not in ring.unreadable:
                    log.error("%s", error)  # noqa: TRY400  the message is complete
                ring.unreadable.add(kid)
        ring.replace(held, there[0].stamp if there else None)

    async def open(self, given: Sequence[SigningKey], first: Callable[[Algorithm], SigningKey] = generate) -> None:
        """Load the keyring when a process starts.

        `given` are the operator's own keys: each is added once, and signs from then on. `first` makes the first key of
        an algorithm; if several processes start at the same time, the key of one of them is used.

        Raises:
            SettingsError: The passphrase does not open a key.
        """
        await self.reload(given, strict=True)
        removed = {stored.dates.kid: stored.dates.removed_at for stored in await self._stored()}
        for alg in ALGORITHMS:
            own = next((key for key in given if key.alg == alg), None)
            if own is not None and removed.get(own.kid) is not None:
                log.warning("the signing key %s in the configured file was removed and is not used again", own.kid)
            if own is not None and own.kid not in removed:
                await self._add_first(own, is_given=True)
            elif not self._ring.of(alg).dates:
                await self._add_first(await asyncio.to_thread(first, alg), is_given=False)
        await self._encrypt()
        await self.reload(given, strict=True)

    async def _add_first(self, key: SigningKey, *, is_given: bool) -> None:
        now = self._clock.now()
        async with self._storage.write() as session:
            there = await self._locked(session, key.alg)
            if key.kid in {dates.kid for dates in there} or (rules.in_order(there) and not is_given):
                return  # another process was first
            for waiting in rules.announced(there, now):  # they would sign after the operator's own key
                await table.remove(session, waiting.kid, now)
            await self._add(session, key, rules.soonest(now, there, now))

    async def _encrypt(self) -> None:
        """Encrypt what was stored before there was a passphrase."""
        passphrase = self._passphrase
        stored = [] if passphrase is None else await self._stored()
        plain = [key for key in stored if key.private_pem is not None and "ENCRYPTED" not in key.private_pem]
        if plain:
            async with self._storage.write() as session:
                for key in plain:
                    await table.change(session, key.dates.kid, private_pem=pem_of(self._read(key), passphrase))

    async def _locked(self, session: AsyncSession, alg: Algorithm) -> list[KeyDates]:
        """Return the keys of an algorithm, which nobody else can change until the transaction ends."""
        await table.lock(session)
        return [stored.dates for stored in await table.every(session) if stored.dates.alg == alg]

    async def _add(self, session: AsyncSession, key: SigningKey, active_from: int) -> None:
        dates = KeyDates(key.kid, self._clock.now(), active_from, alg=key.alg)
        await table.add(session, dates, pem_of(key, self._passphrase))
        log.info("signing key %s (%s) is announced and signs from %s", key.kid, key.alg, iso(active_from))

    async def listing(self) -> list[KeyInfo]:
        """Return all keys, also the removed ones, oldest first."""
        there, now = [stored.dates for stored in await self._stored()], self._clock.now()
        of = {alg: [dates for dates in there if dates.alg == alg] for alg in ALGORITHMS}
        return [KeyInfo(dates, rules.state(dates, of[dates.alg], now)) for dates in there]

    async def _info(self, kid: str) -> KeyInfo:
        await self.reload()
        return next(info for info in await self.listing() if info.dates.kid == kid)

    async def rotate(self, alg: Algorithm = "RS256", *, at_once: bool = False) -> KeyInfo:
        """Announce the next key of an algorithm.

        With `at_once` that key, or the one that is announced already, signs as soon as every process has it.

        Raises:
            ServiceError: CONFLICT if a key is announced already and it is not `at_once`.
        """
        key, now = await asyncio.to_thread(generate, alg), self._clock.now()
        async with self._storage.write() as session:
            there = await self._locked(session, alg)
            waiting = next(iter(rules.announced(there, now)), None)
            if waiting is None:
                soon = rules.soonest(now, there, now)
                await self._add(session, key, soon if at_once else max(soon, now + self.schedule(alg).announce))
            elif not at_once:
                when = iso(waiting.active_from)
                raise ServiceError(
                    CONFLICT, f"The signing key {waiting.kid} is announced already; it signs from {when}."
                )
            else:
                await self._bring_forward(session, waiting, there, now)
        return await self._info(key.kid if waiting is None else waiting.kid)

    async def _bring_forward(self, session: AsyncSession, waiting: KeyDates, there: list[KeyDates], now: int) -> None:
        soon = rules.soonest(waiting.created_at, there, now)
        await table.change(session, waiting.kid, active_from=min(waiting.active_from, soon))

    async def remove(self, kid: str) -> KeyInfo:
        """End a key and every token that it signed, at once on every process. A second removal changes nothing.

        If it is the active one, the same transaction makes another active: the one announced next, or a new one.

        Raises:
            ServiceError: NOT_FOUND if there is no such key.
        """
        alg = next((info.dates.alg for info in await self.listing() if info.dates.kid == kid), None)
        if alg is None:
            raise ServiceError(NOT_FOUND, f"There is no signing key {kid}.")
        spare, now = await asyncio.to_thread(generate, alg), self._clock.now()
        async with self._storage.write() as session:
            there = await self._locked(session, alg)
            found = next(dates for dates in there if dates.kid == kid)
            if found.removed_at is None:
                await table.remove(session, kid, now)
                await revocations.add(session, "signing_key", kid, now, now + self.schedule(alg).keep)
                if rules.state(found, there, now) == "active":
                    await self._succeed(session, [dates for dates in there if dates.kid != kid], spare)
                log.warning("signing key %s was removed: its tokens end", kid)
        return await self._info(kid)

    async def _succeed(self, session: AsyncSession, left: list[KeyDates], spare: SigningKey) -> None:
        """Bring the next key forward, or add one. Until every process has it, a retired key signs again."""
        now = self._clock.now()
        waiting = next(iter(rules.announced(left, now)), None)
        if waiting is not None:
            await self._bring_forward(session, waiting, left, now)
        else:
            await self._add(session, spare, rules.soonest(now, left, now))

    async def keep_schedule(self) -> None:
        """Announce the keys that are due and remove those that outlived their tokens, in one of the processes."""
        has_changed = [await self._keep_schedule(alg) for alg in ALGORITHMS]
        if any(has_changed):
            await self.reload()

    async def _keep_schedule(self, alg: Algorithm) -> bool:
        plan, now, dates = self.schedule(alg), self._clock.now(), self._ring.of(alg).dates
        spare = None if rules.due(dates, now, plan) is None else await asyncio.to_thread(generate, alg)
        if spare is None and not rules.outlived(dates, now, plan.keep):
            return False
        async with self._storage.write() as session:
            there = await self._locked(session, alg)
            active_from = rules.due(there, now, plan)
            if spare is not None and active_from is not None:
                await self._add(session, spare, active_from)
            for kid in rules.outlived(there, now, plan.keep):
                await table.remove(session, kid, now)
                log.info("signing key %s outlived its tokens and was removed", kid)
        return True

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Follow the table and keep the schedule for as long as the block runs."""
        stop = asyncio.Event()
        following = asyncio.create_task(self._follow(stop))
        try:
            yield
        finally:
            stop.set()
            await following

    async def _follow(self, stop: asyncio.Event) -> None:
        while not await _stopped(stop):
            self._storage.renew()
            try:
                await self.reload()
                await self.keep_schedule()
            except ServiceError:  # the database is in trouble, which every request reports
                continue
            except Exception:  # the next round may succeed
                log.exception("the signing keys could not be read")


async def _stopped(stop: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), RELOAD_SECONDS)
    return stop.is_set()
