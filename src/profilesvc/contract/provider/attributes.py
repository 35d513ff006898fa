"""The provider's attributes of a location (Business Information v1), a resource of their own."""

from typing import Annotated, Literal

from profilesvc.contract.provider.format import OUTPUT_ONLY, Message, String, Uri

AttributeValueType = Literal["ATTRIBUTE_VALUE_TYPE_UNSPECIFIED", "BOOL", "ENUM", "URL", "REPEATED_ENUM"]


class RepeatedEnumAttributeValue(Message):
    """At least one value in the two lists. Ids in neither list are unknown."""

    setValues: list[String] | None = None
    unsetValues: list[String] | None = None


class UriAttributeValue(Message):
    """One address."""

    uri: Uri | None = None


class Attribute(Message):
    """`attributes/<id>` and its value: one JSON value in `values` for BOOL and ENUM, else the field of its type."""

    name: String | None = None
    valueType: Annotated[AttributeValueType | None, OUTPUT_ONLY] = None
    values: list[object] | None = None
    repeatedEnumValue: RepeatedEnumAttributeValue | None = None
    uriValues: list[UriAttributeValue] | None = None


class Attributes(Message):
    """All attributes that a location has; `name` is `locations/<id>/attributes`."""

    name: String | None = None
    attributes: list[Attribute] | None = None
