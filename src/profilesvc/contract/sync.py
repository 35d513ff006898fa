"""Comparison, sync and history on the wire (docs/api-contract.md#sync)."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, PageLimit, PageNumber, Query, UtcTime
from profilesvc.contract.json import JsonObject

EditStatus = Literal["live", "pending", "overridden_by_provider"]

SyncStatus = Literal["success", "skipped", "failed"]
SyncDirection = Literal["push", "pull"]
FilterReason = Literal["unknown", "output_only", "immutable", "plan"]
CheckedBy = Literal["provider", "format"]


class SyncResult(Data):
    """The outcome of a sync."""

    syncId: str = Field(examples=["sync_01jg3k5m7n9p1r3t5v7x"])
    status: Literal["success", "skipped"]
    fieldsUpdated: list[str] = Field(description="Leaf paths that changed at the provider.")
    fieldsFiltered: list[str] = Field(description="Leaf paths that were dropped from the request.")
    timestamp: UtcTime


class SyncQuery(Query):
    """The fields of the body to sync, and the option to only preview the sync."""

    validateOnly: Annotated[
        Literal["true", "false"],
        Field(
            description="`true` reports what would be updated and filtered, asks the provider whether it would accept "
            "the update, and changes nothing. "
            "An addition of this service."
        ),
    ] = "false"
    updateMask: Annotated[
        str | None,
        Field(
            description="The fields of the body to sync, such as `title,profile.description`. Other fields of the body "
            "are neither sent nor stored. A named field that the body lacks is cleared, as at the provider. Without "
            "the parameter, all fields of the body are synced, and no other field is changed.",
            examples=["title,phoneNumbers"],
        ),
    ] = None


class FilteredField(Data):
    """A leaf path that would be dropped, and why."""

    field: str
    reason: FilterReason


class SyncPreview(Data):
    """The changes that a sync of the same body would make now. An addition of this service."""

    validateOnly: Literal[True] = True
    checked: CheckedBy = Field(
        description="Who has checked the values. `provider`: the external provider accepts the update, or has these "
        "values already. `format`: only this service has checked them, because nothing would be sent, or the provider "
        "could not be asked; then `fieldsUpdated` is compared with the profile that was last read."
    )
    status: Literal["success", "skipped"]
    fieldsUpdated: list[str] = Field(description="Leaf paths that would change at the provider.")
    fieldsUnchanged: list[str] = Field(description="Leaf paths whose values the provider already has.")
    fieldsFiltered: list[str] = Field(description="Leaf paths that would be dropped from the request.")
    reasons: list[FilteredField] = Field(description="Why each path in `fieldsFiltered` would be dropped.")
    timestamp: UtcTime


class Difference(Data):
    """One leaf path whose values differ; a missing value is null."""

    field: str = Field(examples=["phoneNumbers.primaryPhone"])
    source: object
    provider: object


class ComparedField(Difference):
    """A difference, and the state of its edit at the provider."""

    editStatus: EditStatus = Field(
        "live",
        description="`live`: consumers see the provider's value. `pending`: an edit of it is in review. "
        "`overridden_by_provider`: consumers see a value that the provider has set itself. "
        "An addition of this service.",
    )


class SyncComparison(Data):
    """The profile that was requested, that of the provider now, and the one that it last accepted."""

    source: JsonObject
    provider: JsonObject
    lastSync: JsonObject
    differences: list[ComparedField]
    filtered: list[str] = Field(
        description="Leaf paths of `source` that the plan or the format does not let a sync send. "
        "An addition of this service."
    )


class SyncHistoryQuery(Query):
    """The page of the history."""

    page: PageNumber = 1
    limit: PageLimit = 20


class SyncHistoryEntry(Data):
    """One sync."""

    syncId: str
    timestamp: UtcTime
    status: SyncStatus
    fieldsUpdated: int
    direction: SyncDirection


class SyncHistory(Data):
    """The syncs of a location, newest first."""

    history: list[SyncHistoryEntry]
