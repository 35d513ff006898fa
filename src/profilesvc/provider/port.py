"""What the service needs from the provider, in domain words; nothing here knows HTTP.

Documents are the provider's own JSON, one to one. Location names are `locations/<id>`; accounts are
`accounts/<id>` and are passed wherever the provider's v4 paths need them.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Document = dict[str, Any]
Reason = Literal["rejected", "unavailable", "timeout", "rate_limited"]


class ProviderError(Exception):
    """The only exception that leaves the provider floor.

    `reason` and `retryable` go to the caller (D-01); `http_status`, `provider_status`, `provider_reason` and
    `provider_message` are the provider's own words where it said any. `not_found` tells a 404 for a resource.
    `retry_after` are the seconds to wait before the next try, where they are known. `reached` is False when the
    provider surely never saw the request, so that it can have had no effect.
    """

    def __init__(  # noqa: PLR0913 - each is a fact about the failure, and most are left out
        self,
        reason: Reason,
        *,
        retryable: bool,
        http_status: int | None = None,
        provider_status: str | None = None,
        provider_reason: str | None = None,
        provider_message: str | None = None,
        fields: tuple[str, ...] = (),
        retry_after: float | None = None,
        reached: bool = True,
    ) -> None:
        super().__init__(provider_message or reason)
        self.reason: Reason = reason
        self.retryable = retryable
        self.http_status = http_status
        self.provider_status = provider_status
        self.provider_reason = provider_reason
        self.provider_message = provider_message
        self.fields = fields
        self.retry_after = retry_after
        self.reached = reached

    @property
    def effect_unknown(self) -> bool:
        """The provider may have done it: the request went out and no refusal came back."""
        return self.reached and (self.http_status is None or self.http_status < 300)

    @property
    def not_found(self) -> bool:
        """The provider has no such resource, or hides it."""
        return self.http_status == 404 and self.provider_status == "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Verification:
    """The two answers that D-73 derives from: VoiceOfMerchantState and the verifications, oldest first."""

    voice_of_merchant: Document
    verifications: list[Document] = field(default_factory=list)


class Provider(Protocol):
    """The provider as the services see it. Every method may raise ProviderError and nothing else."""

    async def accounts(self) -> list[Document]:
        """All accounts of the connected login."""
        ...

    async def locations(self, account: str) -> list[Document]:
        """All locations of an account, whole, every page."""
        ...

    async def location(self, name: str) -> Document:
        """One location, all 20 members that it has."""
        ...

    async def patch_location(self, name: str, body: Document, update_mask: list[str]) -> Document:
        """Change the members in the mask; answers the location as the provider returns it."""
        ...

    async def verification(self, name: str) -> Verification:
        """VoiceOfMerchantState and the verifications of a location."""
        ...

    async def posts(self, account: str, location: str) -> list[Document]:
        """All posts of a location, every page, names as the provider writes them."""
        ...

    async def create_post(self, account: str, location: str, body: Document) -> Document:
        """Create a post; never repeated blindly."""
        ...

    async def patch_post(
        self, account: str, location: str, post_id: str, body: Document, update_mask: list[str]
    ) -> Document:
        """Change the members in the mask; answers the whole post."""
        ...

    async def delete_post(self, account: str, location: str, post_id: str) -> None:
        """Delete a post; ProviderError.not_found when it is gone."""
        ...

    async def reviews(
        self, account: str, location: str, *, page_size: int = 50, page_token: str = "", order_by: str = ""
    ) -> Document:
        """One page of at most 50: `{reviews, averageRating, totalReviewCount, nextPageToken}`, absent where empty.

        `order_by` is `rating`, `rating desc` or `updateTime desc`, which is also the default.
        """
        ...

    async def review(self, account: str, location: str, review_id: str) -> Document:
        """One review, with its reply where it has one."""
        ...

    async def reply(self, account: str, location: str, review_id: str, comment: str) -> Document:
        """Set or replace the reply; answers the ReviewReply, which the provider still reviews."""
        ...

    async def delete_reply(self, account: str, location: str, review_id: str) -> None:
        """Delete the reply; ProviderError.not_found when there is none."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
