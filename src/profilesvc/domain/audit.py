"""A search in the audit trail."""

from typing import NamedTuple

from profilesvc.contract.audit import Event


class Wanted(NamedTuple):
    """The events that a search finds: of some kinds and keys, from one instant to before another. None: all."""

    events: list[Event] | None = None
    key_ids: list[int] | None = None
    since: int | None = None
    until: int | None = None
