"""The check of `doctor` on the change feed."""

import asyncio

from profilesvc.cli.doctor.check import Check
from profilesvc.domain.problems import counted
from profilesvc.domain.time import SystemClock
from profilesvc.provider.connect import open_provider
from profilesvc.provider.port import ProviderError
from profilesvc.services.feed.feed import TYPES
from profilesvc.settings import PREFIX, Settings
from profilesvc.tokens.jwks import read_keys

_NAME = "change feed"
_ENABLE = "run `profilesvc provider notifications enable`"


async def feed(settings: Settings) -> Check:
    """Check the audience, the keys of the issuer, and the setting of the accounts of the installation's login."""
    configured = settings.notifications
    if not configured.enabled:
        hint = "see docs/notifications.md"
        return Check(_NAME, "ok", "none: locations are checked in the background, and caches are short-lived", hint)
    if not settings.effective_audience.startswith("https://"):
        hint = f"set {PREFIX}BASE_URL to the public address, or {PREFIX}NOTIFICATIONS__AUDIENCE as in the subscription"
        return Check(_NAME, "fail", f"Pub/Sub pushes only to https, not to {settings.effective_audience}", hint)
    try:
        if not await read_keys(configured.jwks_url):
            raise ValueError("no usable key")
    except Exception as error:  # whatever fails, no push is accepted
        hint = f"check {PREFIX}NOTIFICATIONS__JWKS_URL and the way to it"
        return Check(_NAME, "fail", f"the keys of the issuer cannot be read ({type(error).__name__})", hint)
    return await _at_the_provider(settings)


async def _at_the_provider(settings: Settings) -> Check:
    topic = settings.notifications.topic
    try:
        async with (
            open_provider(settings, clock=SystemClock()) as provider,
            asyncio.timeout(settings.provider.timeout_seconds),
        ):
            names = [str(account.get("name")) for account in await provider.accounts()]
            accounts = {name: await provider.notification_setting(name) for name in names}
    except (TimeoutError, ProviderError) as error:
        hint = f"enable the Notifications API, and set {PREFIX}PROVIDER__NOTIFICATIONS_URL (docs/notifications.md)"
        return Check(_NAME, "warn", f"the setting at the provider cannot be read: {error or 'no response'}", hint)
    wrong = [
        name
        for name, setting in accounts.items()
        if setting.get("pubsubTopic") != topic or not set(TYPES) <= set(setting.get("notificationTypes") or [])
    ]
    if wrong:
        return Check(_NAME, "warn", f"{', '.join(wrong)}: not published to {topic}", _ENABLE)
    published = f"{counted(len(accounts), 'account')} {'is' if len(accounts) == 1 else 'are'} published to {topic}"
    return Check(_NAME, "ok", f"{published}; `… notifications status` shows all")
