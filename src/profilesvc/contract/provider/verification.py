"""The provider's verification of a location (Verifications v1), field by field."""

from typing import Literal

from profilesvc.contract.provider.format import Int32, Message, String, Timestamp
from profilesvc.contract.provider.location import PostalAddress

VerificationMethod = Literal[
    "VERIFICATION_METHOD_UNSPECIFIED", "ADDRESS", "EMAIL", "PHONE_CALL", "SMS", "AUTO", "TRUSTED_PARTNER"
]


class WaitForVoiceOfMerchant(Message):
    """A review of quality is under way; an empty object."""


class Verify(Message):
    """A verification must be started or completed."""

    hasPendingVerification: bool | None = None


class ResolveOwnershipConflict(Message):
    """Another location of good standing is the same place; an empty object."""


class ComplyWithGuidelines(Message):
    """The location is suspended or disabled."""

    recommendationReason: (
        Literal["RECOMMENDATION_REASON_UNSPECIFIED", "BUSINESS_LOCATION_SUSPENDED", "BUSINESS_LOCATION_DISABLED"] | None
    ) = None


class VoiceOfMerchantState(Message):
    """Whether the merchant represents the location. If not, one of the last four fields may have the remedy."""

    hasVoiceOfMerchant: bool | None = None
    hasBusinessAuthority: bool | None = None
    waitForVoiceOfMerchant: WaitForVoiceOfMerchant | None = None
    verify: Verify | None = None
    resolveOwnershipConflict: ResolveOwnershipConflict | None = None
    complyWithGuidelines: ComplyWithGuidelines | None = None


class Verification(Message):
    """One attempt, `locations/<l>/verifications/<v>`."""

    name: String | None = None
    method: VerificationMethod | None = None
    state: Literal["STATE_UNSPECIFIED", "PENDING", "COMPLETED", "FAILED"] | None = None
    createTime: Timestamp | None = None
    announcement: String | None = None


class ServiceBusinessContext(Message):
    """The address of a business that only visits its customers."""

    address: PostalAddress | None = None


class VerificationToken(Message):
    """A partner's token."""

    tokenString: String | None = None


class EmailVerificationData(Message):
    """The e-mail address of the verification."""

    domain: String | None = None
    user: String | None = None
    isUserNameEditable: bool | None = None


class AddressVerificationData(Message):
    """The address of the letter, and how many days it takes."""

    business: String | None = None
    address: PostalAddress | None = None
    expectedDeliveryDaysRegion: Int32 | None = None


class VerificationOption(Message):
    """A method by which the location can be verified, with its data."""

    verificationMethod: VerificationMethod | None = None
    phoneNumber: String | None = None
    emailData: EmailVerificationData | None = None
    addressData: AddressVerificationData | None = None
    announcement: String | None = None


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
