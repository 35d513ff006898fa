"""The operations of the provider that the service needs, without HTTP.

Documents are the provider's JSON, unchanged. Location names are `locations/<id>`. Accounts are `accounts/<id>`; the
operations whose v4 paths contain an account have it as a parameter.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple, Protocol

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import SECOND

Reason = Literal["rejected", "unavailable", "timeout", "rate_limited", "quota", "reauth_required"]
_RETIRED = 501  # the API does not exist any more


@dataclass(eq=False)
class ProviderError(Exception):
    """The only exception of the provider package.

    Callers see `reason` and `retryable`. `http_status`, `provider_code`, `provider_reason` and `provider_message` are
    from the provider's response, if there was one. `not_found` means a 404 for a resource. `retry_after` is the number
    of seconds to wait, if known. `reached` is False if the provider cannot have received the request, and `is_read` is
    True if the request only read; then it had no effect. `reauth_required` means that an owner's login has ended, and
    `link` is where the owner can renew it.
    """

    reason: Reason
    _: KW_ONLY
    retryable: bool
    http_status: int | None = None
    provider_code: str | None = None
    provider_reason: str | None = None
    provider_message: str | None = None
    fields: tuple[str, ...] = ()
    retry_after: float | None = None
    reached: bool = True
    is_read: bool = False
    link: str | None = None

    def __str__(self) -> str:
        return self.provider_message or self.reason

    @property
    def effect_unknown(self) -> bool:
        """Return whether the request may have had its effect: it was sent, and no rejection was received.

        A gateway responds with 5xx also if it has lost the response, so that is not a rejection; 501 is.
        """
        status = self.http_status
        return (
            self.reached
            and not self.is_read
            and (status is None or status < 300 or (status >= 500 and status != _RETIRED))
        )

    @property
    def has_failed(self) -> bool:
        """Return whether nothing was sent, or the provider has responded with an error. Then no post is counted."""
        return not self.reached or self.is_read or (self.http_status or 0) >= 300

    @property
    def not_found(self) -> bool:
        """Return whether the provider has no such resource, or hides it."""
        return self.http_status == 404 and self.provider_code == "NOT_FOUND"


def not_sent(reason: Reason, message: str, wait: int) -> ProviderError:
    """Return the error of a request that was not sent. It may be sent after `wait` milliseconds."""
    return ProviderError(reason, retryable=True, provider_message=message, retry_after=wait / SECOND, reached=False)


@dataclass(frozen=True, slots=True)
class Verification:
    """The resources that decide the verification state: VoiceOfMerchantState and the verifications, oldest first."""

    voice_of_merchant: JsonObject
    verifications: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Granted:
    """The consent of a login. `has_access` is False if it left out the scope of the APIs."""

    subject: str
    email: str
    scopes: str
    has_access: bool
    refresh_token: str = field(repr=False)


class QuotaStanding(NamedTuple):
    """The quota of an API: requests per minute by the settings, 0 for no limit, and those of the last minute."""

    api: str
    limit: int
    used: int


class Login(Protocol):
    """A login of an owner, which replaces the installation's own login."""

    @property
    def owner_id(self) -> int:
        """Whose login it is."""

    @property
    def refresh_token(self) -> str:
        """The refresh token, which is never logged or shown."""

    def renewing(self) -> AbstractAsyncContextManager[None]:
        """Hold the only right of all processes to use the refresh token.

        Raises:
            ProviderError: The login has ended, or was connected again.
        """

    async def renewed(self) -> None:
        """Note that the provider has issued an access token."""

    async def ended(self, reason: str) -> ProviderError:
        """Note that the provider no longer accepts the refresh token, and return the error for the caller."""


class ConsentHost(Protocol):
    """The provider's OAuth host. Every method raises only ProviderError."""

    @property
    def is_configured(self) -> bool:
        """Return whether there is a client with which logins can consent."""

    def url(self, state: str, verifier: str, redirect_uri: str) -> str:
        """Return the address of the consent page for a browser."""

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> Granted:
        """Exchange a code for the tokens of a login, and read whose login it is."""

    async def revoke(self, refresh_token: str) -> None:
        """End the consent that a refresh token is from."""


class Provider(Protocol):
    """The interface that the services use. Every method raises only ProviderError."""

    @property
    def consent(self) -> ConsentHost:
        """The OAuth host."""

    def signed_in(self, login: Login) -> "Provider":
        """Return the provider as a login of an owner sees it, with tokens and circuit breakers of its own."""

    def for_owner(self, owner_id: int) -> "Provider":
        """Return the provider with the same login; its requests count for an owner of the service."""

    async def quota(self) -> list[QuotaStanding]:
        """Return the quota of each API."""

    async def accounts(self) -> list[JsonObject]:
        """Return all accounts of the connected login."""

    async def locations(self, account: str) -> list[JsonObject]:
        """Return all locations of an account, from all pages."""

    async def location(self, name: str) -> JsonObject:
        """Return one location with all its fields."""

    async def google_updated(self, name: str) -> JsonObject:
        """Return one location as consumers see it: `{location, diffMask, pendingMask}`. Empty masks are absent."""

    async def categories(self, region: str, language: str, start: str) -> list[JsonObject]:
        """Return the first 100 categories of a country whose names start with a text."""

    async def categories_of(self, names: list[str], region: str, language: str) -> list[JsonObject]:
        """Return categories by name, with the kinds of hours and services that they offer."""

    async def patch_location(self, name: str, body: JsonObject, update_mask: list[str]) -> JsonObject:
        """Change the fields in the mask. Return the location from the provider's response."""

    async def validate_location(self, name: str, body: JsonObject, update_mask: list[str]) -> None:
        """Ask whether `patch_location` would be accepted, and change nothing. It does not count as an edit.

        Raises:
            ProviderError: As of `patch_location`.
        """

    async def verification(self, name: str) -> Verification:
        """Return VoiceOfMerchantState and the verifications of a location."""

    async def posts(self, account: str, location: str) -> list[JsonObject]:
        """Return all posts of a location, from all pages, with the provider's names."""

    async def create_post(self, account: str, location: str, body: JsonObject) -> JsonObject:
        """Create a post. A retry is made only if the provider did not carry the request out."""

    async def patch_post(
        self, account: str, location: str, post_id: str, body: JsonObject, update_mask: list[str]
    ) -> JsonObject:
        """Change the fields in the mask. Return the whole post."""

    async def delete_post(self, account: str, location: str, post_id: str) -> None:
        """Delete a post.

        Raises:
            ProviderError: `not_found` if it does not exist.
        """

    async def reviews(
        self, account: str, location: str, *, page_size: int = 50, page_token: str = "", order_by: str = ""
    ) -> JsonObject:
        """Return a page of at most 50: `{reviews, averageRating, totalReviewCount, nextPageToken}`.

        Empty fields are absent. `order_by` is `rating`, `rating desc` or `updateTime desc`, which is the default.
        """

    async def review(self, account: str, location: str, review_id: str) -> JsonObject:
        """Return one review with its reply, if it has one."""

    async def reply(self, account: str, location: str, review_id: str, comment: str) -> JsonObject:
        """Set or replace the reply. Return the ReviewReply, which the provider reviews before it is public."""

    async def delete_reply(self, account: str, location: str, review_id: str) -> None:
        """Delete the reply.

        Raises:
            ProviderError: `not_found` if there is none.
        """

    async def notification_setting(self, account: str) -> JsonObject:
        """Return which changes of an account are published, and where: `{name, notificationTypes, pubsubTopic}`."""

    async def set_notifications(self, account: str, topic: str, types: list[str]) -> JsonObject:
        """Publish changes of an account to a Pub/Sub topic. Return the setting."""

    async def aclose(self) -> None:
        """Release connections."""
