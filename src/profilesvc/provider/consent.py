"""The provider's OAuth host: the consent page, the exchange of a code, and the end of a consent, by Authlib."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.provider.port import Granted, ProviderError
from profilesvc.provider.responses import json_object
from profilesvc.settings import ProviderSettings

SCOPE = "https://www.googleapis.com/auth/business.manage"
_SCOPES = f"openid email {SCOPE}"
AUTHORIZE_PATH = "/o/oauth2/v2/auth"
_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of the OAuth host; `authorize` is for browsers, the others are for the service."""

    authorize: str
    token: str
    revoke: str
    userinfo: str

    @classmethod
    def of(cls, settings: ProviderSettings, origin: str) -> "Endpoints":
        """Return the configured addresses, or those of one origin, such as the emulator's."""
        base = origin.rstrip("/")
        return cls(
            settings.authorize_url or f"{base}{AUTHORIZE_PATH}",
            settings.token_url or f"{base}/token",
            settings.revoke_url or f"{base}/revoke",
            settings.userinfo_url or f"{base}/v1/userinfo",
        )


class Consent:
    """The client of the OAuth host; the embedded emulator has the transport of this process.

    Authlib writes and signs the requests. It is imported in the methods, because the import is slow and only consents
    need it.
    """

    def __init__(
        self, settings: ProviderSettings, endpoints: Endpoints, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._settings, self._endpoints = settings, endpoints
        self._transport = transport

    @property
    def is_configured(self) -> bool:
        """Return whether there is a client and the address of its consent page.

        A token endpoint elsewhere than the APIs means that the consent page is not at their origin either.
        """
        settings = self._settings
        return bool(settings.client_id and (settings.authorize_url or not settings.token_url))

    def url(self, state: str, verifier: str, redirect_uri: str) -> str:
        """Return the address of the consent page for a browser."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        url = prepare_grant_uri(
            self._endpoints.authorize,
            self._settings.client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=_SCOPES,
            state=state,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            access_type="offline",
            prompt="consent",  # without it the provider returns a refresh token only the first time
        )
        return str(url)

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> Granted:
        """Exchange a code for the tokens of a login, and read whose login it is.

        Raises:
            ProviderError: `rejected` if the code is not valid, `unavailable` if the host does not respond.
        """
        return await asyncio.create_task(
            self._redeem(code, verifier, redirect_uri)
        )  # see `dashboard/session/signing_in.py`

    async def _redeem(self, code: str, verifier: str, redirect_uri: str) -> Granted:
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        form = prepare_token_request("authorization_code", code=code, redirect_uri=redirect_uri, code_verifier=verifier)
        async with self._open() as http:
            response = await self._post(http, self._endpoints.token, form)
            if 400 <= response.status_code < 500 and response.status_code != 429:
                reason = (json_object(response.content) or {}).get("error")
                raise ProviderError("rejected", retryable=False, provider_reason=str(reason))
            tokens = _document(response)
            bearer = {"Authorization": f"Bearer {tokens.get('access_token')}"}
            return _granted(tokens, _document(await http.get(self._endpoints.userinfo, headers=bearer)))

    async def revoke(self, refresh_token: str) -> None:
        """End the consent that a refresh token is from. One that has already ended is not an error.

        Raises:
            ProviderError: The host does not respond.
        """
        await asyncio.create_task(self._revoke(refresh_token))

    async def _revoke(self, refresh_token: str) -> None:
        from authlib.oauth2.rfc7009 import prepare_revoke_token_request

        form, _ = prepare_revoke_token_request(refresh_token, "refresh_token")
        async with self._open() as http:
            response = await self._post(http, self._endpoints.revoke, form)
        if response.status_code not in (200, 400):  # 400: the token has already ended
            raise _unavailable(response.status_code)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[httpx.AsyncClient]:
        try:
            async with httpx.AsyncClient(transport=self._transport, timeout=_SECONDS) as http:
                yield http
        except httpx.HTTPError:
            raise _unavailable() from None

    async def _post(self, http: httpx.AsyncClient, url: str, form: str) -> httpx.Response:
        """Send a form as the registered client."""
        from authlib.oauth2.auth import ClientAuth

        secret = self._settings.client_secret.get_secret_value()
        client = ClientAuth(self._settings.client_id, secret, "client_secret_post")
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        url, headers, form = client.prepare("POST", url, headers, form)
        return await http.post(url, headers=headers, content=form)


def _unavailable(status: int | None = None) -> ProviderError:
    return ProviderError("unavailable", retryable=True, http_status=status, reached=status is not None)


def _document(response: httpx.Response) -> JsonObject:
    """Return the JSON object of a 200."""
    document = json_object(response.content) if response.status_code == 200 else None
    if document is None:
        raise _unavailable(response.status_code)
    return document


def _granted(tokens: JsonObject, about: JsonObject) -> Granted:
    subject, scopes = about.get("sub"), str(tokens.get("scope", ""))
    email = about.get("email") if about.get("email_verified") in (True, "true") else ""  # else it can be anyone's
    if not isinstance(subject, str) or not subject:
        raise ProviderError("unavailable", retryable=True, provider_message="invalid userinfo response")
    refresh_token = tokens.get("refresh_token")
    return Granted(
        subject[:255],
        email[:320] if isinstance(email, str) else "",
        scopes,
        has_access=SCOPE in scopes.split(),
        refresh_token=refresh_token if isinstance(refresh_token, str) else "",
    )
