"""D-30, D-31: origins of pages, the site that WordPress names, and the setting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain.domains import Origin, allowed_domains, origin_allowed, parse_origin, site_host
from profilesvc.domain.heartbeats import site_mismatch
from profilesvc.domain.time import DAY
from profilesvc.settings import Settings, SettingsError, load
from support.cases.origins import DOMAINS, GOOD, HOSTILE, MALFORMED

ALLOWED = allowed_domains("example.com", list(DOMAINS["allowed_domains"]), development=False)


def accepted(text: str, allowed: list[str], *, development: bool = False) -> bool:
    origin = parse_origin(text)
    return origin is not None and origin_allowed(origin, allowed, development=development)


@pytest.mark.parametrize("text", GOOD)
def test_A123_allowed_origins_are_recognised(text: str) -> None:
    assert accepted(text, ALLOWED)


@pytest.mark.parametrize("text", [*HOSTILE, "https://example.com\n", "\nhttps://example.com", "https://example.com\0"])
def test_A123_hostile_origins_are_refused(text: str) -> None:
    assert not accepted(text, ALLOWED, development=True)


def test_A123_http_is_for_development() -> None:
    assert accepted("http://example.com", ALLOWED, development=True)
    assert not accepted("http://example.com", ALLOWED)


def test_a_key_without_domains_accepts_every_valid_origin() -> None:
    for text in ("https://any.example", "http://any.example:8080", "https://127.0.0.1", "http://[::1]:3000"):
        assert accepted(text, [])
    for text in MALFORMED:
        assert not accepted(text, [])


def test_an_origin_is_scheme_host_and_port() -> None:
    assert parse_origin("HTTPS://Example.com") == Origin("https", "example.com", 443)
    assert parse_origin("http://example.com") == Origin("http", "example.com", 80)
    assert parse_origin("http://[::1]:3000") == Origin("http", "[::1]", 3000)
    assert parse_origin("https://a.example:65535") == Origin("https", "a.example", 65_535)
    assert parse_origin("https://a.example:65536") is None
    assert parse_origin("https://" + "a." * 145 + "ab") is not None  # 300 characters
    assert parse_origin("https://" + "a." * 145 + "abc") is None


@given(st.text(max_size=30), st.sampled_from(["https://{}example.com", "https://example.com{}", "{}://example.com"]))
def test_nothing_around_an_allowed_domain_passes(text: str, template: str) -> None:
    """Whatever is put before or behind: what passes is the same host, and nothing but a port is added."""
    origin = parse_origin(template.format(text))
    if origin is not None and origin_allowed(origin, ["example.com"], development=False):
        assert (origin.scheme, origin.host.removesuffix(".")) == ("https", "example.com")


@pytest.mark.parametrize(
    ("user_agent", "host"),
    [
        ("WordPress/6.5; https://example.com/blog", "example.com"),
        ("WordPress/6.5; https://example.com", "example.com"),
        ("WordPress/6.8.1-alpha-1; http://WWW.Example.com:8080/?x", "www.example.com:8080"),
        ("WordPress/6.5; https://example.com; extra", "example.com"),
        ("WordPress/6.5;https://bücher.example/", "xn--bcher-kva.example"),
        ("WordPress/6.5; https://user:pw@staging.example/", "staging.example"),
        ("WordPress/6.5; http://localhost:8888/wp", "localhost:8888"),
        ("WordPress/6.5; http://192.168.0.5/", "192.168.0.5"),
        ("WordPress/6.5; http://[::1]:80/", "[::1]"),
        ("WordPress/6.5; http://mybox", "mybox"),
        ("WordPress/6.5; https://", None),
        ("WordPress/6.5; example.com", None),
        ("WordPress/6.5", None),
        ("Mozilla/5.0 (WordPress/6.5; https://example.com)", None),
        ("curl/8.0", None),
        ("", None),
        ("WordPress/6.5; https://" + "x" * 300, None),
        ("WordPress/6.5; https://a\x00b.example/", None),
        ("WordPress/" + "6" * 10_000 + "; https://example.com", None),
    ],
)
def test_the_site_that_wordpress_names(user_agent: str, host: str | None) -> None:
    assert site_host(user_agent) == host


NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("hosts", "other_at", "allowed", "expected"),
    [
        ((None, None), None, [], False),
        ((None, None), None, ["a.example"], False),
        (("a.example", None), None, [], False),
        (("a.example", None), None, ["a.example"], False),
        (("b.example", None), None, ["a.example"], True),
        (("a.example", "b.example"), NOW - DAY + 1, [], True),
        (("a.example", "b.example"), NOW - DAY, [], False),
        (("a.example", "b.example"), NOW, ["a.example", "b.example"], False),
        (("a.example", "b.example"), NOW, ["a.example"], True),
        (("a.example", "www.a.example"), NOW, ["a.example", "www.a.example"], False),
        (("a.example", "www.a.example"), NOW, [], False),
        (("www.a.example:8443", "a.example:8443"), NOW, [], False),
        (("a.example", "a.example:8443"), NOW, [], True),
    ],
)
def test_another_origin_is_a_mismatch(
    hosts: tuple[str | None, str | None], other_at: int | None, allowed: list[str], expected: bool
) -> None:
    assert site_mismatch(hosts, other_at, allowed, NOW) is expected


PRODUCTION = {
    "environment": "production",
    "base_url": "https://p.example",
    "provider": {"url": "https://g.example"},
    "tokens": {"key_passphrase": "correct horse battery staple"},
}


def test_dashboard_origins_are_separated_by_commas() -> None:
    text = "https://a.example, http://localhost:3000/,https://[::1]:8443"
    made = Settings(_env_file=None, dashboard_origins=text)
    assert made.dashboard_origins == ("https://a.example", "http://localhost:3000", "https://[::1]:8443")


@pytest.mark.parametrize(
    "text",
    [
        *("*", "null", "a.example", "https://", "https://a.example/path", "https://*.a.example", "ftp://a.example"),
        *("https://user@a.example", "https://a.example:x", "https://a.example:99999", "https://a.example?x"),
        *("https://bücher.example", "https://a.example https://b.example"),
    ],
)
def test_an_invalid_dashboard_origin_is_rejected_with_one_clear_line(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^PROFILESVC_DASHBOARD_ORIGINS: .* is not an origin such as https://"):
        load(_env_file=None, dashboard_origins=f"https://good.example,{text}")


def test_dashboard_origins_are_https_in_production() -> None:
    with pytest.raises(SettingsError, match="PROFILESVC_DASHBOARD_ORIGINS must start with https:// in production"):
        load(_env_file=None, **PRODUCTION, dashboard_origins="https://a.example,http://b.example")
    assert load(_env_file=None, **PRODUCTION, dashboard_origins="https://a.example").production
