"""Access tokens for the provider: fetched once for all waiting calls, and again before they expire."""

import asyncio

import httpx

from profilesvc.domain.world import Clock
from profilesvc.provider.answers import json_object, read_answer, read_response
from profilesvc.provider.port import Document, ProviderError
from profilesvc.settings import ProviderSettings

_EARLY_MS = 60_000


class TokenSource:
    """Exchanges the refresh token of the connected login. Tokens are never logged or shown."""

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
        """Return a token that is valid for another minute and is not the one that the provider just rejected."""
        async with self._lock:
            if self._token == refused or self._clock.now() >= self._expires - _EARLY_MS:
                await self._refresh()
            return self._token

    async def _refresh(self) -> None:
        asked = self._clock.now()
        async with self._client.stream("POST", self._url, data=self._form, follow_redirects=False) as response:
            answer = await read_response(response, self._clock)
        if 400 <= answer.status < 500 and answer.status != 429:
            raise refused_login(json_object(answer.body))
        grant = read_answer(answer)
        token, seconds = grant.get("access_token"), grant.get("expires_in")
        if not isinstance(token, str) or not isinstance(seconds, int):
            raise ProviderError("unavailable", retryable=True, provider_message="unreadable token answer")
        self._token, self._expires = token, asked + seconds * 1000


def refused_login(answer: Document | None = None) -> ProviderError:
    """The error of our own login. Its 401 or 400 is not passed on, because it does not concern the caller."""
    reason = (answer or {}).get("error")
    return ProviderError(
        "unavailable",
        retryable=False,
        provider_reason=reason if isinstance(reason, str) else None,
        provider_message="The provider refused the service's own login",
        reached=False,
    )
