"""Reviews on the wire, an addition of this service. A review is the provider's Review, field by field."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, Int32, LocationQuery, PageNumber, reduced_to
from profilesvc.contract.provider.format import Number, String
from profilesvc.contract.provider.review import ReplyText, Review, ReviewReply

MAX_PAGE_SIZE = 50
ReviewOrder = Literal["updateTime desc", "rating", "rating desc"]


class ReviewListQuery(LocationQuery):
    """The page of the reviews and their order."""

    pageSize: Annotated[
        PageNumber, reduced_to(MAX_PAGE_SIZE), Field(description="At most 50; a larger value is reduced to 50.")
    ] = MAX_PAGE_SIZE
    pageToken: Annotated[
        str | None,
        Field(max_length=4096, description="`nextPageToken` of the previous page; empty for the first page."),
    ] = None
    orderBy: Annotated[
        ReviewOrder, Field(description="Must be the same for all pages. Default: last changed first.")
    ] = "updateTime desc"


class ReviewDetail(Review):
    """A review in the provider's format. Fields that the provider leaves out are absent."""

    name: String = Field(examples=["locations/111/reviews/111002"])


class ReviewList(Data):
    """One page of a location's reviews. Average and count cover all reviews and are absent if there are none."""

    reviews: list[ReviewDetail]
    averageRating: Number | None = None
    totalReviewCount: Int32 | None = None
    nextPageToken: str = Field(description="Empty on the last page.")


class ReplyBody(ReviewReply):
    """The reply to set. A reply can be sent back as it was read."""

    comment: ReplyText = Field(
        examples=["Thank you for coming by."], json_schema_extra={"minLength": 1, "pattern": r"\S"}
    )


class ReplyDeleted(Data):
    """The reply is deleted."""

    deleted: Literal[True] = True
