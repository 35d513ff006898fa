"""Local posts on the wire. A post is the provider's LocalPost, field by field (docs/api-contract.md#posts)."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, LocationQuery, PageLimit
from profilesvc.contract.provider.format import String
from profilesvc.contract.provider.post import LocalPost


class PostListQuery(LocationQuery):
    """The page of the posts, newest first."""

    pageSize: PageLimit = 50
    pageToken: Annotated[
        str | None, Field(max_length=200, description="`nextPageToken` of the previous page; empty for the first page.")
    ] = None


class Post(LocalPost):
    """A local post in the provider's format. Fields that the provider leaves out are absent."""

    name: String = Field(examples=["locations/111/localPosts/11101"])


class PostList(Data):
    """One page of a location's posts, newest first."""

    localPosts: list[Post]
    nextPageToken: str = Field(description="Empty on the last page.")


class PostDeleted(Data):
    """The post is deleted."""

    deleted: Literal[True] = True
