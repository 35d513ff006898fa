"""Signing keys: their states, their schedule, their names, and their form at rest (D-13)."""

import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain.signing_keys import (
    KNOWN_AFTER,
    KeyDates,
    Schedule,
    active,
    announced,
    due,
    earliest_start,
    expired_kids,
    in_order,
    state,
)
from profilesvc.domain.time import DAY
from profilesvc.fixtures import fixture_path
from profilesvc.tokens.jose import b64_decode
from profilesvc.tokens.keys import (
    generate_hmac,
    generate_rsa,
    hmac_key,
    load_or_create,
    pem_of,
    public_jwk,
    rsa_key,
    thumbprint,
)

NOW = 1_000 * DAY
PLAN = Schedule(rotate=90 * DAY, announce=14 * DAY, keep=91 * DAY)


def key(kid: str, active_from: int, removed_at: int | None = None) -> KeyDates:
    return KeyDates(kid, active_from - 14 * DAY, active_from, removed_at)


RING = [key("new", NOW + 1), key("old", NOW - 90 * DAY), key("gone", NOW, NOW), key("now", NOW)]


def test_the_states_of_keys_follow_from_the_time() -> None:
    assert {k.kid: state(k, RING, NOW) for k in RING} == {
        "new": "announced",
        "now": "active",
        "old": "retired",
        "gone": "removed",
    }
    assert {k.kid: state(k, RING, NOW - 1) for k in RING} == {
        "new": "announced",
        "now": "announced",
        "old": "active",
        "gone": "removed",
    }
    assert [k.kid for k in announced(RING, NOW - 1)] == ["now", "new"]


def test_one_key_is_active_even_if_the_clock_was_set_back() -> None:
    found = active(RING, 0)
    assert found is not None
    assert found.kid == "old"
    assert active([RING[2]], NOW) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=8), st.integers(0, 9))
def test_exactly_one_key_of_any_ring_is_active(made: list[tuple[int, int, bool]], now: int) -> None:
    ring = [KeyDates(str(n), c, f, 0 if gone else None) for n, (c, f, gone) in enumerate(made)]
    states = [state(k, ring, now) for k in ring]
    assert states.count("active") == (1 if in_order(ring) else 0)
    signing = active(ring, now)
    for k, found in zip(ring, states, strict=True):
        if signing is not None and found == "retired":
            assert k.active_from <= signing.active_from <= now
    assert signing is None or signing.kid not in expired_kids(ring, now, 0)


def test_a_key_is_announced_fourteen_days_before_the_ninetieth() -> None:
    ring = [key("a", NOW)]
    assert due(ring, NOW + 76 * DAY - 1, PLAN) is None
    assert due(ring, NOW + 76 * DAY, PLAN) == NOW + 90 * DAY
    ring.append(KeyDates("b", NOW + 76 * DAY, NOW + 90 * DAY))
    assert due(ring, NOW + 76 * DAY, PLAN) is None
    assert due(ring, NOW + 166 * DAY - 1, PLAN) is None


def test_a_key_is_announced_for_the_full_time_after_a_long_stop() -> None:
    assert due([key("a", NOW)], NOW + 500 * DAY, PLAN) == NOW + 514 * DAY


def test_a_key_from_a_file_is_not_rotated() -> None:
    assert due([key("a", NOW)], NOW + 500 * DAY, Schedule(None, 14 * DAY, 91 * DAY)) is None
    assert due([], NOW, PLAN) is None


def test_a_key_is_kept_until_its_last_token_has_ended() -> None:
    ring = [key("a", NOW), key("b", NOW + 90 * DAY)]
    assert expired_kids(ring, NOW + 181 * DAY - 1, PLAN.keep) == []
    assert expired_kids(ring, NOW + 181 * DAY, PLAN.keep) == ["a"]
    assert expired_kids(ring[:1], NOW + 10_000 * DAY, PLAN.keep) == []


def test_a_key_signs_when_every_process_has_it_or_no_other_can() -> None:
    assert earliest_start(NOW, RING, NOW) == NOW + KNOWN_AFTER
    assert earliest_start(NOW - DAY, RING, NOW) == NOW
    assert earliest_start(NOW, [], NOW) == NOW


def test_a_key_is_named_by_its_thumbprint() -> None:
    """RFC 7638 §3.1: the example there."""
    n = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs"
        "tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n9"
        "1CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    numbers = rsa.RSAPublicNumbers(65537, int.from_bytes(b64_decode(n), "big"))
    assert thumbprint(public_jwk(numbers.public_key())) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    made = generate_rsa()
    assert made.kid == thumbprint(public_jwk(made.public))


def test_a_key_is_stored_encrypted_with_a_passphrase() -> None:
    made = generate_rsa()
    pem = pem_of(made, b"correct horse")
    assert "ENCRYPTED" in pem
    assert rsa_key(pem.encode(), b"correct horse").kid == made.kid
    for wrong in (b"wrong", None):
        with pytest.raises((ValueError, TypeError)):
            rsa_key(pem.encode(), wrong)


def test_an_unencrypted_key_is_read_if_the_passphrase_came_later() -> None:
    pem = fixture_path("signing_key.pem").read_bytes()
    assert rsa_key(pem, b"correct horse").kid == rsa_key(pem).kid
    assert rsa_key(pem_of(rsa_key(pem), None).encode()).kid == rsa_key(pem).kid


def test_a_secret_is_stored_in_the_same_form_as_a_key() -> None:
    made = generate_hmac()
    for passphrase in (b"correct horse", None):
        pem = pem_of(made, passphrase)
        assert ("ENCRYPTED" in pem) == (passphrase is not None)
        assert hmac_key(pem.encode(), passphrase) == made
    for wrong in (b"wrong", None):
        with pytest.raises((ValueError, TypeError)):
            hmac_key(pem_of(made, b"correct horse").encode(), wrong)


def test_one_algorithm_does_not_read_the_keys_of_the_other() -> None:
    with pytest.raises(ValueError, match="2048"):
        rsa_key(pem_of(generate_hmac(), None).encode())
    with pytest.raises(ValueError, match="Ed25519"):
        hmac_key(fixture_path("signing_key.pem").read_bytes())


def test_a_key_must_be_rsa_of_2048_bits() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    for private in (weak, ec.generate_private_key(ec.SECP256R1())):
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with pytest.raises(ValueError, match="2048"):
            rsa_key(pem)


def test_the_parts_of_a_key_are_checked_once() -> None:
    """Parts that do not belong together are rejected, unless this key was checked before."""
    good = rsa_key(fixture_path("signing_key.pem").read_bytes())
    numbers = good.private.private_numbers()
    bad = rsa.RSAPrivateNumbers(
        numbers.p, numbers.q, numbers.d + 2, numbers.dmp1, numbers.dmq1, numbers.iqmp, numbers.public_numbers
    ).private_key(unsafe_skip_rsa_key_validation=True)
    pem = bad.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for checked in ((), {"another"}):
        with pytest.raises(ValueError, match=r"[Ii]nvalid"):
            rsa_key(pem, checked=checked)
    assert rsa_key(pem, checked={good.kid}).kid == good.kid


def test_a_key_file_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """The development issuer keeps its key in one."""
    path = tmp_path / "new" / "key.pem"
    made = load_or_create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_or_create(path).kid == made.kid
    assert list(path.parent.iterdir()) == [path]


def test_simultaneous_starts_use_one_key(tmp_path: Path) -> None:
    kids: list[str] = []
    path = tmp_path / "key.pem"
    threads = [threading.Thread(target=lambda: kids.append(load_or_create(path).kid)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kids) == 4
    assert set(kids) == {load_or_create(path).kid}
