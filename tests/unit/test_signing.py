"""Tokens: what is issued and what is refused."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import KeyDates
from profilesvc.domain.time import DAY
from profilesvc.fixtures import fixture_path
from profilesvc.tokens.claims import TokenType
from profilesvc.tokens.keys import HmacKey, RsaKey, generate_hmac, generate_rsa, hmac_key, public_jwk, rsa_key
from profilesvc.tokens.signer import MAX_TOKEN_LENGTH, Keyring, KeySet, Signer, TokenRejected
from support.cases.hostile import BASE, CLAIMS, NOW, Forge, b64, confused, hostile, signer_of


@pytest.fixture(scope="module")
def key() -> RsaKey:
    return rsa_key(fixture_path("signing_key.pem").read_bytes())


@pytest.fixture(scope="module")
def secret() -> HmacKey:
    return hmac_key(fixture_path("refresh_key.pem").read_bytes())


@pytest.fixture
def signer(key: RsaKey, secret: HmacKey) -> Signer:
    return signer_of(BASE, key, secret)


@pytest.fixture(scope="module")
def forge(key: RsaKey) -> Forge:
    times = {"iat": NOW // 1000, "exp": NOW // 1000 + 60}
    return Forge(key, {"iss": BASE, "aud": BASE, **times, **CLAIMS}, NOW // 1000)


@pytest.fixture(scope="module")
def refresh_forge(forge: Forge, secret: HmacKey) -> Forge:
    return Forge(secret, {**forge.claims, "aud": f"{BASE}/api/v1/auth/token"}, forge.now, "rt+jwt")


def part(token: str, index: int) -> bytes:
    text = token.split(".")[index]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_a_token_has_exactly_these_headers_and_claims(signer: Signer, key: RsaKey) -> None:
    token = signer.issue("at+jwt", CLAIMS, NOW, 3600)
    assert json.loads(part(token, 0)) == {"alg": "RS256", "typ": "at+jwt", "kid": key.kid}
    times = {"iat": 1_767_323_045, "exp": 1_767_326_645}
    assert json.loads(part(token, 1)) == {"iss": BASE, "aud": BASE, **times, **CLAIMS}


def test_other_libraries_agree_with_the_signature_of_a_token(signer: Signer, key: RsaKey, secret: HmacKey) -> None:
    token = signer.issue("at+jwt", CLAIMS, NOW, 3600)
    signed = token.rpartition(".")[0].encode()
    key.public.verify(part(token, 2), signed, padding.PKCS1v15(), hashes.SHA256())
    token = signer.issue("rt+jwt", CLAIMS, NOW, 3600)
    assert json.loads(part(token, 0)) == {"alg": "HS256", "typ": "rt+jwt", "kid": secret.kid}
    assert part(token, 2) == hmac.digest(secret.secret, token.rpartition(".")[0].encode(), "sha256")


@pytest.mark.parametrize("typ", ["at+jwt", "rt+jwt"])
def test_the_same_claims_are_signed_to_the_same_bytes(signer: Signer, typ: TokenType) -> None:
    """A repeated refresh is signed again (D-10)."""
    assert signer.issue(typ, CLAIMS, NOW, 60) == signer.issue(typ, CLAIMS, NOW, 60)


def test_a_token_has_the_audience_of_its_type(signer: Signer) -> None:
    assert signer.audience("at+jwt") == BASE
    refresh = signer.issue("rt+jwt", CLAIMS, NOW, 3600)
    assert json.loads(part(refresh, 1))["aud"] == f"{BASE}/api/v1/auth/token"
    assert signer.verify(refresh, "rt+jwt", NOW)["fam"] == CLAIMS["fam"]
    for token, typ in [(refresh, "at+jwt"), (signer.issue("at+jwt", CLAIMS, NOW, 9), "rt+jwt")]:
        with pytest.raises(TokenRejected, match="invalid"):
            signer.verify(token, typ, NOW)  # type: ignore[call-overload]


def test_a_signing_key_is_named_by_its_thumbprint(key: RsaKey) -> None:
    numbers = key.public.public_numbers()
    n = b64(numbers.n.to_bytes(256, "big"))
    canonical = f'{{"e":"AQAB","kty":"RSA","n":"{n}"}}'.encode()
    assert key.kid == b64(hashlib.sha256(canonical).digest())
    assert public_jwk(key.public) == {"kty": "RSA", "n": n, "e": "AQAB"}


def test_a_signing_secret_is_named_by_its_thumbprint(secret: HmacKey) -> None:
    canonical = f'{{"k":"{b64(secret.secret)}","kty":"oct"}}'.encode()
    assert secret.kid == b64(hashlib.sha256(canonical).digest())
    assert str(secret.secret) not in repr(secret)
    assert str(secret.sealing) not in repr(secret)


def test_the_signer_rejects_every_hostile_token_and_accepts_the_valid_one(signer: Signer, forge: Forge) -> None:
    good, accepted, cases = forge.good(), [], list(hostile(forge))
    for name, token in cases:
        try:
            signer.verify(token, "at+jwt", NOW)
        except TokenRejected:
            assert signer.verify(good, "at+jwt", NOW).items() >= forge.claims.items()
        else:
            accepted.append(name)
    assert accepted == []
    assert len(cases) >= 150


def test_the_signer_rejects_every_confusion_of_access_and_refresh_tokens(
    signer: Signer, forge: Forge, refresh_forge: Forge
) -> None:
    accepted, cases = [], list(confused(forge, refresh_forge))
    for name, typ, token in cases:
        try:
            signer.verify(token, typ, NOW)
        except TokenRejected:
            assert signer.verify(forge.good(), "at+jwt", NOW).items() >= forge.claims.items()
            assert signer.verify(refresh_forge.good(), "rt+jwt", NOW).items() >= refresh_forge.claims.items()
        else:
            accepted.append(name)
    assert accepted == []
    assert len({token for _, _, token in cases}) >= 200


def test_the_signer_accepts_claims_at_their_limits(signer: Signer, forge: Forge) -> None:
    for token in [
        forge.with_claims(exp=forge.now + 1),
        forge.with_claims(iat=forge.now + 60),
        forge.with_claims(nbf=forge.now + 60),
        forge.with_claims(scope="user", sub="9223372036854775807", client_id="dashboard"),
    ]:
        assert signer.verify(token, "at+jwt", NOW)


def test_a_token_ends_with_the_second_that_exp_names(signer: Signer) -> None:
    token = signer.issue("at+jwt", CLAIMS, NOW, 60)
    end = (NOW // 1000 + 60) * 1000
    assert signer.verify(token, "at+jwt", end - 1)
    for now in (end, end + 1, end + 10**9):
        with pytest.raises(TokenRejected) as refusal:
            signer.verify(token, "at+jwt", now)
        assert refusal.value.reason == "expired"


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "malformed"), ("a.b", "malformed"), ("a.b.c", "invalid"), ("x" * MAX_TOKEN_LENGTH + "x", "malformed")],
)
def test_the_signer_separates_malformed_and_forged_tokens(signer: Signer, text: str, reason: str) -> None:
    with pytest.raises(TokenRejected) as refusal:
        signer.verify(text, "at+jwt", NOW)
    assert refusal.value.reason == reason


def test_only_our_own_tokens_are_rejected_as_expired(signer: Signer, forge: Forge) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    late = {**forge.claims, "iat": forge.now - 60, "exp": forge.now - 1}
    for token, reason in [(forge.sign(payload=late), "expired"), (forge.sign(None, late, other), "invalid")]:
        with pytest.raises(TokenRejected) as refusal:
            signer.verify(token, "at+jwt", NOW)
        assert refusal.value.reason == reason


def test_the_signer_caches_some_access_tokens_and_no_refresh_token(key: RsaKey, secret: HmacKey) -> None:
    """The cache is bounded, because memory must not grow with every token."""
    asked: list[str] = []

    class Counted(KeySet[Any]):
        def __getitem__(self, kid: str) -> Any:
            asked.append(kid)  # once for each signature that is verified
            return super().__getitem__(kid)

    ring = Keyring()
    ring.access, ring.refresh = Counted(), Counted()
    ring.replace([(KeyDates(key.kid, 0, DAY), key), (KeyDates(secret.kid, 0, DAY, alg="HS256"), secret)])
    signer = Signer(ring, BASE, cache_size=2)
    one, two, three = (signer.issue("at+jwt", {**CLAIMS, "jti": jti * 21 + "A"}, NOW, 60) for jti in "abc")
    refresh = signer.issue("rt+jwt", CLAIMS, NOW, 60)

    def verified(*tokens: tuple[str, TokenType]) -> int:
        asked.clear()
        for token, typ in tokens:
            signer.verify(token, typ, NOW)
        return len(asked)

    assert verified((one, "at+jwt"), (two, "at+jwt")) == 2
    assert verified((one, "at+jwt"), (two, "at+jwt")) == 0
    assert verified((refresh, "rt+jwt"), (refresh, "rt+jwt"), (one, "at+jwt")) == 2
    assert verified((three, "at+jwt"), (one, "at+jwt"), (three, "at+jwt")) == 2


def test_a_cached_token_is_not_valid_as_another_type(signer: Signer) -> None:
    token = signer.issue("at+jwt", CLAIMS, NOW, 60)
    signer.verify(token, "at+jwt", NOW)
    with pytest.raises(TokenRejected):
        signer.verify(token, "rt+jwt", NOW)


def test_a_user_id_beyond_those_of_a_database_is_rejected(signer: Signer, forge: Forge) -> None:
    with pytest.raises(TokenRejected):
        signer.verify(forge.with_claims(scope="user", sub=str(2**63), client_id="dashboard"), "at+jwt", NOW)


def test_a_refresh_token_of_a_user_is_rejected(signer: Signer, refresh_forge: Forge) -> None:
    user = {"scope": "user", "sub": "1", "client_id": "dashboard"}
    with pytest.raises(TokenRejected):
        signer.verify(refresh_forge.with_claims(**user), "rt+jwt", NOW)
    assert signer.verify(refresh_forge.good(), "rt+jwt", NOW)


def test_a_refresh_token_without_a_family_is_rejected(signer: Signer) -> None:
    for missing in ("fam", "gen", "auth_time"):
        claims = {name: value for name, value in CLAIMS.items() if name != missing}
        with pytest.raises(TokenRejected):
            signer.verify(signer.issue("rt+jwt", claims, NOW, 60), "rt+jwt", NOW)


def test_a_ring_signs_with_the_active_key_and_accepts_tokens_of_every_other(key: RsaKey) -> None:
    """A key that is announced signs early on a host whose clock is ahead: its tokens are valid (A077)."""
    retired, announced = generate_rsa(), generate_rsa()
    dates = [KeyDates(k.kid, 0, at) for k, at in ((retired, 0), (key, NOW), (announced, NOW + 1))]
    signer = Signer(Keyring(zip(dates, (retired, key, announced), strict=True)), BASE)
    header = json.loads(part(signer.issue("at+jwt", CLAIMS, NOW, 60), 0))
    assert header["kid"] == key.kid
    for at, signing in ((NOW - 1, retired), (NOW, key), (NOW + 1, announced)):
        token = signer.issue("at+jwt", CLAIMS, at, 60)
        assert signer.verify(token, "at+jwt", NOW)["kid"] == signing.kid
        assert token == signer.issue("at+jwt", CLAIMS, at, 60, signing.kid)
    assert [jwk["kid"] for jwk in signer.keyring.jwks()] == [retired.kid, key.kid, announced.kid]


def test_a_removed_key_verifies_nothing_not_even_cached_tokens(key: RsaKey) -> None:
    other = generate_rsa()
    signer = signer_of(BASE, key, other)
    tokens = [signer.issue("at+jwt", CLAIMS, NOW, 60, kid) for kid in (key.kid, other.kid)]
    assert signer.verify(tokens[0], "at+jwt", NOW)
    signer.keyring.replace([(KeyDates(other.kid, 0, 0), other)])
    with pytest.raises(TokenRejected, match="invalid"):
        signer.verify(tokens[0], "at+jwt", NOW)
    assert signer.verify(tokens[1], "at+jwt", NOW)
    with pytest.raises(KeyError):
        signer.issue("at+jwt", CLAIMS, NOW, 60, key.kid)


def test_refresh_tokens_have_keys_of_their_own(key: RsaKey, secret: HmacKey) -> None:
    newer = generate_hmac()
    signer = signer_of(BASE, key, secret, newer)
    tokens = [signer.issue("rt+jwt", CLAIMS, 2 * DAY, 60, kid) for kid in (secret.kid, None, newer.kid)]
    assert tokens[1] == tokens[2]
    assert [signer.verify(token, "rt+jwt", 2 * DAY)["kid"] for token in tokens[:2]] == [secret.kid, newer.kid]
    assert [jwk["kid"] for jwk in signer.keyring.jwks()] == [key.kid]
    for kid, typ in ((key.kid, "rt+jwt"), (secret.kid, "at+jwt")):
        with pytest.raises(KeyError):
            signer.issue(typ, CLAIMS, NOW, 60, kid)  # type: ignore[arg-type]
    signer.keyring.replace([(KeyDates(key.kid, 0, 0), key), (KeyDates(newer.kid, 0, 0, alg="HS256"), newer)])
    with pytest.raises(TokenRejected, match="invalid"):
        signer.verify(tokens[0], "rt+jwt", 2 * DAY)
    assert signer.verify(tokens[1], "rt+jwt", 2 * DAY)


def test_the_active_secret_seals_and_the_others_open(secret: HmacKey) -> None:
    newer = generate_hmac()
    dates = [KeyDates(secret.kid, 0, 0, alg="HS256"), KeyDates(newer.kid, 0, NOW, alg="HS256")]
    ring = Keyring(zip(dates, (secret, newer), strict=True))
    assert ring.sealing_keys(NOW - 1) == [newer.sealing, secret.sealing]
    assert ring.sealing_keys(NOW) == [secret.sealing, newer.sealing]
    assert len({secret.secret, secret.sealing, newer.secret, newer.sealing}) == 4


@pytest.mark.parametrize("typ", ["at+jwt", "rt+jwt"])
def test_a_ring_without_a_key_for_a_type_signs_no_token_of_it(key: RsaKey, secret: HmacKey, typ: TokenType) -> None:
    signer = signer_of(BASE, secret if typ == "at+jwt" else key)
    assert not signer.keyring.is_complete
    with pytest.raises(ServiceError):
        signer.issue(typ, CLAIMS, NOW, 60)
