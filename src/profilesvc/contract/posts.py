"""Local posts on the wire (API document, Posts); a post is the provider's LocalPost, one to one (D-74)."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, LocationName, PageNumber, Query
from profilesvc.contract.provider.format import String
from profilesvc.contract.provider.post import LocalPost

MAX_PAGE_SIZE = 100


class PostTarget(Query):
    """The location whose posts are meant."""

    locationId: LocationName


class PostListQuery(PostTarget):
    """Which page of the posts, newest first (D-77)."""

    pageSize: Annotated[PageNumber, Field(description="At most 100; a larger value is clamped.")] = 50
    pageToken: Annotated[
        str | None, Field(max_length=200, description="nextPageToken of the page before; empty means the first page.")
    ] = None


class Post(LocalPost):
    """A local post as the provider has it; what it leaves out is left out here."""

    name: String = Field(examples=["locations/111/localPosts/11101"])


class PostList(Data):
    """One page of a location's posts, newest first."""

    localPosts: list[Post]
    nextPageToken: str = Field(description="Empty on the last page.")


class PostDeleted(Data):
    """The post is gone."""

    deleted: Literal[True] = True
