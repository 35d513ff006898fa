"""Tokens: cached, renewed early, replaced once when rejected, never shown."""

import json
import socket

import httpx
import pytest

from profilesvc.client import (
    BearerAuth,
    InvalidToken,
    KeyDeactivated,
    ProfileClient,
    Retries,
    ServiceAuth,
    SyncOptions,
    TransportFailed,
)
from profilesvc.contract.keys import KeyCreated
from support.clients.sdk import PIER, TOKEN, Recorded, Service
from support.waiting import in_time


def test_a_token_is_renewed_five_minutes_early_by_the_refresh_token(
    service: Service, site: ProfileClient, recorded: Recorded
) -> None:
    site.heartbeat()
    service.clock.advance(minutes=54, seconds=59)
    site.heartbeat()
    assert recorded.grants == ["credentials"]
    service.clock.advance(seconds=1)
    site.heartbeat()
    service.clock.advance(minutes=55)
    site.heartbeat()
    assert recorded.grants == ["credentials", "refresh", "refresh"]


def test_a_client_uses_its_credentials_when_the_refresh_token_has_expired(
    service: Service, site: ProfileClient, recorded: Recorded
) -> None:
    site.heartbeat()
    service.clock.advance(days=31)
    assert site.heartbeat().received
    assert recorded.grants == ["credentials", "credentials"]
    assert recorded.calls.count("POST /api/v1/api-keys/heartbeat") == 2


def test_a_client_uses_its_credentials_when_the_refresh_token_is_rejected(
    service: Service, key: KeyCreated, recorded: Recorded, options: SyncOptions
) -> None:
    behind: SyncOptions = {**options, "clock": lambda: service.seconds() / 1000}
    with ProfileClient.service(service.url, key.client_id, key.client_secret, **behind) as site:
        site.heartbeat()
        service.clock.advance(days=40)  # 58 minutes by the client's slow clock
        assert site.heartbeat().received
    assert recorded.grants == ["credentials", "refresh", "credentials"]


def test_a_client_renews_after_a_rejection_if_the_clocks_disagree(
    service: Service, key: KeyCreated, recorded: Recorded, options: SyncOptions
) -> None:
    stopped: SyncOptions = {**options, "clock": lambda: 0.0}
    with ProfileClient.service(service.url, key.client_id, key.client_secret, **stopped) as site:
        made = site.create_post(PIER, {"summary": "One"})
        service.clock.advance(hours=2)
        again = site.create_post(PIER, {"summary": "Two"})
    assert made.name != again.name
    assert recorded.grants == ["credentials", "credentials"]


def test_a_client_never_uses_a_refresh_token_twice() -> None:
    now, grants = [0.0], list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v1/auth/token":
            grants.append(json.loads(request.content)["grant_type"])
            if len(grants) == 2:
                raise httpx.ReadError("the answer is lost")
        return httpx.Response(200, json={"status": "ok", "data": {**TOKEN, "businesses": []}})

    options: SyncOptions = {"transport": httpx.MockTransport(answer), "clock": lambda: now[0]}
    with ProfileClient.service("https://profiles.test", "id", "secret", **options) as site:
        site.businesses()
        now[0] = 3300.0
        site.businesses()
    assert grants == ["client_credentials", "refresh_token", "client_credentials"]


def test_a_client_keeps_a_valid_token_while_no_new_one_is_available() -> None:
    now, granting, grants = [0.0], [True], []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/api/v1/auth/token":
            return httpx.Response(200, json={"status": "ok", "data": {"businesses": []}})
        grants.append(now[0])
        return httpx.Response(200, json={"status": "ok", "data": TOKEN}) if granting[0] else httpx.Response(503)

    options: SyncOptions = {"transport": httpx.MockTransport(answer), "clock": lambda: now[0]}
    with ProfileClient.service("https://profiles.test", "id", "secret", **options) as site:
        site.businesses()
        granting[0] = False
        for at in (3300.0, 3310.0, 3331.0):
            now[0] = at
            site.businesses()
        assert grants == [0.0, 3300.0, 3331.0]
        granting[0] = True
        now[0] = 3599.0
        site.businesses()
        assert grants[-1] == 3599.0


def test_a_client_with_a_revoked_key_stops_after_one_grant(
    alice: ProfileClient, key: KeyCreated, site: ProfileClient, recorded: Recorded
) -> None:
    site.heartbeat()
    alice.revoke_key(key.client_id)
    with pytest.raises(InvalidToken) as caught:
        site.heartbeat()
    assert caught.value.reason == "revoked"
    assert recorded.grants == ["credentials", "credentials"]


def test_the_error_of_a_deactivated_key_has_the_reason(
    service: Service, key: KeyCreated, site: ProfileClient, recorded: Recorded
) -> None:
    site.heartbeat()
    service.deactivate(key.client_id)
    for _ in range(2):
        with pytest.raises(KeyDeactivated) as caught:
            site.heartbeat()
        assert caught.value.deactivation_reason == "billing_issue"
        assert caught.value.deactivated_at == "2026-01-02T03:04:05.678Z"
        assert caught.value.upgrade_url
        service.clock.advance(hours=1)  # the second time it is the grant that is refused
    assert recorded.grants == ["credentials", "refresh"]


def test_a_rejection_of_the_credentials_is_raised_at_once(
    service: Service, key: KeyCreated, recorded: Recorded, options: SyncOptions
) -> None:
    with ProfileClient.service(service.url, key.client_id, "wrong", **options) as site:
        with pytest.raises(InvalidToken) as caught:
            site.create_post(PIER, {"summary": "x"})
        assert caught.value.reason is None
    assert recorded.calls == ["POST /api/v1/auth/token"]


def test_a_rejection_of_a_user_token_is_raised(service: Service, recorded: Recorded, options: SyncOptions) -> None:
    with ProfileClient.user(service.url, f" {service.user_token()}\n", **options) as alice:
        alice.businesses()
        service.clock.advance(days=8)
        with pytest.raises(InvalidToken) as caught:
            alice.businesses()
        assert caught.value.reason == "expired"
    assert len(recorded.calls) == 2


def test_a_grant_keeps_to_the_time_limits_of_the_request(key: KeyCreated) -> None:
    """A service that accepts and never answers: the grant, which is no request of the client's own, ends too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options: SyncOptions = {"timeout": 0.2, "retries": Retries(attempts=1)}
        with (
            in_time(2, "the failure"),
            ProfileClient.service(url, "id", "secret", **options) as site,
            pytest.raises(TransportFailed) as caught,
        ):
            site.create_key(name="x", business_id=10, assigned_location_id=PIER)
        assert not caught.value.sent


def test_nothing_shows_a_secret(
    service: Service, key: KeyCreated, site: ProfileClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    token = service.user_token()
    with ProfileClient.user(service.url, token) as alice:
        alice.businesses()
        site.heartbeat()
        told = caplog.text + repr(site) + str(site._auth) + repr(alice) + str(vars(alice)) + str(vars(site))
    auth = site._auth
    assert isinstance(auth, ServiceAuth)
    assert auth._grant is not None
    for secret in (key.client_secret, token, auth._grant.access_token, str(auth._refresh_token)):
        assert secret not in told + repr(auth._grant) + repr(auth._credentials)


def test_a_token_with_spaces_is_rejected_without_repeating_it() -> None:
    with pytest.raises(ValueError, match=r"^a token is ASCII without spaces$"):
        BearerAuth("to ken")


def test_a_plain_httpx_client_can_use_the_tokens(service: Service, key: KeyCreated) -> None:
    auth = ServiceAuth(service.url, key.client_id, key.client_secret, ["business.read"])
    with httpx.Client(base_url=service.url, auth=auth, timeout=60) as client:
        assert client.get("/api/v1/external-business/locations/111").is_success
        assert client.post("/api/v1/sync/111", json={"title": "x"}).status_code == 403
