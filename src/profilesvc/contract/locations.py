"""Locations on the wire (API document, Location and Locations)."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from profilesvc.contract.common import Body, Data, PageNumber, Query
from profilesvc.contract.provider.location import BusinessHours, PhoneNumbers, PostalAddress

MAX_LIMIT = 100


class LocationListQuery(Query):
    """Which locations, and which page of them (D-70)."""

    type: Literal["all", "unassigned"] = "all"
    page: PageNumber = 1
    limit: Annotated[PageNumber, Field(description="At most 100; a larger value is clamped.")] = 20


class LocationState(Data):
    """The contract's word for the provider's verification."""

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
    """Where the page stands; `limit` is the effective one."""

    page: int
    limit: int
    totalCount: int
    hasMore: bool


class LocationList(Data):
    """One page of the locations that the caller may see."""

    locations: list[LocationEntry]
    pagination: Pagination


class LocationDetail(Data):
    """A location with the provider's members; those that the provider does not have are left out (D-71)."""

    name: str
    title: str | None = None
    storefrontAddress: PostalAddress | None = None
    phoneNumbers: PhoneNumbers | None = None
    regularHours: BusinessHours | None = None
    locationState: LocationState


class SyncSwitch(Body):
    """Exactly this one member (D-72)."""

    model_config = ConfigDict(extra="forbid")

    syncEnabled: bool


class SyncSwitched(Data):
    """The switch as it stands."""

    locationId: str
    syncEnabled: bool


class VerificationRefreshed(Data):
    """What the provider says about the location's verification (D-73)."""

    locationId: str
    isVerified: bool
    verificationState: Literal["VERIFIED", "SUSPENDED", "DUPLICATE", "VERIFICATION_REQUESTED", "UNVERIFIED"]
