"""Locations on the wire (docs/api-contract.md#locations)."""

from typing import Literal

from pydantic import ConfigDict, Field

from profilesvc.contract.common import Body, Data, PageLimit, PageNumber, Query
from profilesvc.contract.provider.location import BusinessHours, PhoneNumbers, PostalAddress

LocationKind = Literal["all", "unassigned"]


class LocationListQuery(Query):
    """The kind of locations and the page."""

    type: LocationKind = "all"
    page: PageNumber = 1
    limit: PageLimit = 20


class LocationState(Data):
    """The verification of the location at the provider."""

    isVerified: bool


class LocationEntry(Data):
    """A location in the list."""

    name: str = Field(examples=["locations/111"])
    title: str | None = None
    storefrontAddress: PostalAddress | None = None
    isAssigned: bool
    businessId: int | None
    businessName: str | None
    locationState: LocationState
    syncEnabled: bool


class Pagination(Data):
    """The position of the page. `limit` is the effective value."""

    page: int
    limit: int
    totalCount: int
    hasMore: bool


class LocationList(Data):
    """One page of the caller's locations."""

    locations: list[LocationEntry]
    pagination: Pagination


class LocationAbilities(Data):
    """The restrictions of the location at the provider."""

    canOperateLocalPost: Literal[False] = Field(description="The location cannot have posts.")


class LocationDetail(Data):
    """A location in the provider's format. Fields that the provider leaves out are absent."""

    name: str
    title: str | None = None
    storefrontAddress: PostalAddress | None = None
    phoneNumbers: PhoneNumbers | None = None
    regularHours: BusinessHours | None = None
    metadata: LocationAbilities | None = None
    locationState: LocationState


class SyncSwitch(Body):
    """The sync switch. Other fields are rejected, so that a misspelt name does not go unnoticed."""

    model_config = ConfigDict(extra="forbid")

    syncEnabled: bool


class SyncSwitched(Data):
    """The current state of the switch."""

    locationId: str
    syncEnabled: bool


class VerificationRefreshed(Data):
    """The location's verification at the provider."""

    locationId: str
    isVerified: bool
    verificationState: Literal["VERIFIED", "SUSPENDED", "DUPLICATE", "VERIFICATION_REQUESTED", "UNVERIFIED"]
