"""How often the most expensive requests ask the database, on both databases: each statement is a round trip."""

import httpx
import pytest

from profilesvc.services.context import Services
from support.api import assert_ok
from support.statement_counts import Sent, sent_by

POSTS, SYNC = "/api/v1/posts", "/api/v1/sync/111"
POST = {"languageCode": "en", "summary": "Fresh beans", "topicType": "STANDARD"}
PROFILE = {"title": "Harbour Coffee, Pier 9"}

pytestmark = pytest.mark.in_process("records the statements of the process")


async def statements_of(
    services: Services, client: httpx.AsyncClient, path: str, body: object, headers: dict[str, str]
) -> Sent:
    """What one request sends when the client is not new; its last use is noted once a minute."""
    assert_ok(await client.get("/api/v1/sync/history/111"))
    await services.background.drain()
    with sent_by(services) as sent:
        response = await client.post(
            path, json=body, headers=headers, params={"locationId": "111"} if path == POSTS else {}
        )
        assert response.is_success, response.text
        await services.background.drain()
    return sent


@pytest.mark.parametrize("who", ["user", "key"])
@pytest.mark.parametrize("name", ["post", "sync"])
@pytest.mark.parametrize("keyed", [False, True])
async def test_x(services, alice, as_service, name, who, keyed) -> None:
    client = alice if who == "user" else (await as_service()).http if False else alice
    if who == "key":
        site = await as_service()
        client = site.http if hasattr(site, "http") else site.client
    path, body = (POSTS, POST) if name == "post" else (SYNC, PROFILE)
    s = await statements_of(services, client, path, body, {"X-Idempotency-Key": "k"} if keyed else {})
    print(
        "COUNT",
        services.storage.dialect,
        name,
        who,
        keyed,
        len(s.statements),
        "reads",
        len(s.reads),
        "tx",
        s.transactions,
    )
    if keyed and who == "key":
        print("\n".join(x.replace("\n", " ")[:150] for x in s.statements))
