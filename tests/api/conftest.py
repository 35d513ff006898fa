"""A client that checks what holds for every answer of the API, rate limits that a test sets, and local webhooks."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import httpx
import pytest

from conftest import Change, Dial
from profilesvc.delivery.transport import Transport
from profilesvc.limits.settings import LimitSettings
from profilesvc.services.context import Services
from profilesvc.settings import WebhookSettings
from support.api import ALICE
from support.browser.dashboard import Browser


@pytest.fixture
async def everywhere(http: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client that checks what holds for every answer."""

    async def check(response: httpx.Response) -> None:
        assert len(response.headers.get_list("x-request-id")) == 1
        assert response.headers["vary"].startswith("Origin")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "strict-transport-security" not in response.headers, "the service is reached by http"
        assert "access-control-allow-credentials" not in response.headers
        assert response.headers.get("access-control-allow-origin") != "*"
        assert "location" not in response.headers, "no redirect: it would lose Authorization"
        assert response.status_code not in range(300, 400)

    http.event_hooks["response"].append(check)
    return http


@pytest.fixture
def limited(change: Change) -> Callable[..., None]:
    """`limited(reads_per_key="3/minute")`: new counters with other rates."""
    return lambda **rates: change(limits=LimitSettings.model_validate(rates))


@pytest.fixture
def allowed(services: Services) -> Services:
    """Services that may send to this machine."""
    settings = services.settings.model_copy(update={"webhooks": WebhookSettings(deliver=False, allow_private=True)})
    return replace(services, settings=settings)


@pytest.fixture
async def local() -> AsyncIterator[Transport]:
    made = Transport(allow_private=True)
    yield made
    await made.aclose()


@pytest.fixture
async def browser(dial: Dial) -> AsyncIterator[Browser]:
    """Alice's browser, in which she has signed in."""
    async with dial() as client:
        made = Browser(client)
        await made.sign_in(ALICE)
        yield made
