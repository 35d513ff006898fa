"""Signing keys: RSA keys of access tokens and HMAC keys of refresh tokens, generated, or read from PEM."""

import contextlib
import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, TypeVar

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from jwt.algorithms import RSAAlgorithm

from profilesvc.domain.signing_keys import Algorithm
from profilesvc.tokens.jose import b64

_PADDING, _SHA256 = padding.PKCS1v15(), SHA256()
_VERIFIER = jwt.PyJWS(algorithms=["RS256", "HS256"])


@lru_cache  # a few: two types, each with the keys that sign
def _header(alg: Algorithm, typ: str, kid: str) -> bytes:
    return b64(orjson.dumps({"alg": alg, "typ": typ, "kid": kid})).encode()


def _compact(alg: Algorithm, typ: str, kid: str, payload: bytes, sign: Callable[[bytes], bytes]) -> str:
    """Return a compact JWS (RFC 7515 §3.1). PyJWT writes the same in twice the time, 6 % of a grant."""
    signed = _header(alg, typ, kid) + b"." + b64(payload).encode()
    return f"{signed.decode()}.{b64(sign(signed))}"


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A key of access tokens, which anyone can verify with the public key."""

    private: rsa.RSAPrivateKey
    public: rsa.RSAPublicKey
    kid: str
    alg: ClassVar[Algorithm] = "RS256"

    def sign(self, typ: str, payload: bytes) -> str:
        """Return a compact JWS. It is the same for the same type and payload."""
        return _compact(self.alg, typ, self.kid, payload, lambda data: self.private.sign(data, _PADDING, _SHA256))

    def verify(self, token: str) -> None:
        """Check that this key has signed the token.

        Raises:
            jwt.PyJWTError: It has not.
        """
        _VERIFIER.decode(token, self.public, algorithms=[self.alg])


@dataclass(frozen=True, slots=True)
class HmacKey:
    """A key of refresh tokens, which only the service verifies."""

    secret: bytes = field(repr=False)
    kid: str
    sealing: bytes = field(repr=False)  # derived; seals page tokens, forms and the sign-in cookie
    alg: ClassVar[Algorithm] = "HS256"

    def sign(self, typ: str, payload: bytes) -> str:
        """Return a compact JWS. It is the same for the same type and payload."""
        return _compact(self.alg, typ, self.kid, payload, lambda data: hmac.digest(self.secret, data, "sha256"))

    def verify(self, token: str) -> None:
        """See `RsaKey.verify`."""
        _VERIFIER.decode(token, self.secret, algorithms=[self.alg])


SigningKey = RsaKey | HmacKey
Key = TypeVar("Key", RsaKey, HmacKey)


def read_key(alg: Algorithm, pem: bytes, passphrase: bytes | None = None, checked: Container[str] = ()) -> SigningKey:
    """Read a key of this algorithm from PEM. See `rsa_key` and `hmac_key`."""
    return rsa_key(pem, passphrase, checked) if alg == "RS256" else hmac_key(pem, passphrase)


def rsa_key(pem: bytes, passphrase: bytes | None = None, checked: Container[str] = ()) -> RsaKey:
    """Read an RSA key from PEM; the passphrase is used if the PEM is encrypted.

    A key whose kid is in `checked` is not checked again, because the check takes longer than everything else.

    Raises:
        ValueError: The PEM cannot be read, or is not an RSA key of 2,048 bits or more.
        TypeError: The PEM is encrypted and there is no passphrase.
    """
    key = _rsa_key(_private_key(pem, passphrase, is_checked=False))
    return key if key.kid in checked else _rsa_key(_private_key(pem, passphrase, is_checked=True))


def hmac_key(pem: bytes, passphrase: bytes | None = None) -> HmacKey:
    """Read an HMAC key from PEM; the passphrase is used if the PEM is encrypted.

    The secret is stored as an Ed25519 private key, which is 32 random bytes too. PKCS #8 has no format for a plain
    secret, and both algorithms can share one file format, encryption and passphrase.

    Raises:
        ValueError: The PEM cannot be read, or is not an Ed25519 key.
        TypeError: The PEM is encrypted and there is no passphrase.
    """
    private = _private_key(pem, passphrase, is_checked=True)
    if not isinstance(private, ed25519.Ed25519PrivateKey):  # like PEM that cannot be read
        raise ValueError(  # noqa: TRY004
            "a key of refresh tokens must be an Ed25519 private key, whose 32 bytes are the secret"
        )
    return _hmac_key(private.private_bytes_raw())


def _private_key(pem: bytes, passphrase: bytes | None, *, is_checked: bool) -> PrivateKeyTypes:
    password = passphrase if b"ENCRYPTED" in pem else None
    return serialization.load_pem_private_key(pem, password, unsafe_skip_rsa_key_validation=not is_checked)


def generate(alg: Algorithm) -> SigningKey:
    """Generate a key. RSA takes about 0.1 s, so call this in a thread."""
    return generate_rsa() if alg == "RS256" else generate_hmac()


def generate_rsa() -> RsaKey:
    """Generate an RSA key of 2,048 bits."""
    return _rsa_key(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def generate_hmac() -> HmacKey:
    """Generate an HMAC key of 256 random bits."""
    return _hmac_key(ed25519.Ed25519PrivateKey.generate().private_bytes_raw())


def _rsa_key(private: PrivateKeyTypes) -> RsaKey:
    if not isinstance(private, rsa.RSAPrivateKey) or private.key_size < 2048:
        raise ValueError("the signing key must be RSA of at least 2048 bits")
    public = private.public_key()
    return RsaKey(private, public, thumbprint(public_jwk(public)))


def _hmac_key(secret: bytes) -> HmacKey:
    sealing = HKDF(SHA256(), 32, salt=None, info=b"profilesvc sealed strings").derive(secret)
    return HmacKey(secret, thumbprint({"kty": "oct", "k": b64(secret)}), sealing)


def thumbprint(required: dict[str, str]) -> str:
    """Return the thumbprint of a key, which is its kid (RFC 7638)."""
    return b64(hashlib.sha256(json.dumps(required, sort_keys=True, separators=(",", ":")).encode()).digest())


def pem_of(key: SigningKey, passphrase: bytes | None) -> str:
    """Return the key as PKCS #8 in PEM, encrypted if there is a passphrase."""
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    private = key.private if isinstance(key, RsaKey) else ed25519.Ed25519PrivateKey.from_private_bytes(key.secret)
    return private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


def load_or_create(path: Path) -> RsaKey:
    """Read the RSA key in a file, unchecked. If the file is missing, create it atomically with mode 0600."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path)
    return _rsa_key(_private_key(path.read_bytes(), None, is_checked=False))


def _create(path: Path) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(pem_of(generate_rsa(), None))
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):  # another process was first, and its key is used
        os.link(temporary, path)
    os.unlink(temporary)


def public_jwk(public: rsa.RSAPublicKey) -> dict[str, str]:
    """Return the public fields of a key (RFC 7518 §6.3)."""
    fields = RSAAlgorithm.to_jwk(public, as_dict=True)
    return {name: str(fields[name]) for name in ("kty", "n", "e")}
