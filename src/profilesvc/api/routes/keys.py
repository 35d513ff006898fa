"""API keys: create, list, replace the secret, deactivate, revoke."""

from urllib.parse import quote

from profilesvc.api.endpoint import Routes
from profilesvc.contract.errors import CONFLICT, NOT_FOUND, PLAN_RESTRICTION
from profilesvc.contract.keys import (
    BusinessList,
    KeyChange,
    KeyCreate,
    KeyCreated,
    KeyDetails,
    KeyList,
    KeyListQuery,
    KeyRevoked,
    KeyRoll,
    KeyRolled,
    KeyStanding,
)
from profilesvc.services import credentials, key_changes, keys
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services

routes = Routes("keys", addition=True, no_store=True)
KEYS, KEY = "/developer/credentials", "/developer/credentials/<client_id>"


@routes.endpoint(
    f"POST {KEYS}",
    access=USER,
    body=KeyCreate,
    rules=credentials.problems,
    data=KeyCreated,
    status=201,
    created_at=lambda key: f"{KEYS}/{quote(key['client_id'])}",
    errors=(NOT_FOUND, CONFLICT, PLAN_RESTRICTION),
    addition=False,
)
async def create_key(services: Services, caller: Caller, body: KeyCreate) -> KeyCreated:
    """Create an API key.

    Its secret is in this response only. The key is bound to one location, and pages of other domains than its own
    cannot use it.
    """
    return await credentials.create(services, caller, body)


@routes.endpoint(f"GET {KEYS}", access=USER, query=KeyListQuery, data=KeyList, addition=False)
async def list_keys(services: Services, caller: Caller, query: KeyListQuery) -> KeyList:
    """List your API keys.

    The newest key is first. Secrets are never returned.
    """
    return await keys.list_all(services, caller, query)


@routes.endpoint(f"GET {KEY}", access=USER, data=KeyDetails)
async def get_key(services: Services, caller: Caller, client_id: str) -> KeyDetails:
    """Read an API key.

    It may be revoked. Secrets are never returned; `previous_secret_expires_at` shows whether two are valid.
    """
    return await keys.get(services, caller, client_id)


@routes.endpoint(f"PATCH {KEY}", access=USER, body=KeyChange, rules=key_changes.problems, data=KeyDetails)
async def change_key(services: Services, caller: Caller, client_id: str, body: KeyChange) -> KeyDetails:
    """Change an API key.

    Fields that the body does not have keep their values; the rules are those of a new key. The next request with a
    token of the key is checked against the new domains.
    """
    return await key_changes.change(services, caller, client_id, body)


@routes.endpoint(f"DELETE {KEY}", access=USER, data=KeyRevoked, addition=False)
async def revoke_key(services: Services, caller: Caller, client_id: str) -> KeyRevoked:
    """Revoke an API key.

    All its tokens are invalid at once. This cannot be undone: to pause a key, deactivate it.
    """
    return await keys.revoke(services, caller, client_id)


@routes.endpoint(f"POST {KEY}/roll", access=USER, body=KeyRoll, data=KeyRolled, errors=(CONFLICT,))
async def roll_key(services: Services, caller: Caller, client_id: str, body: KeyRoll) -> KeyRolled:
    """Replace an API key's secret.

    The new secret is in this response only. The old one stays valid for the overlap, and the client id, the
    location and the tokens do not change. Use an overlap of 0 for a secret that leaked: every older secret and
    every token ends at once.
    """
    return await credentials.roll(services, caller, client_id, body)


@routes.endpoint(f"POST {KEY}/end-previous-secret", access=USER, data=KeyDetails)
async def end_previous_secret(services: Services, caller: Caller, client_id: str) -> KeyDetails:
    """End the previous secret.

    Only the newest secret of the key is valid from then on. Tokens stay valid. Repeating it has no effect.
    """
    return await key_changes.end_previous_secret(services, caller, client_id)


@routes.endpoint(f"POST {KEY}/deactivate", access=USER, data=KeyStanding)
async def deactivate_key(services: Services, caller: Caller, client_id: str) -> KeyStanding:
    """Deactivate an API key.

    Its tokens are rejected until you reactivate it. Repeating it has no effect.
    """
    changed = await keys.deactivate(services, client_id, "user_requested", caller=caller)
    return changed.standing


@routes.endpoint(f"POST {KEY}/reactivate", access=USER, data=KeyStanding, errors=(PLAN_RESTRICTION,))
async def reactivate_key(services: Services, caller: Caller, client_id: str) -> KeyStanding:
    """Reactivate an API key.

    Its tokens work again. If the service or your plan deactivated the key, the error has the three details of a
    deactivated key. If its location was disconnected and imported again, it is assigned to the key's business, which
    needs a plan with enough locations.
    """
    return await keys.reactivate_own(services, caller, client_id)


@routes.endpoint("GET /businesses", access=USER, data=BusinessList, no_store=False)
async def list_businesses(services: Services, caller: Caller) -> BusinessList:
    """List your businesses.

    A key is created for one of them.
    """
    return await keys.businesses(services, caller)
