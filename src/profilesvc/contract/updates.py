"""The provider's own changes of a profile on the wire, an addition of this service.

The names are the provider's. A mask is a string of paths separated by commas, in camelCase.
"""

from pydantic import ConfigDict, Field

from profilesvc.contract.common import Body, Data, UtcTime
from profilesvc.contract.json import JsonObject


class GoogleUpdated(Data):
    """A location as consumers see it. An empty mask has no paths."""

    location: JsonObject = Field(description="The profile that consumers see, in the provider's format.")
    diffMask: str = Field(
        description="The fields that consumers see differently from the owner's values.", examples=["title"]
    )
    pendingMask: str = Field(description="The fields whose edits by the owner the provider still reviews.")


class UpdateMask(Body):
    """The fields to accept or to reject. Other fields of the body are rejected."""

    model_config = ConfigDict(extra="forbid")

    updateMask: str = Field(
        min_length=1,
        max_length=1000,
        description="Fields of the location, separated by commas, which the provider has changed. `phoneNumbers`, "
        "`categories` and the other messages are sent whole; only fields of `profile` and `openInfo` can be named "
        "on their own.",
        examples=["title,phoneNumbers"],
    )


class UpdateSettled(Data):
    """The fields that were accepted or rejected, and the owner's profile at the provider afterwards."""

    syncId: str = Field(examples=["sync_01jg3k5m7n9p1r3t5v7x"])
    updateMask: str
    location: JsonObject = Field(description="The owner's values, in the provider's format.")
    timestamp: UtcTime
