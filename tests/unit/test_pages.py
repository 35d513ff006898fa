"""D-30, D-31: which pages are accepted for whom, and when a request is refused for its page."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import make_settings
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import RequestInfo
from profilesvc.services import origins
from profilesvc.services.access import require_origin
from profilesvc.settings import Settings

OWN, SITE, LOCAL, EVIL = "http://profiles.test", "https://example.com", "http://localhost:3000", "https://evil.example"
DASHBOARD = "https://dashboard.example"


@dataclass
class Rules:
    """The one part of the services that is asked here."""

    settings: Settings


@pytest.fixture
def development(tmp_path: Path) -> Any:
    return Rules(make_settings(tmp_path, base_url=f"{OWN}/api"))


@pytest.fixture
def production(development: Any) -> Any:
    return Rules(development.settings.model_copy(update={"environment": "production"}))


@pytest.fixture
def configured(development: Any) -> Any:
    return Rules(development.settings.model_copy(update={"dashboard_origins": ["https://Dashboard.example:443"]}))


def a_key(*allowed: str) -> Any:
    """A key bound to these domains."""
    return SimpleNamespace(allowed_domains=json.dumps(allowed))


def readable(rules: Any, header: str | None, key: Any = None, *, known: bool = True) -> bool:
    """Whether a page may read the answer; when the caller is `known`, as a caller with this key, or as a user."""
    request = RequestInfo(origin_header=header)
    origins.read_header(rules.settings, request)
    if known:
        origins.decide(rules, request, key)
    if header is None or request.may_read:
        require_origin(request)
    else:
        with pytest.raises(ServiceError) as refusal:
            require_origin(request)
        assert refusal.value.kind is AUTH_INSUFFICIENT_PERMISSIONS
    return request.may_read


@pytest.mark.parametrize("known", [False, True])
def test_D31_pages_of_a_user(development: Any, production: Any, configured: Any, known: bool) -> None:
    """Before a caller is known the same pages may read, our own and the dashboard's."""
    for rules in (development, production, configured):
        assert readable(rules, OWN, known=known)
        for other in (EVIL, SITE, "https://profiles.test", f"{OWN}:8080", "null", "", f"{OWN}/api", None):
            assert not readable(rules, other, known=known), other
    for page in (LOCAL, "https://127.0.0.1", "http://LOCALHOST"):
        assert readable(development, page, known=known)
        assert not readable(production, page, known=known)
        assert not readable(configured, page, known=known)
    assert readable(configured, DASHBOARD, known=known)
    assert not readable(development, DASHBOARD, known=known)
    assert not readable(configured, "http://dashboard.example", known=known)


def test_D30_pages_of_a_key(development: Any, production: Any, configured: Any) -> None:
    key = a_key("example.com")
    for rules in (development, production, configured):
        assert readable(rules, OWN, key)
        assert readable(rules, SITE, key)
        for other in (EVIL, "https://shop.example.com", LOCAL, DASHBOARD, "null", None):
            assert not readable(rules, other, key), other
        assert readable(rules, EVIL, a_key())
        assert not readable(rules, "null", a_key())
    assert readable(development, "http://example.com", key)
    assert not readable(production, "http://example.com", key)
