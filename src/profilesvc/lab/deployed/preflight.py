"""Checks of a deployed service before notebooks run on it: it responds, and their changes can be undone."""

from dataclasses import dataclass

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.domain.problems import counted
from profilesvc.lab.deployed.safeguard import API
from profilesvc.lab.views.record import body_of

MOST_LIVE_KEYS = 12  # of the 20 that a location may have, because a notebook creates up to 8
_REMEDY = "`profilesvc users token EMAIL` on the deployment prints one"


class PreflightError(RuntimeError):
    """The reason why notebooks must not run on a deployed service. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The initial state of the location: the first entry of the journal, and lines for the report."""

    baseline: JsonObject
    lines: list[str]


def read_baseline(client: httpx.Client, target: str, location: str, write: bool) -> Baseline:
    """Read the initial state without changing anything.

    Raises:
        PreflightError: Notebooks must not run on this service or location.
    """
    businesses = _read(client, target, f"{API}/businesses")["businesses"]
    entry = _entry(client, target, location)
    if entry["businessId"] is None:
        raise PreflightError(
            f"{location} belongs to no business yet, and the first key would assign it permanently. "
            "Choose a location that is in use."
        )
    listed = _read(client, target, f"{API}/developer/credentials")["credentials"]
    keys = [key["client_id"] for key in listed if key["assigned_location_id"] == location]
    if len(keys) > MOST_LIVE_KEYS:
        raise PreflightError(f"{location} has {len(keys)} of 20 live keys, and a notebook needs {20 - MOST_LIVE_KEYS}.")
    baseline = {"target": target, "location": location, "entry": entry, "keys": keys, "posts": [], "profile": None}
    if write:
        baseline |= _for_writing(client, target, entry)
    names = ", ".join(f"{business['name']} ({business['id']})" for business in businesses)
    state = f"sync {'on' if entry['syncEnabled'] else 'off'}, {counted(len(keys), 'live key')}"
    return Baseline(
        baseline,
        [
            f"service    {target}",
            f"user       the owner of {names}",
            f"location   {location}, {entry.get('title') or 'without a title'}, of {entry['businessName']}: {state}",
            *_plan(write),
        ],
    )


def _plan(write: bool) -> list[str]:
    lines = [
        "changes    API keys of this location, revoked after each notebook; audit log and list of revoked keys",
        "           show them",
    ]
    if write:
        return [
            *lines,
            "           with SMOKE_WRITE=1: posts (deleted after each notebook; they count towards the month's posts),",
            "           profile and desired values (restored; the sync history has the syncs), the sync switch",
        ]
    return [*lines, "           no posts, replies, syncs or sync switch, which need SMOKE_WRITE=1"]


def _for_writing(client: httpx.Client, target: str, entry: JsonObject) -> JsonObject:
    """Return the state that a run with SMOKE_WRITE=1 must be able to restore."""
    location = entry["name"]
    if not (entry["syncEnabled"] and entry["locationState"]["isVerified"]):
        raise PreflightError(f"{location} is not verified or its sync is off, so SMOKE_WRITE=1 could not undo a sync.")
    try:
        compared = _read(client, target, f"{API}/sync/comparison/{location}")
    except PreflightError as error:
        raise PreflightError(f"{error} Without a comparison SMOKE_WRITE=1 could not undo a sync.") from None
    if compared["differences"]:
        fields = ", ".join(difference["field"] for difference in compared["differences"])
        raise PreflightError(
            f"{location} differs from the provider at {fields}. A sync of the notebooks would hide that, and it could "
            "not be restored. Sync the location first, or run without SMOKE_WRITE=1."
        )
    posts = _read(client, target, f"{API}/posts", locationId=location, pageSize=100)["localPosts"]
    profile = {side: compared[side] for side in ("source", "provider", "filtered")}
    return {"posts": [post["name"] for post in posts], "profile": profile}


def _entry(client: httpx.Client, target: str, location: str) -> JsonObject:
    page, more = 1, True
    while more:
        data = _read(client, target, f"{API}/external-business/locations", page=page, limit=100)
        for entry in data["locations"]:
            if entry["name"] == location:
                return dict(entry)
        page, more = page + 1, data["pagination"]["hasMore"]
    raise PreflightError(
        f"PROFILESVC_LAB__LOCATION: the token's user has no {location}. Name one of the user's locations."
    )


def _read(client: httpx.Client, target: str, path: str, **params: str | int) -> JsonObject:
    try:
        response = client.get(path, params=params)
    except httpx.HTTPError as error:
        raise PreflightError(f"{target} does not respond ({type(error).__name__}: {error}). Check BASE_URL.") from None
    body = body_of(response)
    if response.is_success and isinstance(body, dict) and isinstance(body.get("data"), dict):
        return dict(body["data"])
    failure = body.get("error") if isinstance(body, dict) else None
    if not isinstance(failure, dict):
        raise PreflightError(
            f"{target}{path} returned {response.status_code}, not in this service's format. Check BASE_URL."
        )
    if response.status_code == 401:
        raise PreflightError(f"PROFILESVC_LAB__USER_TOKEN was rejected: {failure['message']} {_REMEDY}.")
    if response.status_code == 403:
        raise PreflightError(f"PROFILESVC_LAB__USER_TOKEN is not a user's token: {failure['message']} {_REMEDY}.")
    raise PreflightError(f"GET {path}: {response.status_code} {failure['code']}: {failure['message']}")
