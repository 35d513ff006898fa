"""Sealed strings: page tokens, form tokens and the sign-in cookie."""

import hashlib
import string

import pytest
from itsdangerous import Signer

from profilesvc.domain.signing_keys import KeyDates
from profilesvc.tokens.keys import HmacKey, generate_hmac
from profilesvc.tokens.seals import Seal
from profilesvc.tokens.signer import Keyring

NOW = 1_767_323_045_678
ALPHABET = string.ascii_letters + string.digits + "-_"


def ring(*keys: HmacKey) -> Keyring:
    """The keys, oldest first; the last one is active."""
    return Keyring((KeyDates(key.kid, number, number, alg="HS256"), key) for number, key in enumerate(keys))


@pytest.mark.parametrize("content", ["", "1767323045678.11101", "é.\n", "x" * 3_000])
def test_every_process_with_the_key_unseals(content: str) -> None:
    older, newer = generate_hmac(), generate_hmac()
    sealed = Seal(ring(older), "page", NOW).seal(content)
    assert set(sealed) <= {*ALPHABET, "."}
    for keys in ([older], [older, newer], [newer, older]):
        assert Seal(ring(*keys), "page", NOW).unseal(sealed) == content
    assert Seal(ring(newer), "page", NOW).unseal(sealed) is None  # the key was removed
    assert Seal(ring(older), "form", NOW).unseal(sealed) is None


def test_the_newest_key_seals() -> None:
    older, newer = generate_hmac(), generate_hmac()
    assert Seal(ring(older, newer), "page", NOW).seal("a") == Seal(ring(newer), "page", NOW).seal("a")


def test_any_change_is_rejected_even_another_encoding() -> None:
    seal = Seal(ring(generate_hmac()), "page", NOW)
    good = seal.seal("1767323045678.11101")
    content, _, signature = good.rpartition(".")
    changed = {good[:n] + letter + good[n + 1 :] for n in range(len(good)) for letter in f"{ALPHABET}.= \n+/é"}
    changed |= {good[:n] + good[n + 1 :] for n in range(len(good))} | {
        f"{good[:n]} {good[n:]}" for n in range(len(good))
    }
    changed |= {
        "",
        ".",
        content,
        f"{content}.",
        f".{signature}",
        f"{good}=",
        f"{good}\n",
        f"{good}.{signature}",
        "\ud800",
    }
    assert len(changed - {good}) > 4_000
    assert [text for text in changed - {good} if seal.unseal(text) is not None] == []
    assert seal.unseal(good) == "1767323045678.11101"


def test_no_other_key_unseals() -> None:
    key = generate_hmac()
    for guess in (b"", b"\0" * 32, key.kid.encode(), key.secret, b"page"):
        forger = Signer(guess, salt="page", key_derivation="hmac", digest_method=hashlib.sha256)
        assert Seal(ring(key), "page", NOW).unseal(forger.sign("YQ").decode()) is None
