"""A client id names its owner: one with another number, or one that no database can store, is an unknown client id."""

import httpx
import pytest

from conftest import AsUser
from profilesvc.contract.audit import AuditQuery
from profilesvc.domain.errors import ServiceError
from profilesvc.services import audit, keys
from profilesvc.services.context import Services
from support.api import BOB, Site, assert_error, assert_ok

TOKEN = "/api/v1/auth/token"
VALIDATE = "/api/v1/auth/validate-service-credentials"
KEYS = "/api/v1/developer/credentials"
# Another user, no user, the same number with a zero in front, the largest number, and numbers beyond it.
NUMBERS = ["2", "0", "999", "01", str(2**63 - 1), str(2**63), "9" * 19]


def moved(site: Site, number: str) -> str:
    """The client id of a key, with another owner."""
    _, _, rest = site.key["client_id"].split("_", 2)
    return f"svcid_{number}_{rest}"


@pytest.mark.parametrize("number", NUMBERS)
async def test_its_secret_is_refused_like_a_wrong_one(http: httpx.AsyncClient, plugin: Site, number: str) -> None:
    wrong = {**plugin.credentials, "client_secret": "wrong"}
    foreign = {**plugin.credentials, "client_id": moved(plugin, number)}
    grant = {"grant_type": "client_credentials"}
    for path, body in ((TOKEN, grant), ("/oauth2/token", grant), (VALIDATE, {})):
        is_form = path.startswith("/oauth2")
        answers = [
            await (http.post(path, data=body | sent) if is_form else http.post(path, json=body | sent))
            for sent in (wrong, foreign)
        ]
        assert answers[0].status_code == answers[1].status_code, path
        assert answers[0].content == answers[1].content, path
    assert_error(await http.post(TOKEN, json={**grant, **foreign}), 401, "AUTH_INVALID_TOKEN")
    assert_ok(await http.post(TOKEN, json={**grant, **plugin.credentials}))


@pytest.mark.parametrize("number", NUMBERS)
async def test_no_caller_finds_the_key_by_it(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site, services: Services, number: str
) -> None:
    client_id = moved(plugin, number)
    for user in (alice, await as_user(BOB)):
        assert_error(await user.delete(f"{KEYS}/{client_id}"), 404, "NOT_FOUND")
        assert_error(await user.get(f"{KEYS}/{client_id}/events"), 404, "NOT_FOUND")
        assert_error(await user.get(f"/api/v1/api-keys/{client_id}/status"), 404, "NOT_FOUND")
    with pytest.raises(ServiceError, match="no such API key"):
        await keys.revoke(services, None, client_id)
    with pytest.raises(ServiceError, match="no such API key"):
        await audit.key_trail(services, None, client_id, AuditQuery())
    assert_ok(await plugin.http.get("/api/v1/external-business/locations"))
