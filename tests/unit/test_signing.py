"""Tokens: what is issued, what is refused, and the key in its file."""

import base64
import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from hostile import Forge, b64, hostile
from profilesvc.fixtures import fixture_path
from profilesvc.services.signing import (
    MAX_TOKEN_LENGTH,
    Signer,
    SigningKey,
    TokenRefused,
    load_or_create,
    public_jwk,
    signing_key,
)

BASE = "http://profiles.test"
NOW = 1_767_323_045_678
CLAIMS: dict[str, Any] = {
    "sub": "svcid_1_1_site",
    "client_id": "svcid_1_1_site",
    "scope": "service",
    "permissions": ["business.read"],
    "location": "locations/111",
    "business_id": 10,
    "epoch": 0,
    "jti": "j",
    "fam": "f",
    "gen": 0,
    "auth_time": NOW // 1000,
}


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return signing_key(fixture_path("signing_key.pem").read_bytes())


@pytest.fixture
def signer(key: SigningKey) -> Signer:
    return Signer(key, BASE)


@pytest.fixture(scope="module")
def forge(key: SigningKey) -> Forge:
    times = {"iat": NOW // 1000, "exp": NOW // 1000 + 60}
    return Forge(key, {"iss": BASE, "aud": BASE, **times, **CLAIMS}, NOW // 1000)


def part(token: str, index: int) -> bytes:
    text = token.split(".")[index]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class TestIssue:
    def test_writes_exactly_these_headers_and_claims(self, signer: Signer, key: SigningKey) -> None:
        token = signer.issue("at+jwt", CLAIMS, NOW, 3600)
        assert json.loads(part(token, 0)) == {"alg": "RS256", "typ": "at+jwt", "kid": key.kid}
        times = {"iat": 1_767_323_045, "exp": 1_767_326_645}
        assert json.loads(part(token, 1)) == {"iss": BASE, "aud": BASE, **times, **CLAIMS}

    def test_signs_so_that_another_library_agrees(self, signer: Signer, key: SigningKey) -> None:
        token = signer.issue("rt+jwt", CLAIMS, NOW, 3600)
        signed = token.rpartition(".")[0].encode()
        key.public.verify(part(token, 2), signed, padding.PKCS1v15(), hashes.SHA256())

    def test_is_for_the_api_or_for_the_token_route_alone(self, signer: Signer) -> None:
        assert signer.audience("at+jwt") == BASE
        refresh = signer.issue("rt+jwt", CLAIMS, NOW, 3600)
        assert json.loads(part(refresh, 1))["aud"] == f"{BASE}/api/v1/auth/token"
        assert signer.read(refresh, "rt+jwt", NOW)["fam"] == "f"
        for token, typ in [(refresh, "at+jwt"), (signer.issue("at+jwt", CLAIMS, NOW, 9), "rt+jwt")]:
            with pytest.raises(TokenRefused, match="invalid"):
                signer.read(token, typ, NOW)  # type: ignore[arg-type]

    def test_names_the_key_by_its_thumbprint(self, key: SigningKey) -> None:
        numbers = key.public.public_numbers()
        n = b64(numbers.n.to_bytes(256, "big"))
        canonical = f'{{"e":"AQAB","kty":"RSA","n":"{n}"}}'.encode()
        assert key.kid == b64(hashlib.sha256(canonical).digest())
        assert public_jwk(key.public) == {"kty": "RSA", "n": n, "e": "AQAB"}


class TestRead:
    def test_refuses_every_hostile_token_and_still_takes_the_good_one(self, signer: Signer, forge: Forge) -> None:
        good, accepted, cases = forge.good(), [], list(hostile(forge))
        for name, token in cases:
            try:
                signer.read(token, "at+jwt", NOW)
            except TokenRefused:
                assert signer.read(good, "at+jwt", NOW).items() >= forge.claims.items()
            else:
                accepted.append(name)
        assert accepted == []
        assert len(cases) >= 150

    def test_takes_the_edges_that_are_good(self, signer: Signer, forge: Forge) -> None:
        for token in [
            forge.with_claims(exp=forge.now + 1),
            forge.with_claims(iat=forge.now + 60),
            forge.with_claims(nbf=forge.now + 60),
            forge.with_claims(scope="user", sub="9223372036854775807", client_id="dashboard"),
        ]:
            assert signer.read(token, "at+jwt", NOW)

    def test_ends_with_the_second_that_exp_names(self, signer: Signer) -> None:
        token = signer.issue("at+jwt", CLAIMS, NOW, 60)
        end = (NOW // 1000 + 60) * 1000
        assert signer.read(token, "at+jwt", end - 1)
        for now in (end, end + 1, end + 10**9):
            with pytest.raises(TokenRefused) as refusal:
                signer.read(token, "at+jwt", now)
            assert refusal.value.reason == "expired"

    @pytest.mark.parametrize(
        ("text", "reason"),
        [("", "malformed"), ("a.b", "malformed"), ("a.b.c", "invalid"), ("x" * MAX_TOKEN_LENGTH + "x", "malformed")],
    )
    def test_tells_a_typing_error_from_a_forgery(self, signer: Signer, text: str, reason: str) -> None:
        with pytest.raises(TokenRefused) as refusal:
            signer.read(text, "at+jwt", NOW)
        assert refusal.value.reason == reason

    def test_says_expired_of_our_own_tokens_only(self, signer: Signer, forge: Forge) -> None:
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        late = {**forge.claims, "exp": forge.now - 1}
        for token, reason in [(forge.sign(payload=late), "expired"), (forge.sign(None, late, other), "invalid")]:
            with pytest.raises(TokenRefused) as refusal:
                signer.read(token, "at+jwt", NOW)
            assert refusal.value.reason == reason

    def test_remembers_no_token_under_another_purpose(self, signer: Signer) -> None:
        token = signer.issue("at+jwt", CLAIMS, NOW, 60)
        signer.read(token, "at+jwt", NOW)
        with pytest.raises(TokenRefused):
            signer.read(token, "rt+jwt", NOW)

    def test_refuses_refresh_tokens_without_a_family(self, signer: Signer) -> None:
        for missing in ("fam", "gen", "auth_time"):
            claims = {name: value for name, value in CLAIMS.items() if name != missing}
            with pytest.raises(TokenRefused):
                signer.read(signer.issue("rt+jwt", claims, NOW, 60), "rt+jwt", NOW)


class TestKeyFile:
    def test_is_made_once_and_kept_private(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "key.pem"
        made = load_or_create(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert load_or_create(path).kid == made.kid
        assert list(path.parent.iterdir()) == [path]

    def test_is_one_key_for_all_who_start_at_once(self, tmp_path: Path) -> None:
        kids: list[str] = []
        path = tmp_path / "key.pem"
        threads = [threading.Thread(target=lambda: kids.append(load_or_create(path).kid)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(kids) == 4
        assert set(kids) == {load_or_create(path).kid}

    def test_is_encrypted_with_a_passphrase(self, tmp_path: Path) -> None:
        path = tmp_path / "key.pem"
        made = load_or_create(path, b"correct horse")
        assert b"ENCRYPTED" in path.read_bytes()
        assert load_or_create(path, b"correct horse").kid == made.kid
        for wrong in (b"wrong", None):
            with pytest.raises((ValueError, TypeError)):
                load_or_create(path, wrong)

    def test_must_be_rsa_of_2048_bits(self) -> None:
        weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        for private in (weak, ec.generate_private_key(ec.SECP256R1())):
            pem = private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            with pytest.raises(ValueError, match="2048"):
                signing_key(pem)
