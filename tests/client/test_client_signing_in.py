"""A user of the client library who signed in at an identity provider."""

import pytest

from profilesvc.client import (
    AsyncOptions,
    AsyncProfileClient,
    InvalidToken,
    ProfileClient,
    SyncOptions,
    TransportFailed,
    ValidationFailed,
)
from support.clients.sdk import Recorded, Service


def id_token(service: Service, nonce: str | None = None) -> str:
    assert service.issuer is not None
    service.do(service.issuer.users(service.services))
    token = service.do(service.issuer.id_token(service.services, "demo-1", nonce))
    assert token is not None
    return token


def test_a_client_is_made_of_an_id_token(service: Service, options: SyncOptions, recorded: Recorded) -> None:
    with ProfileClient.signed_in(service.url, id_token(service, "n-1"), "n-1", **options) as alice:
        assert alice.businesses().businesses[0].name == "Harbour Coffee"
        assert "signed" not in repr(alice)
    assert recorded.calls == ["POST /api/v1/auth/token", "GET /api/v1/businesses"]


async def test_and_an_asynchronous_one(service: Service, async_options: AsyncOptions) -> None:
    client = await AsyncProfileClient.signed_in(service.url, id_token(service), **async_options)
    async with client as alice:
        assert (await alice.businesses()).businesses[0].name == "Harbour Coffee"
    with pytest.raises(InvalidToken):
        await AsyncProfileClient.signed_in(service.url, "a.b.c")


def test_an_id_token_is_exchanged_once(service: Service) -> None:
    token = id_token(service)
    with ProfileClient.anonymous(service.url) as nobody:
        granted = nobody.exchange_id_token(token)
        assert (granted.scope, granted.expires_in, granted.plan) == ("user", 604_800, "pro")
        with pytest.raises(InvalidToken) as caught:
            nobody.exchange_id_token(token)
        assert caught.value.details == {"reason": "revoked"}
        with pytest.raises(InvalidToken):
            nobody.exchange_id_token(id_token(service, "n-1"), "n-2")
        with pytest.raises(ValidationFailed):
            nobody.exchange_id_token(id_token(service), "n" * 256)


def test_an_exchange_with_a_lost_response_is_not_retried(
    service: Service, options: SyncOptions, recorded: Recorded
) -> None:
    """The exchange may have happened, and a second one would be refused for that."""
    token = id_token(service)
    recorded.lose = 1
    with pytest.raises(TransportFailed) as caught:
        ProfileClient.signed_in(service.url, token, **options)
    assert caught.value.sent
    assert recorded.calls == ["POST /api/v1/auth/token"]
