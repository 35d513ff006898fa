"""docs/identity.md: its exchange of an ID token, as written there."""

import json
import re

import httpx
import pytest

from support.identity.issuer import PATH, claims, signed
from support.pages.blocks import is_shown, proven_by


@pytest.mark.usefixtures("linked")
async def test_the_exchange_of_the_page_returns_a_user_token(http: httpx.AsyncClient) -> None:
    request, shown = proven_by("docs/identity.md", "test_the_exchange_of_the_page_returns_a_user_token")
    url, body = re.findall(r"curl -s https://[^/]+(\S+) .* -d '(.*)'", request.text, re.DOTALL)[0]
    assert url == PATH
    sent = json.loads(body.replace("<ID token>", signed(claims(nonce="n-1"))).replace("<nonce of the sign-in>", "n-1"))
    response = await http.post(url, json=sent)
    assert is_shown(shown, response.text), response.text
