"""The provider's LocalPost (My Business v4), field by field: names, types, enums and access."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Int32
from profilesvc.contract.provider import limits
from profilesvc.contract.provider.format import OUTPUT_ONLY, Int64, Message, ShortText, String, Timestamp, Uri
from profilesvc.contract.provider.location import Date, DayOfWeek, TimeOfDay

TopicType = Literal["LOCAL_POST_TOPIC_TYPE_UNSPECIFIED", "STANDARD", "EVENT", "OFFER", "ALERT"]
ActionType = Literal["ACTION_TYPE_UNSPECIFIED", "BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP", "GET_OFFER", "CALL"]
AlertType = Literal["ALERT_TYPE_UNSPECIFIED", "COVID_19"]
PostState = Literal["LOCAL_POST_STATE_UNSPECIFIED", "REJECTED", "LIVE", "PROCESSING", "SCHEDULED", "RECURRING"]
MediaFormat = Literal["MEDIA_FORMAT_UNSPECIFIED", "PHOTO", "VIDEO"]
MediaCategory = Literal[
    "CATEGORY_UNSPECIFIED",
    "COVER",
    "PROFILE",
    "LOGO",
    "EXTERIOR",
    "INTERIOR",
    "PRODUCT",
    "AT_WORK",
    "FOOD_AND_DRINK",
    "MENU",
    "COMMON_AREA",
    "ROOMS",
    "TEAMS",
    "ADDITIONAL",
]


class CallToAction(Message):
    """A button. `url` is required for every type except CALL, which uses the profile's phone number."""

    actionType: ActionType | None = None
    url: Uri | None = None


class TimeInterval(Message):
    """All four fields are required. The end is inclusive, and there is no time zone."""

    startDate: Date | None = None
    startTime: TimeOfDay | None = None
    endDate: Date | None = None
    endTime: TimeOfDay | None = None


class DailyOccurrencePattern(Message):
    """Every day; an empty object."""


class WeeklyOccurrencePattern(Message):
    """Empty means the weekday on which the event starts."""

    daysOfWeek: list[DayOfWeek] | None = None


class MonthlyOccurrencePattern(Message):
    """One of a day of the month and the n-th weekday."""

    dayOfMonth: Int32 | None = None
    dayOfWeekOccurrence: (
        Literal["DAY_OF_WEEK_OCCURRENCE_UNSPECIFIED", "FIRST", "SECOND", "THIRD", "FOURTH", "LAST"] | None
    ) = None


class RecurrenceInfo(Message):
    """Exactly one pattern."""

    seriesEndTime: Timestamp | None = None
    dailyPattern: DailyOccurrencePattern | None = None
    weeklyPattern: WeeklyOccurrencePattern | None = None
    monthlyPattern: MonthlyOccurrencePattern | None = None


class LocalPostEvent(Message):
    """An event's title (58 characters) and schedule."""

    title: Annotated[str, Field(max_length=limits.EVENT_TITLE, json_schema_extra={"minLength": 1}), STORABLE] | None = (
        None
    )
    schedule: TimeInterval | None = None
    recurrenceInfo: RecurrenceInfo | None = None
    recurringInstanceTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None


class LocalPostOffer(Message):
    """An offer's coupon, link and terms."""

    couponCode: ShortText | None = None
    redeemOnlineUrl: Uri | None = None
    termsConditions: String | None = None


class MediaItemDataRef(Message):
    """A reference to uploaded bytes; never for posts."""

    resourceName: String | None = None


class LocationAssociation(Message):
    """The category of a gallery photo; absent on post media."""

    category: MediaCategory | None = None
    priceListItemId: String | None = None


class Dimensions(Message):
    """Pixels."""

    widthPixels: Int32 | None = None
    heightPixels: Int32 | None = None


class Attribution(Message):
    """The customer who took a photo."""

    profileName: String | None = None
    profilePhotoUrl: Uri | None = None
    takedownUrl: Uri | None = None
    profileUrl: Uri | None = None


class MediaInsights(Message):
    """Deprecated view counts."""

    viewCount: Annotated[Int64 | None, OUTPUT_ONLY] = None


class MediaItem(Message):
    """A photo. On a post only `mediaFormat` and `sourceUrl` have an effect."""

    name: String | None = None
    mediaFormat: MediaFormat | None = None
    sourceUrl: Uri | None = None
    dataRef: MediaItemDataRef | None = None
    locationAssociation: LocationAssociation | None = None
    description: String | None = None
    googleUrl: Annotated[Uri | None, OUTPUT_ONLY] = None
    thumbnailUrl: Annotated[Uri | None, OUTPUT_ONLY] = None
    createTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    dimensions: Annotated[Dimensions | None, OUTPUT_ONLY] = None
    attribution: Annotated[Attribution | None, OUTPUT_ONLY] = None
    insights: Annotated[MediaInsights | None, OUTPUT_ONLY] = None


class LocalPost(Message):
    """A local post (My Business v4), all its fields."""

    name: Annotated[String | None, OUTPUT_ONLY] = None
    languageCode: Annotated[str, Field(max_length=35), STORABLE] | None = None
    summary: Annotated[str, Field(max_length=limits.SUMMARY), STORABLE] | None = None
    topicType: TopicType | None = None
    callToAction: CallToAction | None = None
    event: LocalPostEvent | None = None
    offer: LocalPostOffer | None = None
    alertType: AlertType | None = None
    media: Annotated[list[MediaItem] | None, Field(description="At most 10 in a request.")] = None
    scheduledTime: Timestamp | None = None
    state: Annotated[PostState | None, OUTPUT_ONLY] = None
    createTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    updateTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
    searchUrl: Annotated[Uri | None, OUTPUT_ONLY] = None
    recurringInstanceTime: Annotated[Timestamp | None, OUTPUT_ONLY] = None
