"""Recognise a pepper that is not the one with which the client secrets of this database were stored (D-129).

With a wrong pepper no client secret is valid, and every webhook is signed by a wrong secret. Old tokens would hide this
until site after site has to be reconnected, so a process with a wrong pepper does not start.
"""

from profilesvc.domain.keys import check_value
from profilesvc.services.context import Services
from profilesvc.settings import PREFIX, SettingsError
from profilesvc.storage import check_values

_NAME = "pepper"
_SO = (
    "the client secrets of this database were stored, so none of them would be valid. "
    "Set the former one, or replace it as docs/operations.md#replace-the-pepper describes"
)
_OTHER = f"{PREFIX}SECRET_PEPPER is not the one with which {_SO}"
_MISSING = f"{PREFIX}SECRET_PEPPER is not set, and it was set when {_SO}"


async def require_same(services: Services) -> None:
    """Store the check value at the first start. Later, require the pepper that it is of.

    Before the first API key and webhook, a new pepper replaces the old one. A database from an earlier version has no
    check value, so the pepper of its next start counts as the right one.

    Raises:
        SettingsError: The pepper is another one.
    """
    value = check_value(services.pepper)
    async with services.storage.read() as session:
        stored = await check_values.find(session, _NAME)
    if stored == value:
        return
    async with services.storage.write() as session:
        await check_values.add(session, _NAME, value)
        if await check_values.find(session, _NAME) == value:
            return
        if await check_values.depends_on_pepper(session):
            raise SettingsError(_OTHER if services.pepper else _MISSING)
        await check_values.replace(session, _NAME, value)


async def replace(services: Services) -> int:
    """Make the configured pepper the right one, and return how many client secrets are no longer valid."""
    async with services.storage.write() as session:
        await check_values.replace(session, _NAME, check_value(services.pepper))
        return await check_values.count_secrets(session)


async def is_same(services: Services) -> bool:
    """Return whether the pepper of this process is still the right one: an operator may have replaced it."""
    async with services.storage.read() as session:
        return await check_values.find(session, _NAME) == check_value(services.pepper)
