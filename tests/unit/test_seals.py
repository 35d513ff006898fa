"""Sealed strings: page tokens, cursors, form tokens and the sign-in cookie."""

import hashlib
import string

import pytest
from itsdangerous import Signer

from profilesvc.domain.signing_keys import KeyDates
from profilesvc.tokens.keys import HmacKey, generate_hmac
from profilesvc.tokens.seals import Cipher, Seal
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


@pytest.mark.parametrize("content", ["1", "1767323045678-0000011101", "é.\n", "x" * 300])
def test_every_process_with_the_key_decrypts(content: str) -> None:
    older, newer = generate_hmac(), generate_hmac()
    encrypted = Cipher(ring(older), "cursor", NOW).encrypt(content)
    assert set(encrypted) <= set(ALPHABET)
    for keys in ([older], [older, newer], [newer, older]):
        assert Cipher(ring(*keys), "cursor", NOW).decrypt(encrypted) == content
    assert Cipher(ring(newer), "cursor", NOW).decrypt(encrypted) is None
    assert Cipher(ring(older), "other", NOW).decrypt(encrypted) is None


def test_equal_strings_are_equal_encrypted_and_any_change_is_rejected() -> None:
    cipher = Cipher(ring(generate_hmac()), "cursor", NOW)
    good = cipher.encrypt("0000000000000011101")
    assert cipher.encrypt("0000000000000011101") == good
    assert "11101" not in good
    changed = {good[:n] + letter + good[n + 1 :] for n in range(len(good)) for letter in f"{ALPHABET}.= \n+/é"}
    changed |= {good[:n] for n in range(len(good))} | {f"{good}A", f"{good}=", f" {good}"}
    assert [text for text in changed - {good} if cipher.decrypt(text) is not None] == []
