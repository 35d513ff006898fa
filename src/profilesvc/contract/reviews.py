"""Reviews on the wire; a review is the provider's Review, one to one. Ours, in addition to the API document."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, LocationName, PageNumber, Query
from profilesvc.contract.provider.format import Int32, Number, String
from profilesvc.contract.provider.review import ReplyText, Review, ReviewReply

MAX_PAGE_SIZE = 50


class ReviewTarget(Query):
    """The location whose reviews are meant."""

    locationId: LocationName


class ReviewListQuery(ReviewTarget):
    """Which page of the reviews, and in which order."""

    pageSize: Annotated[PageNumber, Field(description="At most 50; a larger value is clamped.")] = MAX_PAGE_SIZE
    pageToken: Annotated[
        str | None, Field(max_length=4096, description="nextPageToken of the page before; empty means the first page.")
    ] = None
    orderBy: Annotated[
        Literal["updateTime desc", "rating", "rating desc"],
        Field(description="The same on every page. Last changed first by default."),
    ] = "updateTime desc"


class ReviewDetail(Review):
    """A review as the provider has it; what it leaves out is left out here."""

    name: String = Field(examples=["locations/111/reviews/111002"])


class ReviewList(Data):
    """One page of a location's reviews; the average and the count are of all of them, absent when there is none."""

    reviews: list[ReviewDetail]
    averageRating: Number | None = None
    totalReviewCount: Int32 | None = None
    nextPageToken: str = Field(description="Empty on the last page.")


class ReplyBody(ReviewReply):
    """The reply to set; it may be sent back as it was read."""

    comment: ReplyText = Field(
        examples=["Thank you for coming by."], json_schema_extra={"minLength": 1, "pattern": r"\S"}
    )


class ReplyDeleted(Data):
    """The reply is gone."""

    deleted: Literal[True] = True
