"""The provider's NotificationSetting (Notifications v1): which changes of an account are published, and where."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.provider.format import Message, String

NotificationType = Literal[
    "NOTIFICATION_TYPE_UNSPECIFIED",
    "GOOGLE_UPDATE",
    "NEW_REVIEW",
    "UPDATED_REVIEW",
    "NEW_CUSTOMER_MEDIA",
    "NEW_QUESTION",
    "UPDATED_QUESTION",
    "NEW_ANSWER",
    "UPDATED_ANSWER",
    "DUPLICATE_LOCATION",
    "LOSS_OF_VOICE_OF_MERCHANT",
    "VOICE_OF_MERCHANT_UPDATED",
]


class NotificationSetting(Message):
    """The setting of an account. Without a topic or without types nothing is published."""

    name: String | None = None
    notificationTypes: Annotated[list[NotificationType], Field(max_length=100)] | None = None
    pubsubTopic: String | None = None
