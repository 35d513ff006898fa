"""A good token changed at random, thousands of times: none of them is accepted."""

import base64
import json
import random
from typing import Any

import pytest

from profilesvc.fixtures import fixture_path
from profilesvc.tokens.keys import rsa_key
from profilesvc.tokens.signer import TokenRejected
from support.cases.hostile import BASE, CLAIMS, NOW, b64, dumps, signer_of
from support.effort import effort


def part(token: str, index: int) -> bytes:
    text = token.split(".")[index]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def character(chance: random.Random) -> str:
    return chance.choice([chance.choice("Aa0-_.=+/ \n\0"), chr(chance.randrange(1, 0xD800))])


def replaced(token: str, chance: random.Random) -> str:
    where = chance.randrange(len(token))
    return token[:where] + character(chance) + token[where + 1 :]


def inserted(token: str, chance: random.Random) -> str:
    where = chance.randrange(len(token) + 1)
    return token[:where] + character(chance) * chance.randint(1, 3) + token[where:]


def cut(token: str, chance: random.Random) -> str:
    start, end = sorted(chance.randrange(len(token) + 1) for _ in range(2))
    return token[:start] + token[end:]


def shuffled(token: str, chance: random.Random) -> str:
    return ".".join(chance.choices(token.split("."), k=chance.randint(1, 4)))


def with_a_bit_flipped(token: str, chance: random.Random) -> str:
    index = chance.randrange(3)
    raw = bytearray(part(token, index))
    where = chance.randrange(len(raw))
    raw[where] ^= 1 << chance.randrange(8)
    return exchanged(token, index, bytes(raw))


def with_a_member_changed(token: str, chance: random.Random) -> str:
    """Another value or type for one field of the header or the payload, or one field less."""
    index = chance.randrange(2)
    document = json.loads(part(token, index))
    name = chance.choice([*document, "crit", "nbf"])
    value: Any = chance.choice([None, True, 0, -1, 1.5, "", "x", [], {}, [document.get(name)], str(document.get(name))])
    changed = {**document, name: value}
    if chance.random() < 0.2:
        del changed[name]
    return exchanged(token, index, dumps(changed))


def exchanged(token: str, index: int, raw: bytes) -> str:
    """The token with another part, under the old signature."""
    parts = token.split(".")
    parts[index] = b64(raw)
    return ".".join(parts)


MUTATIONS = (replaced, inserted, cut, shuffled, with_a_bit_flipped, with_a_member_changed)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(effort(1, 20)))
def test_accepts_nothing_but_the_original(seed: int) -> None:
    """Bits, bytes, segments, fields, types: only the original is accepted, whatever is changed."""
    signer = signer_of(BASE, rsa_key(fixture_path("signing_key.pem").read_bytes()))
    good, chance, accepted = signer.issue("at+jwt", CLAIMS, NOW, 60), random.Random(seed), []
    for _ in range(5_000):
        mutated = chance.choice(MUTATIONS)(good, chance)
        try:
            signer.verify(mutated, "at+jwt", NOW)
        except TokenRejected:
            continue
        if mutated != good:
            accepted.append(mutated)
    assert accepted == []
    assert signer.verify(good, "at+jwt", NOW)["sub"] == CLAIMS["sub"]
