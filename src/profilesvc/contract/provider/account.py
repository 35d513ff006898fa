"""The provider's Account (Account Management v1), field by field."""

from typing import Annotated, Literal

from profilesvc.contract.provider.format import OUTPUT_ONLY, Message, String
from profilesvc.contract.provider.location import PostalAddress


class OrganizationInfo(Message):
    """The legal data of an ORGANIZATION."""

    registeredDomain: Annotated[String | None, OUTPUT_ONLY] = None
    address: Annotated[PostalAddress | None, OUTPUT_ONLY] = None
    phoneNumber: Annotated[String | None, OUTPUT_ONLY] = None


class Account(Message):
    """`accounts/<id>`. Its verification is not that of its locations."""

    name: String | None = None
    accountName: String | None = None
    primaryOwner: String | None = None
    type: Literal["ACCOUNT_TYPE_UNSPECIFIED", "PERSONAL", "LOCATION_GROUP", "USER_GROUP", "ORGANIZATION"] | None = None
    role: Annotated[
        Literal["ACCOUNT_ROLE_UNSPECIFIED", "PRIMARY_OWNER", "OWNER", "MANAGER", "SITE_MANAGER"] | None, OUTPUT_ONLY
    ] = None
    verificationState: Annotated[
        Literal["VERIFICATION_STATE_UNSPECIFIED", "VERIFIED", "UNVERIFIED", "VERIFICATION_REQUESTED"] | None,
        OUTPUT_ONLY,
    ] = None
    vettedState: Annotated[
        Literal["VETTED_STATE_UNSPECIFIED", "NOT_VETTED", "VETTED", "INVALID"] | None, OUTPUT_ONLY
    ] = None
    accountNumber: Annotated[String | None, OUTPUT_ONLY] = None
    permissionLevel: Annotated[
        Literal["PERMISSION_LEVEL_UNSPECIFIED", "OWNER_LEVEL", "MEMBER_LEVEL"] | None, OUTPUT_ONLY
    ] = None
    organizationInfo: Annotated[OrganizationInfo | None, OUTPUT_ONLY] = None
