"""Requests of the provider's verification of a location (Verifications v1), field by field."""

from typing import Literal

from profilesvc.contract.provider.format import Message, String
from profilesvc.contract.provider.location import PostalAddress

VerificationMethod = Literal[
    "VERIFICATION_METHOD_UNSPECIFIED", "ADDRESS", "EMAIL", "PHONE_CALL", "SMS", "AUTO", "TRUSTED_PARTNER"
]


class ServiceBusinessContext(Message):
    """The address of a business that only visits its customers."""

    address: PostalAddress | None = None


class VerificationToken(Message):
    """A partner's token."""

    tokenString: String | None = None


class FetchVerificationOptionsRequest(Message):
    """`languageCode` is required; `context` is for CUSTOMER_LOCATION_ONLY."""

    languageCode: String | None = None
    context: ServiceBusinessContext | None = None


class VerifyLocationRequest(Message):
    """`method` is required, with the field that belongs to it."""

    method: VerificationMethod | None = None
    languageCode: String | None = None
    emailAddress: String | None = None
    phoneNumber: String | None = None
    mailerContact: String | None = None
    context: ServiceBusinessContext | None = None
    token: VerificationToken | None = None
    trustedPartnerToken: String | None = None


class CompleteVerificationRequest(Message):
    """The PIN that the owner received."""

    pin: String | None = None
