"""docs/format.md: the JSON that plugins send."""

import json

import httpx

from support.pages.blocks import proven_by


async def test_the_profile_of_the_page_is_accepted(alice: httpx.AsyncClient) -> None:
    (block,) = proven_by("docs/format.md", "test_the_profile_of_the_page_is_accepted")
    response = await alice.post("/api/v1/sync/locations%2F111", json=json.loads(block.text))
    assert response.status_code == 200, response.text
    assert response.json()["data"]["fieldsFiltered"] == []
