"""`profilesvc provider`: the logins of owners, and the quota."""

import json
from contextlib import suppress

import pytest

from profilesvc.cli import opening
from profilesvc.provider.port import Granted, ProviderError
from profilesvc.services.context import Services
from profilesvc.services.logins import consent as provider_consent
from profilesvc.services.logins.consent import PendingConsent
from profilesvc.storage import locations
from support.command_line import Run, printed, refused
from support.database.redis_server import RedisServer


async def add(services: Services) -> None:
    """Connect a login whose refresh token the emulator accepts, and one that it has ended."""
    for subject, token in (("s1", "any"), ("s2", "1//ended")):
        granted = Granted(subject, f"{subject}@example.com", "openid", has_access=True, refresh_token=token)
        await provider_consent.store(services, PendingConsent(1, subject, 0, in_browser=False, link=""), granted)


def test_operator_lists_checks_and_disconnects_logins(run: Run) -> None:
    assert printed(run("provider", "connections", "list", "--json")) == []
    opening.run(add)
    listed = printed(run("provider", "connections", "list", "--json"))
    assert [(row["id"], row["email"], row["state"]) for row in listed] == [
        (1, "s1@example.com", "active"),
        (2, "s2@example.com", "active"),
    ]
    assert "any" not in str(listed)
    checked = printed(run("provider", "connections", "check", "1", "1", "--json"))
    assert checked == {"id": 1, "works": True, "accounts": ["accounts/1", "accounts/2", "accounts/3"]}
    failed = run("provider", "connections", "check", "1", "2", "--json")
    assert failed.exit_code == 1
    assert "reauth_required" in failed.stdout
    done = printed(run("provider", "connections", "disconnect", "1", "1", "--json"))
    assert (done["id"], done["disconnected"]) == (1, True)
    [left] = printed(run("provider", "connections", "list", "--json"))
    assert (left["id"], left["state"], left["last_error"]) == (2, "reauth_required", "invalid_grant")
    assert "There is no such connection" in refused(run("provider", "connections", "disconnect", "1", "1"))
    assert "There is no such connection" in refused(run("provider", "connections", "check", "2", "2"))


def test_operator_sees_the_quota(run: Run, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer) -> None:
    rows = json.loads(run("provider", "quota", "--json").stdout)
    assert {row["api"] for row in rows} >= {"information", "posts", "verifications", "accounts"}
    assert {row["used"] for row in rows} == {None}
    assert "counts on its own" in run("provider", "quota").stderr
    monkeypatch.setenv("PROFILESVC_LIMITS__STORAGE_URL", redis_server.url)
    monkeypatch.setenv("PROFILESVC_PROVIDER__REQUESTS_PER_MINUTE", "10")

    async def spend(services: Services) -> None:
        for number in range(11):
            with suppress(ProviderError):
                await services.provider.for_owner(number % 3).reviews("accounts/1", "locations/111")

    opening.run(spend, provider=True)
    shown = {row["api"]: row for row in printed(run("provider", "quota", "--json"))}
    assert shown["posts"] == {"api": "posts", "requests_per_minute": 10, "used": 10}
    assert shown["accounts"]["used"] == 0


def test_operator_enables_the_change_feed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NOTIFICATIONS__TOPIC" in refused(run("provider", "notifications", "enable"))
    monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__TOPIC", "projects/p/topics/profiles")
    monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__SERVICE_ACCOUNT", "push@p.iam.gserviceaccount.com")
    before = run("provider", "notifications", "status", "--json")
    assert (before.exit_code, {row["works"] for row in json.loads(before.stdout)}) == (1, {False})
    rows = printed(run("provider", "notifications", "enable", "--json"))
    assert {row["account"] for row in rows} == {"accounts/1", "accounts/2", "accounts/3"}
    assert {(row["works"], row["topic"], row["error"]) for row in rows} == {(True, "projects/p/topics/profiles", None)}
    assert printed(run("provider", "notifications", "status", "--json")) == rows
    opening.run(_elsewhere)
    failed = run("provider", "notifications", "enable", "--json")
    assert failed.exit_code == 1
    assert sum(not row["works"] for row in json.loads(failed.stdout)) == 1


async def _elsewhere(services: Services) -> None:
    """Let a location be of an account that the login does not see."""
    async with services.storage.write() as session:
        await locations.change(session, 1, "locations/111", account="accounts/99")
