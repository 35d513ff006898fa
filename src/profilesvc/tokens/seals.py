"""Sealed strings, which callers send back unchanged: page tokens, cursors, form tokens and the sign-in cookie."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from itsdangerous import BadSignature, Signer

from profilesvc.tokens.jose import b64, b64_decode
from profilesvc.tokens.signer import Keyring


class Seal:
    """A signature of strings for one purpose. It does not open strings that were sealed for another one."""

    def __init__(self, ring: Keyring, purpose: str, now: int) -> None:
        keys = ring.sealing_keys(now)
        self._signer = Signer(keys, salt=purpose, key_derivation="hmac", digest_method=hashlib.sha256)

    def seal(self, content: str) -> str:
        """Return the content, signed but not encrypted, as a string for a URL, a form or a cookie."""
        return self.seal_bytes(content.encode())

    def seal_bytes(self, content: bytes) -> str:
        """Return bytes as `seal` returns a string."""
        return self._signer.sign(b64(content)).decode()

    def unseal(self, sealed: str) -> str | None:
        """Return the content of a string that `seal` returned in any process; None for any other string."""
        try:
            content = self.unseal_bytes(sealed)
            return None if content is None else content.decode()
        except ValueError:
            return None

    def unseal_bytes(self, sealed: str) -> bytes | None:
        """Return the bytes that `seal_bytes` sealed; None for any other string."""
        try:
            content = self._signer.unsign(sealed)
            b64_decode(sealed.rpartition(".")[2])  # the library accepts other encodings of the same signature
            return b64_decode(content.decode())
        except (BadSignature, ValueError):
            return None


class Cipher:
    """AES-SIV (RFC 5297) for one purpose: equal strings are equal encrypted, so a response keeps its entity tag."""

    def __init__(self, ring: Keyring, purpose: str, now: int) -> None:
        derived = (hmac.digest(key, b"cipher\n" + purpose.encode(), "sha512") for key in ring.sealing_keys(now))
        self._ciphers = [AESSIV(key) for key in derived]

    def encrypt(self, content: str) -> str:
        """Return the content encrypted, as a string for a URL. Its length shows the length of the content."""
        return b64(self._ciphers[-1].encrypt(content.encode(), None))

    def decrypt(self, text: str) -> str | None:
        """Return the content of a string that `encrypt` returned in any process; None for any other string."""
        for cipher in reversed(self._ciphers):
            try:
                return cipher.decrypt(b64_decode(text), None).decode()
            except (InvalidTag, ValueError):
                continue
        return None
