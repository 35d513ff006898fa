"""Access tokens of the provider: fetched once for many waiters, and again before they expire."""

import asyncio

import httpx

from profilesvc.domain.world import Clock
from profilesvc.provider.port import ProviderError
from profilesvc.settings import ProviderSettings

_EARLY_MS = 60_000


class TokenSource:
    """Exchanges the refresh token of the connected login; the token in hand is never logged or shown."""

    def __init__(self, client: httpx.AsyncClient, settings: ProviderSettings, *, url: str, clock: Clock) -> None:
        self._client, self._url, self._clock = client, url, clock
        self._form = {
            "grant_type": "refresh_token",
            "client_id": settings.client_id,
            "client_secret": settings.client_secret.get_secret_value(),
            "refresh_token": settings.refresh_token.get_secret_value(),
        }
        self._lock = asyncio.Lock()
        self._token, self._expires = "", 0

    async def get(self, refused: str = "") -> str:
        """A token that is good for another minute, and is not the one that the provider just refused."""
        async with self._lock:
            if self._token == refused or self._clock.now() >= self._expires - _EARLY_MS:
                await self._refresh()
            return self._token

    async def _refresh(self) -> None:
        asked = self._clock.now()
        response = await self._client.post(self._url, data=self._form)
        if response.status_code >= 500:
            raise ProviderError("unavailable", retryable=True, http_status=response.status_code)
        try:
            answer = response.json()
            if response.is_success:
                self._token, self._expires = str(answer["access_token"]), asked + int(answer["expires_in"]) * 1000
                return
        except (ValueError, TypeError, KeyError):
            raise ProviderError("unavailable", retryable=True, provider_message="unreadable token answer") from None
        raise refused_login(answer)


def refused_login(answer: object = None) -> ProviderError:
    """Our own login failed; its 401 or 400 is not the caller's and is not passed on."""
    reason = answer.get("error") if isinstance(answer, dict) else None
    return ProviderError(
        "unavailable",
        retryable=False,
        provider_reason=reason if isinstance(reason, str) else None,
        provider_message="The provider refused the service's own login",
    )
