"""The client of the OAuth host, where the host or the settings are unusual."""

import httpx
import pytest
from pydantic import SecretStr

from profilesvc.provider.consent import SCOPE, Consent, Endpoints
from profilesvc.settings import ProviderSettings

ORIGIN, TOKEN_URL = "https://provider.example", "https://oauth2.provider.example/token"


def consent(settings: dict[str, str], transport: httpx.AsyncBaseTransport | None = None) -> Consent:
    made = ProviderSettings.model_validate({"client_secret": SecretStr("secret"), **settings})
    return Consent(made, Endpoints.of(made, ORIGIN), transport)


@pytest.mark.parametrize(
    ("settings", "is_configured"),
    [
        ({}, False),
        ({"client_id": "client"}, True),
        ({"client_id": "client", "token_url": TOKEN_URL}, False),
        ({"client_id": "client", "token_url": TOKEN_URL, "authorize_url": f"{ORIGIN}/auth"}, True),
        ({"authorize_url": f"{ORIGIN}/auth"}, False),
    ],
)
def test_client_and_consent_page_are_required(settings: dict[str, str], is_configured: bool) -> None:
    assert consent(settings).is_configured is is_configured


@pytest.mark.parametrize(
    ("verified", "email"),
    [
        ({"email_verified": True}, "dana@example.com"),
        ({"email_verified": "true"}, "dana@example.com"),
        ({"email_verified": False}, ""),
        ({}, ""),
    ],
)
async def test_unverified_address_is_not_kept(verified: dict[str, object], email: str) -> None:
    """It would show the login under an address that can be anyone's."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(200, json={"access_token": "a", "refresh_token": "r", "scope": SCOPE})
        return httpx.Response(200, json={"sub": "1", "email": "dana@example.com", **verified})

    granted = await consent({"client_id": "client"}, httpx.MockTransport(answer)).redeem("code", "v" * 43, ORIGIN)
    assert (granted.subject, granted.email) == ("1", email)
