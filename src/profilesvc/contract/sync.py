"""Comparison, sync and history on the wire (API document, Sync)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from profilesvc.contract.common import Data, PageNumber, Query, UtcTime

SyncStatus = Literal["success", "skipped", "failed"]
MAX_LIMIT = 100


class SyncResult(Data):
    """The outcome of a sync (D-83)."""

    syncId: str = Field(examples=["sync_01jg3k5m7n9p1r3t5v7x"])
    status: Literal["success", "skipped"]
    fieldsUpdated: list[str] = Field(description="Leaf paths that changed at the provider.")
    fieldsFiltered: list[str] = Field(description="Leaf paths that were dropped from the request.")
    timestamp: UtcTime


class SyncQuery(Query):
    """Whether to do it, or only to tell what it would do; a misspelt wish for the latter must not become the former."""

    exact: ClassVar[tuple[str, ...]] = ("validateOnly",)
    validateOnly: Annotated[
        Literal["true", "false"],
        Field(description="`true` tells what would be updated and filtered, and changes nothing. Ours."),
    ] = "false"


class FilteredField(Data):
    """Why a leaf path would be dropped."""

    field: str
    reason: Literal["unknown", "output_only", "immutable", "plan"]


class SyncPreview(Data):
    """What a sync of the same body would do now. Ours."""

    validateOnly: Literal[True] = True
    status: Literal["success", "skipped"]
    fieldsUpdated: list[str] = Field(description="Leaf paths that would change at the provider.")
    fieldsUnchanged: list[str] = Field(description="Leaf paths that the provider has already.")
    fieldsFiltered: list[str] = Field(description="Leaf paths that would be dropped from the request.")
    reasons: list[FilteredField] = Field(description="Why each of fieldsFiltered would be dropped.")
    timestamp: UtcTime


class Difference(Data):
    """One leaf path whose values differ; a missing value is null."""

    field: str = Field(examples=["phoneNumbers.primaryPhone"])
    source: Any
    provider: Any


class SyncComparison(Data):
    """What was asked for, what the provider has, what it last accepted (D-84, D-85)."""

    source: dict[str, Any]
    provider: dict[str, Any]
    lastSync: dict[str, Any]
    differences: list[Difference]
    filtered: list[str] = Field(description="Leaves of source that the plan or the format keeps back. Ours (D-85).")


class SyncHistoryQuery(Query):
    """Which page of the history (D-86)."""

    page: PageNumber = 1
    limit: Annotated[PageNumber, Field(description="At most 100; a larger value is clamped.")] = 20


class SyncHistoryEntry(Data):
    """One sync."""

    syncId: str
    timestamp: UtcTime
    status: SyncStatus
    fieldsUpdated: int
    direction: Literal["push", "pull"]


class SyncHistory(Data):
    """The syncs of a location, newest first."""

    history: list[SyncHistoryEntry]
