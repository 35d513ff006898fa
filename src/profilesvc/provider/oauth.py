"""Access tokens for the provider: fetched once for all waiting calls, and renewed before they expire."""

import asyncio
from contextlib import nullcontext

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import Clock
from profilesvc.provider.port import Login, ProviderError
from profilesvc.provider.responses import json_object, read_document, read_response
from profilesvc.settings import ProviderSettings

_EARLY_MS = 60_000
_ENDED = "invalid_grant"


class TokenSource:
    """The source of access tokens, from the refresh token of a login. Tokens are never logged or shown."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        settings: ProviderSettings,
        *,
        url: str,
        clock: Clock,
        login: Login | None = None,
    ) -> None:
        self._client, self._url = client, url
        self._clock, self._login = clock, login
        self._form = {
            "grant_type": "refresh_token",
            "client_id": settings.client_id,
            "client_secret": settings.client_secret.get_secret_value(),
            "refresh_token": settings.refresh_token.get_secret_value() if login is None else login.refresh_token,
        }
        self._lock = asyncio.Lock()
        self._token, self._expires = "", 0
        self._has_ended = False

    async def get(self, rejected: str = "") -> str:
        """Return a token that is valid for another minute and is not the one that the provider just rejected."""
        async with self._lock:
            if self._has_ended and self._login is not None:  # no further call, also for those that waited
                raise await self._login.ended(_ENDED)
            if self._token == rejected or self._clock.now() >= self._expires - _EARLY_MS:
                async with nullcontext() if self._login is None else self._login.renewing():
                    await self._refresh()
            return self._token

    async def _refresh(self) -> None:
        requested_at = self._clock.now()
        async with self._client.stream("POST", self._url, data=self._form, follow_redirects=False) as response:
            received = await read_response(response, self._clock)
        if 400 <= received.status < 500 and received.status != 429:
            document = json_object(received.body)
            if self._login is not None and (document or {}).get("error") == _ENDED:
                self._has_ended = True
                raise await self._login.ended(_ENDED)
            raise login_error(document)
        grant = read_document(received)
        token, seconds = grant.get("access_token"), grant.get("expires_in")
        if not isinstance(token, str) or not isinstance(seconds, int):
            raise ProviderError("unavailable", retryable=True, provider_message="invalid token response")
        self._token, self._expires = token, requested_at + seconds * 1000
        if self._login is not None:
            await self._login.renewed()


def login_error(document: JsonObject | None = None) -> ProviderError:
    """Return the error of the service's own login. Its status is not passed on, because it is not the caller's."""
    reason = (document or {}).get("error")
    return ProviderError(
        "unavailable",
        retryable=False,
        provider_reason=reason if isinstance(reason, str) else None,
        provider_message="The provider rejected the service's own login",
        reached=False,
    )
