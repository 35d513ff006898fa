"""Sign-in at the identity provider with OpenID Connect: authorization code with PKCE, state and nonce."""

import asyncio
import hmac
import json
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import cast
from urllib.parse import quote, urlsplit

import httpx
from quart import current_app

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, SERVICE_UNAVAILABLE
from profilesvc.contract.json import JsonObject
from profilesvc.contract.tokens import TokenExchangeGrant, UserToken
from profilesvc.dashboard.pages import PATH
from profilesvc.domain.errors import ServiceError
from profilesvc.language.texts import language
from profilesvc.services import identity
from profilesvc.services.context import Services
from profilesvc.tokens.seals import Seal
from profilesvc.tokens.signer import random_id

_SECONDS = 5.0
_LARGEST = 256 * 1024
_LONGEST_ERROR = 100
_SECRETS = ("state", "nonce", "verifier")
log = logging.getLogger("profilesvc")


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in that is not finished. It is stored in a cookie, so that only this browser can finish it."""

    state: str
    nonce: str
    verifier: str
    next_path: str

    def sealed(self, services: Services, until: int) -> str:
        """Return the value of the cookie, signed, and invalid after `until` (milliseconds)."""
        return _seal(services).seal(json.dumps([self.state, self.nonce, self.verifier, self.next_path, until]))

    @classmethod
    def opened(cls, services: Services, value: str) -> "PendingSignIn | None":
        """Return the sign-in in a cookie. None if the service did not make the cookie, or if it has expired."""
        content = _seal(services).unseal(value)
        if content is None:
            return None
        *parts, until = json.loads(content)
        return cls(*parts) if services.clock.now() < until else None


def _seal(services: Services) -> Seal:
    return Seal(services.signer.keyring, "sign-in cookie", services.clock.now())


class Provider:
    """The client of the configured identity provider, or in development of the bundled issuer."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._metadata: JsonObject | None = None

    @cached_property
    def redirect_uri(self) -> str:
        """The URL to which the provider redirects the browser. It must be registered there."""
        return f"{self.services.settings.base_url}{PATH}/callback"

    async def begin(self, next_path: str, *, again: bool = False) -> tuple[str, PendingSignIn]:
        """Return the provider's URL for the browser, and the pending to store until the browser is back.

        With `again` the provider asks for the password even if it still has a session.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if the provider cannot be reached.
        """
        # Imported here and below because the import is slow and only sign-ins need it. The library writes and signs the
        # requests; its own HTTP clients are not used, because they are for httpx2.
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        metadata = await self._configuration()
        secrets = {name: random_id(self.services.entropy) + random_id(self.services.entropy) for name in _SECRETS}
        pending = PendingSignIn(**secrets, next_path=next_path)
        url = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self._client_id,
            "code",
            redirect_uri=self.redirect_uri,
            scope="openid email profile",
            state=pending.state,
            nonce=pending.nonce,
            code_challenge=create_s256_code_challenge(pending.verifier),
            code_challenge_method="S256",
            ui_locales=language(),
            **({"prompt": "login"} if again else {}),
        )
        return str(url), pending

    async def finish(self, pending: PendingSignIn, response: dict[str, str], user_agent: str) -> UserToken:
        """Return the user token of a sign-in that came back, in a browser with this User-Agent.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if the provider cannot be reached, and the errors of `exchange`.
        """
        issuer = self._issuer
        if not hmac.compare_digest(response.get("state", "").encode(), pending.state.encode()):
            raise ServiceError(AUTH_INVALID_TOKEN, "This sign-in was not started in this browser. Start again.")
        if response.get("iss", issuer) != issuer:  # RFC 9207: a response of another provider
            raise ServiceError(AUTH_INVALID_TOKEN, "The response is not from our identity provider.")
        if "code" not in response:
            raise ServiceError(AUTH_INVALID_TOKEN, "The identity provider did not sign you in.")
        metadata = await self._configuration()
        # In a separate task, so that an issuer in this process does not change the context of this request.
        id_token = await asyncio.create_task(self._redeem(metadata, response["code"], pending.verifier))
        grant = TokenExchangeGrant(
            grant_type="urn:ietf:params:oauth:grant-type:token-exchange",
            subject_token=id_token,
            subject_token_type="urn:ietf:params:oauth:token-type:id_token",  # noqa: S106
            nonce=pending.nonce,
        )
        return await identity.exchange(self.services, grant, user_agent)

    async def _redeem(self, metadata: JsonObject, code: str, verifier: str) -> str:
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        form = prepare_token_request(
            "authorization_code", code=code, redirect_uri=self.redirect_uri, code_verifier=verifier
        )
        try:
            tokens = await self._post(metadata, form)
        except (httpx.HTTPError, ValueError) as error:
            raise _unreachable() from error
        if "error" in tokens:
            raise _rejected(str(tokens["error"])[:_LONGEST_ERROR])
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise ServiceError(AUTH_INVALID_TOKEN, "The identity provider did not return an ID token.")
        return id_token

    @property
    def _issuer(self) -> str:
        if self.services.identity is None:
            raise ServiceError(SERVICE_UNAVAILABLE, "No identity provider is configured, so users cannot sign in.")
        return self.services.identity.issuer

    @property
    def _transport(self) -> httpx.AsyncBaseTransport | None:
        """The network, or for the bundled issuer this process, because its public name may not resolve here."""
        if self.services.settings.identity.issuer:
            return None
        app = current_app._get_current_object()  # type: ignore[attr-defined]
        return httpx.ASGITransport(app=app)

    @property
    def _client_id(self) -> str:
        assert self.services.identity is not None, "`_configuration` has returned"
        return self.services.identity.client_id

    async def _post(self, metadata: JsonObject, form: str) -> JsonObject:
        """Send a form to the token endpoint as the registered client. Return the response, which can be an error.

        Raises:
            HTTPError: there was no response, or its status is 5xx.
            ValueError: the response is not a JSON object.
        """
        from authlib.oauth2.auth import ClientAuth

        secret = self.services.settings.identity.client_secret.get_secret_value()
        method = _method(metadata) if secret else "none"
        pair = [self._client_id, secret]
        if method == "client_secret_basic":  # which the library sends as they are (RFC 6749 §2.3.1)
            pair = [quote(part, safe="") for part in pair]
        client = ClientAuth(*pair, method)
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        url, headers, form = client.prepare("POST", metadata["token_endpoint"], headers, form)
        async with httpx.AsyncClient(transport=self._transport, timeout=_SECONDS) as http:
            response = await http.post(url, headers=headers, content=form)
        if response.is_server_error:
            response.raise_for_status()
        try:
            tokens = json.loads(response.content[:_LARGEST])
        except ValueError:
            tokens = None
        if isinstance(tokens, dict):
            return tokens
        if response.is_client_error:
            return {"error": f"HTTP {response.status_code}"}
        raise ValueError("response")

    async def _configuration(self) -> JsonObject:
        """Return the provider's configuration (OpenID Connect Discovery §4), read once."""
        if self._metadata is None:
            self._metadata = await asyncio.create_task(self._discover(self._issuer))
        return self._metadata

    async def _discover(self, issuer: str) -> JsonObject:
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            async with httpx.AsyncClient(transport=self._transport, timeout=_SECONDS) as client:
                response = (await client.get(url)).raise_for_status()
            metadata = json.loads(response.content[:_LARGEST])
            if metadata["issuer"] != issuer:
                raise ValueError("issuer")
            # Codes and secrets are sent over TLS. Development also allows plain HTTP.
            schemes = ("https",) if self.services.settings.production else ("https", "http")
            if any(
                urlsplit(metadata[name]).scheme not in schemes for name in ("authorization_endpoint", "token_endpoint")
            ):
                raise ValueError("address")
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreachable() from error
        return cast(JsonObject, metadata)


def _method(metadata: JsonObject) -> str:
    """Return how a client with a secret authenticates, by the provider's metadata (OpenID Connect Discovery §3)."""
    methods = metadata.get("token_endpoint_auth_methods_supported")
    is_basic = not isinstance(methods, list) or not methods or "client_secret_basic" in methods
    return "client_secret_basic" if is_basic else "client_secret_post"


def _rejected(code: str) -> ServiceError:
    """Return the error for a response of the token endpoint. Only a code that is not valid is worth another attempt."""
    log.warning("the identity provider rejected a code: %r", code)
    if code == "invalid_grant":
        return ServiceError(AUTH_INVALID_TOKEN, "The identity provider rejected the code. Start again.")
    message = "The identity provider does not accept this service. Ask the operator of this service."
    return ServiceError(SERVICE_UNAVAILABLE, message)


def _unreachable() -> ServiceError:
    return ServiceError(SERVICE_UNAVAILABLE, "The identity provider cannot be reached. Try again later.")
