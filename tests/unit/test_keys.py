"""D-21, D-22, D-23, D-27: names, ids, secrets and holds of API keys."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain import keys
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.errors import ServiceError


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My WordPress Site", "my_wordpress_site"),
        ("two  spaces", "two__spaces"),
        ("Ünï / .. %2F ?#", "n___2f_"),
        ("\N{ROCKET}\N{ROCKET}", "key"),
        ("a" * 70, "a" * 64),
        ("kept-as_is-9", "kept-as_is-9"),
        ("\N{KELVIN SIGN}elvin\N{NO-BREAK SPACE}x", "kelvinx"),
    ],
)
def test_a_name_becomes_a_slug(name: str, slug: str) -> None:
    assert keys.slug(name) == slug


@pytest.mark.slow
@given(st.integers(1, 2**63 - 1), st.integers(0, 10**13), st.text(min_size=1, max_size=100))
def test_every_client_id_is_in_the_grammar(user: int, now: int, name: str) -> None:
    assert keys.CLIENT_ID.match(keys.new_client_id(user, now, name))


@pytest.mark.parametrize(
    "text",
    ["", "svcid_1_1_", "svcid_1_1_A", "svcid_1_1_a\n", " svcid_1_1_a", "svcid_1_1_a%", "svcid_1_1_a' OR '1'='1", "x"],
)
def test_other_texts_are_not_client_ids(text: str) -> None:
    assert keys.CLIENT_ID.match(text) is None


def test_name_is_trimmed_and_bounded() -> None:
    assert keys.clean_name("  Shop ") == "Shop"
    assert keys.clean_name("x" * 100) == "x" * 100
    for bad in ("", " \t ", "x" * 101):
        with pytest.raises(ServiceError) as refusal:
            keys.clean_name(bad)
        assert refusal.value.details["errors"][0]["field"] == "name"


def test_secret_is_48_bytes_of_standard_base64() -> None:
    entropy = SeededEntropy("keys")
    secret = keys.new_secret(entropy)
    assert len(secret) == 64
    assert len(base64.b64decode(secret, validate=True)) == 48
    assert keys.new_secret(entropy) != secret


@pytest.mark.parametrize("pepper", [None, b"pepper"])
def test_only_the_exact_secret_matches(pepper: bytes | None) -> None:
    secret = keys.new_secret(SeededEntropy("keys"))
    digest = keys.secret_digest(secret, pepper)
    assert keys.secret_matches(secret, digest, pepper)
    for wrong in (secret + "\n", secret + " ", secret + "=", secret.lower(), secret[:63], "", "\ud800", "ü"):
        assert not keys.secret_matches(wrong, digest, pepper)


def test_digest_is_sha256_and_depends_on_the_pepper() -> None:
    assert keys.secret_digest("s", None) == hashlib.sha256(b"s").hexdigest()
    assert keys.secret_digest("s", b"") == keys.secret_digest("s", None)
    assert len({keys.secret_digest("s", pepper) for pepper in (None, b"a", b"b")}) == 3
