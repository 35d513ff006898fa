"""The recorded examples of the provider's own changes of a profile."""

import httpx

from profilesvc.contract.json import JsonObject
from support.examples.recorder import Examples

LOCATION = "locations/111"
HERE: JsonObject = {"locationId": LOCATION}


def record(examples: Examples, owner: httpx.Client) -> None:
    """Record a change of two fields. One is accepted, the other rejected."""
    assert examples.call("switch_sync", owner, {"syncEnabled": True}, **HERE).is_success
    title, website = "Harbour Coffee Pier", "https://maps.example/harbour-coffee"
    examples.lab.provider.override(LOCATION, title=title, websiteUri=website)
    examples.ok("get_google_updated", "Two fields that the provider has changed", owner, **HERE)
    examples.ok("accept_google_update", "The provider's title", owner, {"updateMask": "title"}, **HERE)
    examples.ok("reject_google_update", "The owner's website", owner, {"updateMask": "websiteUri"}, **HERE)
    for name in ("accept_google_update", "reject_google_update"):
        examples.fails(name, "A field that is sent whole", owner, {"updateMask": "phoneNumbers.primaryPhone"}, **HERE)
        examples.fails(name, "Sync is switched off", owner, {"updateMask": "title"}, locationId="locations/112")
        examples.fails(
            name, "A location that is not verified", owner, {"updateMask": "title"}, locationId="locations/113"
        )
    examples.ok("get_google_updated", "No changes", owner, **HERE)


def settle(owner: httpx.Client, decision: str) -> httpx.Response:
    """Accept or reject the title of a location, and return the response."""
    path = f"/api/v1/external-business/{LOCATION}/google-updated/{decision}"
    return owner.post(path, json={"updateMask": "title"})
