"""The recorded examples of owners' logins at the provider."""

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.lab.consenting import connect_login
from support.examples.recorder import Examples


def record(examples: Examples, owner: httpx.Client) -> None:
    """Record the operations on a login that sees a new account with two locations."""
    examples.lab.provider.add_login("dana@example.com", {"locations/411": "Roy Bakery", "locations/412": "Roy Cafe"})
    examples.ok("start_provider_connection", "The consent page", owner)
    examples.ok("create_provider_connection_link", "A link for someone else", owner)
    connect_login(owner, "dana@example.com")
    [entry] = examples.ok("list_provider_connections", "One login", owner)["connections"]
    of_login: JsonObject = {"connection_id": entry["id"]}
    examples.ok("get_provider_connection", "What the login sees", owner, **of_login)
    chosen = {"locations": ["locations/411", "locations/999"], "business_name": "Roy"}
    examples.ok(
        "import_provider_locations", "One location, and one that the login does not see", owner, chosen, **of_login
    )
    examples.ok("import_provider_locations", "All whose title matches", owner, {"title_contains": "roy"}, **of_login)
    examples.ok("export_provider_connection", "A copy before disconnecting", owner, **of_login)
    examples.fails("import_provider_locations", "Nothing is selected", owner, {}, **of_login)
    examples.lab.provider.withdraw_consent("dana@example.com")
    examples.lab.advance(hours=2)
    examples.fails("get_provider_connection", "The provider has ended the login", owner, **of_login)
    examples.ok("delete_provider_connection", "A disconnected login", owner, **of_login)
    examples.fails("get_provider_connection", "A disconnected login", owner, **of_login)


def record_reactivation(examples: Examples, owner: httpx.Client) -> None:
    """Record the error for a key whose location has been imported again and is beyond the plan, then Starter."""
    examples.lab.provider.add_login("sam@example.com", {"locations/421": "Sam's Bikes"})
    login, done = _imported(examples, owner, {"locations": ["locations/421"], "business_name": "Sam"})
    new = {"name": "Website", "business_id": done["business_id"], "assigned_location_id": "locations/421"}
    key = examples.call("create_key", owner, new).json()["data"]
    examples.call("delete_provider_connection", owner, connection_id=login)
    _imported(examples, owner, {"locations": ["locations/421"]})
    examples.lab.operator.assign_plan("bob", "starter")
    examples.fails("reactivate_key", "The plan has one location", owner, client_id=key["client_id"])


def _imported(examples: Examples, owner: httpx.Client, chosen: JsonObject) -> tuple[str, JsonObject]:
    """Connect Sam's login and import locations; return the login's id and the response."""
    connect_login(owner, "sam@example.com")
    login = examples.call("list_provider_connections", owner).json()["data"]["connections"][-1]["id"]
    done = examples.call("import_provider_locations", owner, chosen, connection_id=login).json()["data"]
    return login, done
