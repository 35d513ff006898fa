"""The setting of the change feed at the provider, for every account that has locations here."""

from typing import NamedTuple

from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Services
from profilesvc.services.feed.feed import TYPES, turn_on
from profilesvc.services.provider_logins import provider_by
from profilesvc.storage import feed


class AccountFeed(NamedTuple):
    """The notifications that the provider publishes of an account. `works` is whether it is what this service needs."""

    account: str
    owner_id: int
    works: bool
    topic: str
    types: list[str]
    error: str | None = None


async def enable(services: Services) -> list[AccountFeed]:
    """Set the topic for all accounts; one that fails does not keep the others from it."""
    return await _all_feeds(services, change=True)


async def status(services: Services) -> list[AccountFeed]:
    """Return what is set at the provider."""
    return await _all_feeds(services, change=False)


async def _all_feeds(services: Services, *, change: bool) -> list[AccountFeed]:
    async with services.storage.read() as session:
        places = await feed.accounts(session)
    return [
        await _account_feed(services, owner_id, number, account, change=change) for owner_id, number, account in places
    ]


async def _account_feed(
    services: Services, owner_id: int, number: int | None, account: str, *, change: bool
) -> AccountFeed:
    try:
        remote = await provider_by(services, owner_id, number)
        setting = await (turn_on(services, remote, account) if change else remote.notification_setting(account))
    except ProviderError as error:
        return AccountFeed(account, owner_id, works=False, topic="", types=[], error=str(error))
    topic, types = str(setting.get("pubsubTopic", "")), list(setting.get("notificationTypes") or [])
    works = bool(topic) and topic == services.settings.notifications.topic and set(TYPES) <= set(types)
    return AccountFeed(account, owner_id, works, topic, types)
