"""The provider's Location (Business Information v1), field by field: names, types, enums and access."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Int32
from profilesvc.contract.provider import limits
from profilesvc.contract.provider.format import (
    IMMUTABLE,
    OUTPUT_ONLY,
    Int64,
    Number,
    OpenMessage,
    Phone,
    ShortText,
    String,
    Uri,
)
from profilesvc.contract.visible import VISIBLE

DayOfWeek = Literal[
    "DAY_OF_WEEK_UNSPECIFIED", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"
]


class AdWordsLocationExtensions(OpenMessage):
    """An alternative phone number for ads."""

    adPhone: Phone | None = None


class MoreHoursType(OpenMessage):
    """A kind of extra hours that a category offers; output only."""

    displayName: Annotated[String | None, OUTPUT_ONLY] = None
    hoursTypeId: Annotated[String | None, OUTPUT_ONLY] = None
    localizedDisplayName: Annotated[String | None, OUTPUT_ONLY] = None


class ServiceType(OpenMessage):
    """A service that a category offers; output only."""

    displayName: Annotated[String | None, OUTPUT_ONLY] = None
    serviceTypeId: Annotated[String | None, OUTPUT_ONLY] = None


class Category(OpenMessage):
    """A category. A request sends only `name` (`categories/gcid:…`)."""

    displayName: Annotated[String | None, OUTPUT_ONLY] = None
    moreHoursTypes: Annotated[list[MoreHoursType] | None, OUTPUT_ONLY] = None
    name: String | None = None
    serviceTypes: Annotated[list[ServiceType] | None, OUTPUT_ONLY] = None


class Categories(OpenMessage):
    """A write sends both fields together."""

    additionalCategories: list[Category] | None = None
    primaryCategory: Category | None = None


class LatLng(OpenMessage):
    """Degrees. Only approved clients may write it."""

    latitude: Number | None = None
    longitude: Number | None = None


class Metadata(OpenMessage):
    """Values that the provider computes."""

    canDelete: Annotated[bool | None, OUTPUT_ONLY] = None
    canHaveBusinessCalls: Annotated[bool | None, OUTPUT_ONLY] = None
    canHaveFoodMenus: Annotated[bool | None, OUTPUT_ONLY] = None
    canModifyServiceList: Annotated[bool | None, OUTPUT_ONLY] = None
    canOperateHealthData: Annotated[bool | None, OUTPUT_ONLY] = None
    canOperateLocalPost: Annotated[bool | None, OUTPUT_ONLY] = None
    canOperateLodgingData: Annotated[bool | None, OUTPUT_ONLY] = None
    duplicateLocation: Annotated[String | None, OUTPUT_ONLY] = None
    hasGoogleUpdated: Annotated[bool | None, OUTPUT_ONLY] = None
    hasPendingEdits: Annotated[bool | None, OUTPUT_ONLY] = None
    hasVoiceOfMerchant: Annotated[bool | None, OUTPUT_ONLY] = None
    isParticularlyPersonalPlace: Annotated[bool | None, OUTPUT_ONLY] = None
    mapsUri: Annotated[String | None, OUTPUT_ONLY] = None
    newReviewUri: Annotated[String | None, OUTPUT_ONLY] = None
    placeId: Annotated[String | None, OUTPUT_ONLY] = None


class TimeOfDay(OpenMessage):
    """00:00 is sent as `{}`; 24:00 is the end of the day."""

    hours: Int32 | None = None
    minutes: Int32 | None = None
    nanos: Int32 | None = None
    seconds: Int32 | None = None


class TimePeriod(OpenMessage):
    """Closes after it opens: past midnight, `closeDay` is the next day. Periods must not overlap."""

    closeDay: DayOfWeek | None = None
    closeTime: TimeOfDay | None = None
    openDay: DayOfWeek | None = None
    openTime: TimeOfDay | None = None


class MoreHours(OpenMessage):
    """Extra hours of one kind."""

    hoursTypeId: String | None = None
    periods: list[TimePeriod] | None = None


class Date(OpenMessage):
    """Year, month and day; a missing part is unset."""

    day: Int32 | None = None
    month: Int32 | None = None
    year: Int32 | None = None


class OpenInfo(OpenMessage):
    """Open, temporarily closed or permanently closed."""

    canReopen: Annotated[bool | None, OUTPUT_ONLY] = None
    openingDate: Date | None = None
    status: Literal["OPEN_FOR_BUSINESS_UNSPECIFIED", "OPEN", "CLOSED_PERMANENTLY", "CLOSED_TEMPORARILY"] | None = None


class PhoneNumbers(OpenMessage):
    """A write sends both fields together."""

    additionalPhones: list[Phone] | None = None
    primaryPhone: Phone | None = None


class Profile(OpenMessage):
    """The description shown to the public."""

    description: String | None = None


class BusinessHours(OpenMessage):
    """Weekly hours; a day without a period is closed."""

    periods: list[TimePeriod] | None = None


class RelevantLocation(OpenMessage):
    """The other location of a relation."""

    placeId: String | None = None
    relationType: Literal["RELATION_TYPE_UNSPECIFIED", "DEPARTMENT_OF", "INDEPENDENT_ESTABLISHMENT_IN"] | None = None


class RelationshipData(OpenMessage):
    """Parent, children and chain."""

    childrenLocations: list[RelevantLocation] | None = None
    parentChain: String | None = None
    parentLocation: RelevantLocation | None = None


class PlaceInfo(OpenMessage):
    """A region that is served."""

    placeId: String | None = None
    placeName: String | None = None


class Places(OpenMessage):
    """At most 20 regions."""

    placeInfos: list[PlaceInfo] | None = None


class ServiceAreaBusiness(OpenMessage):
    """The area that a business serves."""

    businessType: (
        Literal["BUSINESS_TYPE_UNSPECIFIED", "CUSTOMER_LOCATION_ONLY", "CUSTOMER_AND_BUSINESS_LOCATION"] | None
    ) = None
    places: Places | None = None
    regionCode: Annotated[String | None, IMMUTABLE] = None


class Label(OpenMessage):
    """The text of a service, one per language."""

    description: String | None = None
    displayName: String | None = None
    languageCode: String | None = None


class FreeFormServiceItem(OpenMessage):
    """A service that the business names itself."""

    category: String | None = None
    label: Label | None = None


class Money(OpenMessage):
    """`units` is a 64-bit integer as a string; `nanos` has the same sign."""

    currencyCode: String | None = None
    nanos: Int32 | None = None
    units: Int64 | None = None


class StructuredServiceItem(OpenMessage):
    """A service that the category offers."""

    description: String | None = None
    serviceTypeId: String | None = None


class ServiceItem(OpenMessage):
    """Exactly one of structured and free-form."""

    freeFormServiceItem: FreeFormServiceItem | None = None
    price: Money | None = None
    structuredServiceItem: StructuredServiceItem | None = None


class SpecialHourPeriod(OpenMessage):
    """Hours of one date, or `closed`. They end at 11:59 of the next day at the latest, which is `endDate` then."""

    closeTime: TimeOfDay | None = None
    closed: bool | None = None
    endDate: Date | None = None
    openTime: TimeOfDay | None = None
    startDate: Date | None = None


class SpecialHours(OpenMessage):
    """Exceptions by date; they need regular hours."""

    specialHourPeriods: list[SpecialHourPeriod] | None = None


class PostalAddress(OpenMessage):
    """The provider never infers `regionCode`."""

    addressLines: list[String] | None = None
    administrativeArea: String | None = None
    languageCode: String | None = None
    locality: String | None = None
    organization: String | None = None
    postalCode: String | None = None
    recipients: list[String] | None = None
    regionCode: String | None = None
    revision: Int32 | None = None
    sortingCode: String | None = None
    sublocality: String | None = None


class Location(OpenMessage):
    """A business location (Business Information v1), all its 20 fields."""

    name: Annotated[String | None, OUTPUT_ONLY] = None
    languageCode: Annotated[String | None, IMMUTABLE] = None
    storeCode: String | None = None
    title: ShortText | None = None
    phoneNumbers: PhoneNumbers | None = None
    categories: Categories | None = None
    storefrontAddress: PostalAddress | None = None
    websiteUri: Uri | None = None
    regularHours: BusinessHours | None = None
    specialHours: SpecialHours | None = None
    serviceArea: ServiceAreaBusiness | None = None
    labels: list[Annotated[str, Field(min_length=1, max_length=limits.LABEL), STORABLE, VISIBLE]] | None = None
    adWordsLocationExtensions: AdWordsLocationExtensions | None = None
    latlng: LatLng | None = None
    openInfo: OpenInfo | None = None
    metadata: Annotated[Metadata | None, OUTPUT_ONLY] = None
    profile: Profile | None = None
    relationshipData: RelationshipData | None = None
    moreHours: list[MoreHours] | None = None
    serviceItems: list[ServiceItem] | None = None
