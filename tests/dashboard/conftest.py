"""Browsers in which people have signed in."""

from collections.abc import AsyncIterator

import httpx
import pytest

from conftest import Dial
from support.api import ALICE
from support.browser.dashboard import Browser, SignIn


@pytest.fixture
async def signed_in(dial: Dial) -> AsyncIterator[SignIn]:
    """`await signed_in(ALICE)`: a browser in which someone has signed in."""
    clients: list[httpx.AsyncClient] = []

    async def browser(email: str) -> Browser:
        clients.append(dial())
        made = Browser(clients[-1])
        await made.sign_in(email)
        return made

    yield browser
    for client in clients:
        await client.aclose()


@pytest.fixture
async def alice_there(signed_in: SignIn) -> Browser:
    """Alice, signed in."""
    return await signed_in(ALICE)


@pytest.fixture
async def visitor(dial: Dial) -> AsyncIterator[Browser]:
    """Somebody who has not signed in."""
    async with dial() as client:
        yield Browser(client)
