"""Add, announce, rotate and remove signing keys, in the same way for every process (D-13)."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.database.engine import Storage
from profilesvc.domain import signing_keys as rules
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import ALGORITHMS, Algorithm, KeyDates, Schedule, State
from profilesvc.domain.time import DAY, SECOND, Clock, iso
from profilesvc.settings import PREFIX, SettingsError, TokenSettings
from profilesvc.storage import signing_keys as table
from profilesvc.storage.signing_keys import StoredKey
from profilesvc.tokens.keys import SigningKey, generate, pem_of, read_key
from profilesvc.tokens.signer import Keyring

RELOAD_SECONDS = 2
log = logging.getLogger("profilesvc")


class KeyInfo(NamedTuple):
    """A signing key as the operator sees it."""

    dates: KeyDates
    state: State


class SigningKeys:
    """The keys in the table, and the keyring of this process.

    The table decides. Each process reads it every few seconds and before it issues a token. A key signs only after
    every process had time to read it, so that all of them accept its tokens. Verifying a token needs only the keyring.
    RSA keys (access tokens) and HMAC keys (refresh tokens) are rotated separately.
    """

    def __init__(self, settings: TokenSettings, clock: Clock, storage: Storage, ring: Keyring) -> None:
        self._settings, self._clock = settings, clock
        self._storage, self._ring = storage, ring

    def schedule(self, alg: Algorithm) -> Schedule:
        """Return the configured schedule. A key is kept for a day longer than any token lasts."""
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
            raise SettingsError(
                f"{PREFIX}TOKENS__KEY_PASSPHRASE does not decrypt the signing key {kid}. "
                "Set the former one; it cannot be replaced (docs/operations.md#secrets)"
            ) from None

    async def reload(self, configured: Sequence[SigningKey] = (), *, strict: bool = False) -> None:
        """Replace the keyring by the keys in the table. New keys are decrypted, except the `configured` ones.

        A key that cannot be read is left out and logged.

        Raises:
            SettingsError: A key cannot be read, and `strict` is set.
        """
        ring, readable = self._ring, []
        by_kid = {key.kid: key for key in configured}
        all_stored = await self._stored()
        for stored in all_stored:
            kid, keys = stored.dates.kid, ring.keys_of(stored.dates.alg)
            if stored.private_pem is None:
                continue
            try:
                key = keys[kid] if kid in keys else by_kid.get(kid)
                readable.append((stored.dates, key or self._read(stored)))
            except SettingsError as error:
                if strict:
                    raise
                if kid not in ring.unreadable:
                    log.error("%s", error)  # noqa: TRY400  the message is complete
                ring.unreadable.add(kid)
        ring.replace(readable, all_stored[0].stamp if all_stored else None)

    async def open(self, configured: Sequence[SigningKey], first: Callable[[Algorithm], SigningKey] = generate) -> None:
        """Load the keyring when a process starts.

        `configured` are the operator's own keys. Each is added once, and signs from then on. `first` generates the
        first key of an algorithm. If several processes start at the same time, all use the key of one of them.

        Raises:
            SettingsError: The passphrase does not open a key.
        """
        await self.reload(configured, strict=True)
        removed = {stored.dates.kid: stored.dates.removed_at for stored in await self._stored()}
        for alg in ALGORITHMS:
            own = next((key for key in configured if key.alg == alg), None)
            if own is not None and removed.get(own.kid) is not None:
                log.warning("the signing key %s in the configured file was removed and is not used again", own.kid)
            if own is not None and own.kid not in removed:
                await self._add_first(own, is_configured=True)
            elif not self._ring.keys_of(alg).dates:
                await self._add_first(await asyncio.to_thread(first, alg), is_configured=False)
        await self._encrypt()
        await self.reload(configured, strict=True)

    async def _add_first(self, key: SigningKey, *, is_configured: bool) -> None:
        now = self._clock.now()
        async with self._storage.write() as session:
            keys = await self._locked(session, key.alg)
            if key.kid in {dates.kid for dates in keys} or (rules.in_order(keys) and not is_configured):
                return  # another process was first
            for next_key in rules.announced(keys, now):  # they would replace the operator's own key
                await table.remove(session, next_key.kid, now)
            await self._add(session, key, rules.earliest_start(now, keys, now))

    async def _encrypt(self) -> None:
        """Encrypt the keys that were stored before a passphrase was configured."""
        passphrase = self._passphrase
        stored = [] if passphrase is None else await self._stored()
        plain = [key for key in stored if key.private_pem is not None and "ENCRYPTED" not in key.private_pem]
        if plain:
            async with self._storage.write() as session:
                for key in plain:
                    await table.change(session, key.dates.kid, private_pem=pem_of(self._read(key), passphrase))

    async def _locked(self, session: AsyncSession, alg: Algorithm) -> list[KeyDates]:
        """Return the keys of an algorithm, locked until the transaction ends."""
        await table.lock(session)
        return [stored.dates for stored in await table.every(session) if stored.dates.alg == alg]

    async def _add(self, session: AsyncSession, key: SigningKey, active_from: int) -> None:
        dates = KeyDates(key.kid, self._clock.now(), active_from, alg=key.alg)
        await table.add(session, dates, pem_of(key, self._passphrase))
        log.info("signing key %s (%s) is announced and signs from %s", key.kid, key.alg, iso(active_from))

    async def listing(self) -> list[KeyInfo]:
        """Return all keys, also the removed ones, oldest first."""
        keys, now = [stored.dates for stored in await self._stored()], self._clock.now()
        by_alg = {alg: [dates for dates in keys if dates.alg == alg] for alg in ALGORITHMS}
        return [KeyInfo(dates, rules.state(dates, by_alg[dates.alg], now)) for dates in keys]

    async def _info(self, kid: str) -> KeyInfo:
        await self.reload()
        return next(info for info in await self.listing() if info.dates.kid == kid)

    async def rotate(self, alg: Algorithm = "RS256", *, at_once: bool = False) -> KeyInfo:
        """Announce the next key of an algorithm.

        With `at_once` that key, or the one that is already announced, signs as soon as every process has it.

        Raises:
            ServiceError: CONFLICT if a key is already announced, unless `at_once`.
        """
        key, now = await asyncio.to_thread(generate, alg), self._clock.now()
        async with self._storage.write() as session:
            keys = await self._locked(session, alg)
            next_key = next(iter(rules.announced(keys, now)), None)
            if next_key is None:
                earliest = rules.earliest_start(now, keys, now)
                await self._add(session, key, earliest if at_once else max(earliest, now + self.schedule(alg).announce))
            elif not at_once:
                when = iso(next_key.active_from)
                raise ServiceError(
                    CONFLICT, f"The signing key {next_key.kid} is already announced; it signs from {when}."
                )
            else:
                await self._bring_forward(session, next_key, keys, now)
        return await self._info(key.kid if next_key is None else next_key.kid)

    async def _bring_forward(self, session: AsyncSession, next_key: KeyDates, keys: list[KeyDates], now: int) -> None:
        earliest = rules.earliest_start(next_key.created_at, keys, now)
        await table.change(session, next_key.kid, active_from=min(next_key.active_from, earliest))

    async def remove(self, kid: str) -> KeyInfo:
        """End a key and every token that it signed, at once on every process. Removing it again has no effect.

        If the key is active, the same transaction activates the next announced key, or a new one.

        Raises:
            ServiceError: NOT_FOUND if there is no such key.
        """
        alg = next((info.dates.alg for info in await self.listing() if info.dates.kid == kid), None)
        if alg is None:
            raise ServiceError(NOT_FOUND, f"There is no signing key {kid}.")
        new_key, now = await asyncio.to_thread(generate, alg), self._clock.now()
        async with self._storage.write() as session:
            keys = await self._locked(session, alg)
            target = next(dates for dates in keys if dates.kid == kid)
            if target.removed_at is None:
                await table.remove(session, kid, now)
                if rules.state(target, keys, now) == "active":
                    await self._activate_successor(session, [dates for dates in keys if dates.kid != kid], new_key)
                log.warning("signing key %s was removed; its tokens are no longer valid", kid)
        return await self._info(kid)

    async def _activate_successor(self, session: AsyncSession, others: list[KeyDates], new_key: SigningKey) -> None:
        """Bring the next key forward, or add one. A retired key signs until every process has it."""
        now = self._clock.now()
        next_key = next(iter(rules.announced(others, now)), None)
        if next_key is not None:
            await self._bring_forward(session, next_key, others, now)
        else:
            await self._add(session, new_key, rules.earliest_start(now, others, now))

    async def renew(self) -> None:
        """Reload the keys and keep the schedule.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """
        await self.reload()
        await self.keep_schedule()

    async def keep_schedule(self) -> None:
        """Announce the keys that are due and remove those whose tokens have expired, in one of the processes."""
        has_changed = [await self._keep_schedule(alg) for alg in ALGORITHMS]
        if any(has_changed):
            await self.reload()

    async def _keep_schedule(self, alg: Algorithm) -> bool:
        plan, now = self.schedule(alg), self._clock.now()
        dates = self._ring.keys_of(alg).dates
        new_key = None if rules.due(dates, now, plan) is None else await asyncio.to_thread(generate, alg)
        if new_key is None and not rules.expired_kids(dates, now, plan.keep):
            return False
        async with self._storage.write() as session:
            keys = await self._locked(session, alg)
            active_from = rules.due(keys, now, plan)
            if new_key is not None and active_from is not None:
                await self._add(session, new_key, active_from)
            for kid in rules.expired_kids(keys, now, plan.keep):
                await table.remove(session, kid, now)
                log.info("signing key %s was removed, because its tokens have expired", kid)
        return True
