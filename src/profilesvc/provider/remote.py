"""The one adapter to the provider: httpx towards the real one or the emulator, only the transport differs."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx

from profilesvc.contract.provider_location import Location
from profilesvc.domain.world import Clock, Entropy
from profilesvc.provider.answers import read_answer, read_body
from profilesvc.provider.oauth import TokenSource, refused_login
from profilesvc.provider.port import Document, ProviderError, Verification
from profilesvc.settings import ProviderSettings

READ_MASK = ",".join(Location.model_fields)
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The base URL of each API, without a path, and the whole token URL."""

    information: str
    verifications: str
    accounts: str
    posts: str
    token: str

    @classmethod
    def of(cls, settings: ProviderSettings, origin: str) -> Self:
        """Each API's own URL where it is set, else the one origin."""
        return cls(
            information=(settings.information_url or origin).rstrip("/"),
            verifications=(settings.verifications_url or origin).rstrip("/"),
            accounts=(settings.accounts_url or origin).rstrip("/"),
            posts=(settings.posts_url or origin).rstrip("/"),
            token=settings.token_url or f"{origin.rstrip('/')}/token",
        )


class RemoteProvider:
    """`Provider` over HTTP; raises ProviderError and nothing else. Closes the client that it is given."""

    def __init__(
        self, client: httpx.AsyncClient, settings: ProviderSettings, *, origin: str, clock: Clock, entropy: Entropy
    ) -> None:
        self._client, self._entropy = client, entropy
        self._urls = Endpoints.of(settings, origin)
        self._tokens = TokenSource(client, settings, url=self._urls.token, clock=clock)
        self._budget = settings.timeout_seconds

    async def accounts(self) -> list[Document]:
        """All accounts of the connected login."""
        return await self._pages(f"{self._urls.accounts}/v1/accounts", "accounts", {"pageSize": "20"})

    async def locations(self, account: str) -> list[Document]:
        """All locations of an account, whole."""
        url = f"{self._urls.information}/v1/{quote(account)}/locations"
        return await self._pages(url, "locations", {"readMask": READ_MASK, "pageSize": "100"})

    async def location(self, name: str) -> Document:
        """One location as the merchant last set it."""
        return await self._call("GET", f"{self._urls.information}/v1/{quote(name)}", {"readMask": READ_MASK})

    async def patch_location(self, name: str, body: Document, update_mask: list[str]) -> Document:
        """Change the members in the mask."""
        url = f"{self._urls.information}/v1/{quote(name)}"
        return await self._call("PATCH", url, {"updateMask": ",".join(update_mask)}, body)

    async def verification(self, name: str) -> Verification:
        """VoiceOfMerchantState and the verifications, oldest first."""
        base = f"{self._urls.verifications}/v1/{quote(name)}"
        state = await self._call("GET", f"{base}/VoiceOfMerchantState")
        return Verification(state, await self._pages(f"{base}/verifications", "verifications", {"pageSize": "100"}))

    async def posts(self, account: str, location: str) -> list[Document]:
        """All posts of a location."""
        return await self._pages(self._posts_url(account, location), "localPosts", {"pageSize": "100"})

    async def create_post(self, account: str, location: str, body: Document) -> Document:
        """Create a post; the provider knows no idempotency key, so it is sent once."""
        return await self._call("POST", self._posts_url(account, location), None, body)

    async def patch_post(
        self, account: str, location: str, post_id: str, body: Document, update_mask: list[str]
    ) -> Document:
        """Change the members in the mask."""
        url = self._posts_url(account, location, post_id)
        return await self._call("PATCH", url, {"updateMask": ",".join(update_mask)}, body)

    async def delete_post(self, account: str, location: str, post_id: str) -> None:
        """Delete a post."""
        await self._call("DELETE", self._posts_url(account, location, post_id))

    async def aclose(self) -> None:
        """Release connections."""
        await self._client.aclose()

    def _posts_url(self, account: str, location: str, post_id: str | None = None) -> str:
        parent = f"{self._urls.posts}/v4/{quote(account)}/{quote(location)}/localPosts"
        return parent if post_id is None else f"{parent}/{quote(post_id, safe='')}"

    async def _pages(self, url: str, member: str, params: dict[str, str]) -> list[Document]:
        """Every item of a list. A page may be empty while a token is still there; a token that repeats ends it."""
        items: list[Document] = []
        seen: set[str] = set()
        while True:
            answer = await self._call("GET", url, params)
            items += _items(answer.get(member, []))
            token = answer.get("nextPageToken")
            if not token:
                return items
            if not isinstance(token, str) or token in seen:
                raise ProviderError("unavailable", retryable=True, provider_message="paging does not end")
            seen.add(token)
            params = {**params, "pageToken": token}

    async def _call(
        self, method: str, url: str, params: dict[str, str] | None = None, body: Document | None = None
    ) -> Document:
        """One operation within the time budget, retries included; everything but POST may be repeated."""
        request: dict[str, Any] = {"params": params, "json": body}
        try:
            async with asyncio.timeout(self._budget):
                return await self._repeated(1 if method == "POST" else _ATTEMPTS, method, url, request)
        except TimeoutError:
            raise ProviderError("timeout", retryable=True, provider_message="no answer in time") from None

    async def _repeated(self, attempts: int, method: str, url: str, request: dict[str, Any]) -> Document:
        while True:
            try:
                return await self._authorized(method, url, request)
            except ProviderError as error:
                attempts -= 1
                if not attempts or not error.retryable or error.reason == "timeout":
                    raise
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        """Seconds up to the maximum, by chance, so that many waiters do not return together."""
        return _PAUSE_SECONDS * self._entropy.token_bytes(1)[0] / 255

    async def _authorized(self, method: str, url: str, request: dict[str, Any]) -> Document:
        """Send with a token; a refused one is replaced once."""
        try:
            token = await self._tokens.get()
            status, answer = await self._send(method, url, request, token)
            if status == 401:
                token = await self._tokens.get(refused=token)
                status, answer = await self._send(method, url, request, token)
        except ProviderError:
            raise
        except httpx.TimeoutException:
            raise ProviderError("timeout", retryable=True, provider_message="no answer in time") from None
        except Exception as error:  # whatever a transport raises: sockets, TLS, or the emulator's own crash
            message = f"no connection ({type(error).__name__})"
            raise ProviderError("unavailable", retryable=True, provider_message=message) from None
        if status == 401:
            raise refused_login()
        return read_answer(status, answer)

    async def _send(self, method: str, url: str, request: dict[str, Any], token: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}"}
        async with self._client.stream(method, url, headers=headers, **request) as response:
            return response.status_code, await read_body(response)


def _items(value: object) -> list[Document]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ProviderError("unavailable", retryable=True, provider_message="unreadable answer")
    return value
