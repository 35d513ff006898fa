"""The provider's Review (My Business v4), field by field, with the business's reply."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from profilesvc.contract.common import Int32, Text
from profilesvc.contract.provider.format import OUTPUT_ONLY, Message, String, Timestamp, Uri

MAX_REPLY_BYTES = 4096
StarRating = Literal["STAR_RATING_UNSPECIFIED", "ONE", "TWO", "THREE", "FOUR", "FIVE"]


def _reply_size(value: str) -> str:
    """Reject a reply of more than 4096 bytes, because the provider counts bytes and not characters."""
    if len(value.encode()) > MAX_REPLY_BYTES:
        raise PydanticCustomError("reply_size", "must be at most 4096 bytes in UTF-8")
    return value


ReplyText = Annotated[Text, AfterValidator(_reply_size)]


class Reviewer(Message):
    """The author of a review; without name and photo if anonymous."""

    displayName: String | None = None
    profilePhotoUrl: Uri | None = None
    isAnonymous: bool | None = None


class ReviewReply(Message):
    """The reply; public only if APPROVED. `policyViolation` is an open enum, present if REJECTED."""

    comment: ReplyText | None = None
    updateTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    reviewReplyState: Annotated[
        Literal["REVIEW_REPLY_STATE_UNSPECIFIED", "PENDING", "REJECTED", "APPROVED"] | None, OUTPUT_ONLY
    ] = None
    policyViolation: Annotated[String | None, OUTPUT_ONLY] = None


class ReviewMediaItem(Message):
    """A photo or video of a review."""

    thumbnailUrl: Annotated[Uri | None, OUTPUT_ONLY] = None
    thumbnailLabel: Annotated[String | None, OUTPUT_ONLY] = None
    videoUrl: Annotated[Uri | None, OUTPUT_ONLY] = None


class Review(Message):
    """A review, `accounts/<a>/locations/<l>/reviews/<r>`; only a rating if `comment` is absent."""

    name: Annotated[String | None, OUTPUT_ONLY] = None
    reviewId: Annotated[String | None, OUTPUT_ONLY] = None
    reviewer: Annotated[Reviewer | None, OUTPUT_ONLY] = None
    starRating: Annotated[StarRating | None, OUTPUT_ONLY] = None
    comment: Annotated[String | None, OUTPUT_ONLY] = None
    createTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    updateTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    reviewReply: Annotated[ReviewReply | None, OUTPUT_ONLY] = None
    reviewMediaItems: Annotated[list[ReviewMediaItem] | None, OUTPUT_ONLY] = None
    reviewReplyUrl: Annotated[Uri | None, OUTPUT_ONLY] = None


class BatchGetReviewsRequest(Message):
    """Reviews of several locations of one account."""

    locationNames: Annotated[list[String], Field(max_length=50)] | None = None
    pageSize: Int32 | None = None
    pageToken: String | None = None
    orderBy: String | None = None
    ignoreRatingOnlyReviews: bool | None = None
