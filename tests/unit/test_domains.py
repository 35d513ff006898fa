"""D-30, D-127, A029, A030, A109-A111: which site an address names, the domains of a key, and exact comparison."""

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain.domains import allowed_domains, domain_allowed, normal_domain, same_sites, site_host, site_of
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.hosts import canonical_host
from support.cases.sites import ADDRESSES, SAME


@pytest.mark.parametrize("case", ADDRESSES, ids=lambda case: case["address"])
def test_the_table_of_sites(case: dict[str, str | None]) -> None:
    """The address as a site, as a key's domain, in a credential check, and in the User-Agent of WordPress."""
    address = str(case["address"])
    assert [_result(site_of, address)[0], _result(normal_domain, address, development=False)[1]] == [
        case["site"],
        case["refused"],
    ]
    if case["refused"] is None:
        assert normal_domain(address, development=False) == case["site"]
    assert domain_allowed(address, [], development=False) is (case["site"] is not None)
    if address.lower().startswith("http") and case["site"] and "?" not in address:
        utf_8 = address.encode().decode("latin-1")
        assert {site_host(f"WordPress/6.8; {each}") for each in (address, utf_8)} == {case["site"]}


@pytest.mark.parametrize("case", SAME, ids=lambda case: f"{case['one']} {case['other']}")
def test_the_table_of_the_same_sites(case: dict[str, object]) -> None:
    one, other, allowed = site_of(str(case["one"])), site_of(str(case["other"])), case["allowed"]
    assert isinstance(allowed, list)
    assert [other in same_sites(one, allowed), one in same_sites(other, allowed)] == [case["same"]] * 2


def _result(rule: object, *values: object, **options: object) -> tuple[str | None, str | None]:
    try:
        return rule(*values, **options), None  # type: ignore[operator]
    except ValueError as error:
        return None, str(error)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_a_canonical_host_is_stable_and_what_browsers_and_idna_agree_on(text: str) -> None:
    """IDNA 2008 is stricter than browsers, but where it accepts a host its A-labels are the same."""
    host = _result(canonical_host, text)[0]
    if host is not None:
        assert canonical_host(host) == host
        assert host.isascii()
    try:
        strict = idna.encode(text, uts46=True, std3_rules=True).decode().removesuffix(".")
    except (idna.IDNAError, UnicodeError):
        return
    if not text.endswith("..") and not strict.rpartition(".")[2].isdigit():
        assert host == strict


@pytest.mark.parametrize("text", ["1_0.5", "+1.2", "1.2.3.4.0x", "08.1", "a" * 2_000, "[::1%1]", "[]", "٣.1"])
def test_numbers_of_python_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        canonical_host(text)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.com.", "example.com"),
        ("  example.com ", "example.com"),
        ("https://Example.com:8443/x", "example.com:8443"),
        ("https://WWW.Example.com:443/path", "www.example.com"),
        ("HTTP://example.com?x=1#y", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("example.com:", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("\uff45xample\u3002com", "example.com"),
        ("shop.example.co.uk", "shop.example.co.uk"),
        ("de--site.netlify.app", "de--site.netlify.app"),
        ("owner.github.io", "owner.github.io"),
        ("a." * 125 + "com", "a." * 125 + "com"),
        ("www.www.example.com", "www.www.example.com"),
    ],
)
def test_valid_domains_have_a_normal_form(text: str, domain: str) -> None:
    assert normal_domain(text, development=False) == domain


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "http://", "https:///path", ".", "..", "a..b", ".example.com", "example.com.."),
        *("*.example.com", "*", "co.uk", "com", "github.io", "word", "www"),
        *("127.0.0.1", "http://127.0.0.1:80/", "127.1", "0x7f.1", "2130706433", "1.2.3.4.", "10.0.0.256"),
        *("\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021"),
        *("[::1]", "http://[::1]:8080/", "::1", "fe80::1", "[::ffff:1.2.3.4]"),
        *("user@x.com", "user:pass@x.com", "example.com@evil.com", "https://example.com@evil.com/"),
        *("example.com%00.evil.com", "example.com\n", "\nexample.com", "example.com\x00", "exam ple.com", "a\tb.com"),
        *("ftp://example.com", "javascript://example.com", "//example.com", "example.com\\@evil.com"),
        *("example.com:99999999", "example.com:80:80", "example.com:x", "exam_ple.com", "-a.com", "a-.com"),
        *("a" * 64 + ".com", "a." * 125 + "info", "x" * 3000 + ".com", "xn--zz--.com", "exa,mple.com", "\ud800.com"),
        *("localhost", "LOCALHOST:3000", "app.localhost", "example.com\N{NO-BREAK SPACE}", "example.com\u2028"),
    ],
)
def test_invalid_domains_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|localhost"):
        normal_domain(text, development=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://", "must name a domain such as example.com"),
        ("127.0.0.1", "must be a domain name, not an IP address"),
        ("[::1]", "must be a domain name, not an IP address"),
        ("*.example.com", "must be a plain domain, without user info, wildcards or escapes"),
        ("user@x.com", "must be a plain domain, without user info, wildcards or escapes"),
    ],
)
def test_the_message_names_the_rule(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        normal_domain(text, development=False)


def test_a_path_is_looked_at_before_it_is_left_out() -> None:
    assert normal_domain("https://example.com/" + "x" * 2_028, development=False) == "example.com"
    for path in ("x" * 2_029, "a b", "a\tb", "a\N{NO-BREAK SPACE}b", "\x7f"):
        with pytest.raises(ValueError, match="must not"):
            normal_domain(f"https://example.com/{path}", development=False)


def test_the_longest_name_that_has_a_twin() -> None:
    longest = "a." * 123 + "com"
    assert allowed_domains(longest, [], development=False) == [longest, f"www.{longest}"]
    assert allowed_domains("b" + longest, [], development=False) == ["b" + longest]


def test_localhost_in_development_only() -> None:
    assert normal_domain("http://localhost:3000/", development=True) == "localhost:3000"
    assert allowed_domains("localhost", [], development=True) == ["localhost"]


@pytest.mark.parametrize(
    ("primary", "extras", "allowed"),
    [
        (None, [], []),
        (None, ["shop.example.com"], ["shop.example.com"]),
        ("example.com", [], ["example.com", "www.example.com"]),
        ("www.example.com", [], ["www.example.com", "example.com"]),
        ("https://Example.com:8443/x", [], ["example.com:8443", "www.example.com:8443"]),
        ("bücher.example", [], ["xn--bcher-kva.example", "www.xn--bcher-kva.example"]),
        (
            "example.com",
            ["WWW.example.com", "Example.COM.", "b.example"],
            ["example.com", "www.example.com", "b.example"],
        ),
        ("www.co.uk", [], ["www.co.uk"]),
        ("www.com", [], ["www.com"]),
        (None, ["Example.com"] * 50, ["example.com"]),
    ],
)
def test_the_list_of_allowed_domains_decides(primary: str | None, extras: list[str], allowed: list[str]) -> None:
    assert allowed_domains(primary, extras, development=False) == allowed


def test_every_bad_entry_is_named() -> None:
    with pytest.raises(ServiceError) as refusal:
        allowed_domains("*.example.com", ["good.example", "co.uk", "127.0.0.1"], development=False)
    fields = [error["field"] for error in refusal.value.details["errors"]]
    assert fields == ["primary_domain", "allowed_domains.1", "allowed_domains.2"]


def test_51_entries_are_too_many() -> None:
    with pytest.raises(ServiceError) as refusal:
        allowed_domains(None, [f"s{index}.example" for index in range(51)], development=False)
    assert [error["field"] for error in refusal.value.details["errors"]] == ["allowed_domains"]
    assert len(allowed_domains(None, [f"s{index}.example" for index in range(50)], development=False)) == 50


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ("https://WWW.Example.com:443/path", True),
        ("example.com.", True),
        ("example.com:8443", False),
        ("example.com.evil.com", False),
        ("evilexample.com", False),
        ("example.com@evil.com", False),
        ("example.com%00.evil.com", False),
        ("example.com\n", False),
        ("shop.example.com", False),
        ("example.co", False),
        ("", False),
    ],
)
def test_comparison_is_exact(site: str, expected: bool) -> None:
    assert domain_allowed(site, ["example.com", "www.example.com"], development=False) is expected


def test_unicode_site_against_its_a_label() -> None:
    allowed = allowed_domains("bücher.example", [], development=False)
    assert domain_allowed("https://www.BÜCHER.example/", allowed, development=False)
    assert domain_allowed("anything.example", [], development=False)


@pytest.mark.slow
@given(st.text(max_size=40))
def test_normal_form_is_stable_and_ascii(text: str) -> None:
    try:
        domain = normal_domain(text, development=True)
    except ValueError:
        return
    assert domain.isascii()
    assert domain == domain.lower()
    assert normal_domain(domain, development=True) == domain
