"""The signing keys in memory (D-13): RSA, named by thumbprint, found by name in a plain dictionary (A063)."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain import signing_keys
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import KeyDates
from profilesvc.tokens.jose import b64


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An RSA key and its name."""

    private: rsa.RSAPrivateKey
    public: rsa.RSAPublicKey
    kid: str


def signing_key(pem: bytes, passphrase: bytes | None = None, known: Container[str] = ()) -> SigningKey:
    """A key from PEM; the passphrase is for PEM that is encrypted.

    ValueError unless it can be read and is RSA of 2,048 bits or more; TypeError when it is encrypted and there is no
    passphrase. One of the `known` names was checked when it was taken in, and that takes longer than all the rest.
    """
    key = _loaded(pem, passphrase, is_checked=False)
    return key if key.kid in known else _loaded(pem, passphrase, is_checked=True)


def _loaded(pem: bytes, passphrase: bytes | None, *, is_checked: bool) -> SigningKey:
    password = passphrase if b"ENCRYPTED" in pem else None
    private = serialization.load_pem_private_key(pem, password, unsafe_skip_rsa_key_validation=not is_checked)
    if not isinstance(private, rsa.RSAPrivateKey) or private.key_size < 2048:
        raise ValueError("the signing key must be RSA of at least 2048 bits")
    return _named(private)


def generate() -> SigningKey:
    """A new key of 2,048 bits. It takes about 0.1 s: keep it off the event loop."""
    return _named(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _named(private: rsa.RSAPrivateKey) -> SigningKey:
    public = private.public_key()
    return SigningKey(private, public, thumbprint(public))


def thumbprint(public: rsa.RSAPublicKey) -> str:
    """The name of a key, made of the key alone (RFC 7638)."""
    jwk = public_jwk(public)
    members = json.dumps({"e": jwk["e"], "kty": "RSA", "n": jwk["n"]}, separators=(",", ":"))
    return b64(hashlib.sha256(members.encode()).digest())


def pem_of(key: SigningKey, passphrase: bytes | None) -> str:
    """PKCS #8, encrypted when there is a passphrase."""
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


def load_or_create(path: Path) -> SigningKey:
    """The key in a file; made there with mode 0600 when it is missing, whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path)
    return signing_key(path.read_bytes())


def _create(path: Path) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(pem_of(generate(), None))
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):  # another process was first: its key is the key
        os.link(temporary, path)
    os.unlink(temporary)


def public_jwk(public: rsa.RSAPublicKey) -> dict[str, str]:
    """The public members of a key (RFC 7518 §6.3)."""
    numbers = public.public_numbers()
    n = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")
    return {"kty": "RSA", "n": b64(n), "e": b64(numbers.e.to_bytes(3, "big").lstrip(b"\0"))}


class Keyring:
    """Every key that is announced, active or retired. Looking one up touches no database, file or network."""

    def __init__(self, keys: Iterable[tuple[KeyDates, SigningKey]] = ()) -> None:
        self._keys: dict[str, SigningKey] = {}
        self._secrets: dict[tuple[str, str], bytes] = {}  # derived, by kid and purpose
        self.dates: list[KeyDates] = []
        self.unreadable: set[str] = set()
        self.replace(keys)

    def replace(self, keys: Iterable[tuple[KeyDates, SigningKey]], stamp: str | None = None) -> None:
        """Hold these keys and no others; `stamp` is the table's when it held them."""
        held, self.stamp = list(keys), stamp
        self._keys = {dates.kid: key for dates, key in held}
        self._secrets = {name: secret for name, secret in self._secrets.items() if name[0] in self._keys}
        self.dates = signing_keys.in_order(dates for dates, _ in held)

    def __contains__(self, kid: object) -> bool:
        return kid in self._keys

    def __getitem__(self, kid: str) -> SigningKey:
        return self._keys[kid]

    def active(self, now: int) -> SigningKey:
        """The key that signs now. SERVICE_UNAVAILABLE when there is none."""
        dates = signing_keys.active(self.dates, now)
        if dates is None:
            raise ServiceError(SERVICE_UNAVAILABLE, retry_after=1)
        return self._keys[dates.kid]

    def purpose_keys(self, purpose: str, now: int) -> list[bytes]:
        """Secrets of 32 bytes for one purpose: the one to seal with now, then older and newer ones that still open.

        They are derived from the signing keys (RFC 5869), which every process of a deployment has, also after a
        restart, and which are encrypted where they are stored. SERVICE_UNAVAILABLE when there are none.
        """
        first = self.active(now).kid
        kids = [first, *(kid for kid in self._keys if kid != first)]
        return [self._derived(self._keys[kid], purpose) for kid in kids]

    def _derived(self, key: SigningKey, purpose: str) -> bytes:
        name = key.kid, purpose
        if name not in self._secrets:
            no_encryption = serialization.NoEncryption()
            raw = key.private.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, no_encryption
            )
            derive = HKDF(SHA256(), 32, salt=None, info=f"profilesvc {purpose}".encode()).derive
            self._secrets[name] = derive(raw)
        return self._secrets[name]

    def jwks(self) -> list[dict[str, str]]:
        """The public parts, the oldest key first (RFC 7517)."""
        about = {"use": "sig", "alg": "RS256"}
        return [{**public_jwk(self[dates.kid].public), "kid": dates.kid, **about} for dates in self.dates]
