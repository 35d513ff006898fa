"""Parsing of compact tokens: one encoding, no duplicate field, exact numbers."""

import pytest

from profilesvc.tokens.jose import b64, b64_decode, is_compact, is_instant, json_object, unverified

HEADER, PAYLOAD = b64(b'{"alg":"x"}'), b64(b'{"a":1}')


def test_a_token_is_three_parts_of_so_many_characters_together() -> None:
    assert is_compact("a.b.c", 5)
    assert not is_compact("a.b.c", 4)
    for text in ("", "a.b", "a.b.", "a.b.c.d", "a.b.c\n", "a.b.c=", "a.b.é"):
        assert not is_compact(text, 100), text


@pytest.mark.parametrize("length", range(5))
def test_base64url_comes_back(length: int) -> None:
    raw = bytes(range(251, 251 + length))
    assert b64_decode(b64(raw)) == raw


@pytest.mark.parametrize("part", ["AR", "AAB", "AQ==", "A", "+/8", "A Q"])
def test_base64url_has_one_spelling(part: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  binascii has its own words
        b64_decode(part)


def test_every_part_has_one_spelling_the_signature_too() -> None:
    assert unverified(f"{HEADER}.{PAYLOAD}.AQ") == ({"alg": "x"}, {"a": 1})
    for token in (f"{HEADER}.{PAYLOAD}.AR", f"{HEADER}.{PAYLOAD}", f"{HEADER}.{PAYLOAD}.AQ.AQ"):
        with pytest.raises(ValueError, match=r"canonical|unpack"):
            unverified(token)


def test_a_part_is_an_object_without_duplicate_fields() -> None:
    assert json_object(b'{"a":{"b":1},"b":2}') == {"a": {"b": 1}, "b": 2}
    for raw in (b"[]", b'"a"', b"1", b"null"):
        with pytest.raises(TypeError):
            json_object(raw)
    for raw in (b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b"", b"{", b'{"a":"\xff"}'):
        with pytest.raises(ValueError):  # noqa: PT011  json has its own words
            json_object(raw)


def test_an_instant_is_a_whole_number_that_json_holds_exactly() -> None:
    assert all(is_instant(value) for value in (0, 1, 2**53 - 1))
    assert not any(is_instant(value) for value in (-1, 2**53, 1.0, True, False, "1", None))
