"""Changes that the provider made in a site's profile itself, for the page of the site."""

import json
from dataclasses import dataclass

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.visits import Visit
from profilesvc.domain import profiles
from profilesvc.domain.masks import Masks, settled_together
from profilesvc.services import comparison
from profilesvc.services.context import AllowedLocation
from profilesvc.services.feed import updates


@dataclass(frozen=True, slots=True)
class Change:
    """A field that the provider has changed: the paths that are settled together, and both values."""

    field: str
    mask: str
    ours: object
    theirs: object


@dataclass(frozen=True, slots=True)
class Changes:
    """The provider's changes, and the fields whose edits it reviews."""

    entries: list[Change]
    pending: list[str]

    @property
    def mask(self) -> str:
        return ",".join(dict.fromkeys(path for entry in self.entries for path in entry.mask.split(",")))


NO_CHANGES = Changes([], [])


async def find(visit: Visit, location: AllowedLocation, provider: JsonObject) -> Changes:
    """Return the provider's changes of a profile that was just read. They are read only if its metadata shows any.

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    if not comparison.has_edits(provider):
        return NO_CHANGES
    updated = json.loads((await updates.read(visit.services, location)).data)
    masks, theirs = Masks.of(updated), updated["location"]
    entries = [
        Change(
            path,
            ",".join(settled_together(path, theirs, provider)),
            ours=profiles.at(provider, path),
            theirs=profiles.at(theirs, path),
        )
        for path in masks.changed
    ]
    return Changes(entries, list(dict.fromkeys(profiles.mask_path(path) for path in masks.pending)))
