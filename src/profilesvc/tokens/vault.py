"""Secrets of owners that the service must be able to read, encrypted in the database: AES-256-GCM (D-111).

The key is derived from the passphrase that also encrypts the signing keys, so that there is one secret to keep. Without
a passphrase, which is for development, it is derived from a constant.
"""

import os
from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from profilesvc.tokens.jose import b64, b64_decode

_NONCE_BYTES = 12
_SALT = b"profilesvc secrets of owners"
_WITHOUT_PASSPHRASE = b"profilesvc development"
DEVELOPMENT = "d."  # the start of a string that was encrypted without a passphrase


class Vault:
    """Encrypts strings. One that was encrypted for another purpose, such as another owner, cannot be read."""

    def __init__(self, passphrase: str) -> None:
        self._passphrase = passphrase.encode()

    @cached_property
    def _own(self) -> AESGCM:
        return _cipher(self._passphrase or _WITHOUT_PASSPHRASE)

    @cached_property
    def _plain(self) -> AESGCM:
        return _cipher(_WITHOUT_PASSPHRASE)

    @property
    def has_passphrase(self) -> bool:
        """Return whether strings are encrypted by a secret, and not by a constant."""
        return bool(self._passphrase)

    def encrypt(self, text: str, purpose: str) -> str:
        """Return the text encrypted; each time another string."""
        nonce = os.urandom(_NONCE_BYTES)  # never from seeded entropy, which repeats itself after a restart
        start = "p." if self._passphrase else DEVELOPMENT
        return f"{start}{b64(nonce + self._own.encrypt(nonce, text.encode(), purpose.encode()))}"

    def decrypt(self, encrypted: str, purpose: str) -> str:
        """Return what `encrypt` encrypted for the same purpose, also before a passphrase was configured.

        Raises:
            ValueError: It was encrypted with another passphrase or for another purpose.
        """
        content = b64_decode(encrypted.partition(".")[2])
        cipher = self._plain if encrypted.startswith(DEVELOPMENT) else self._own
        try:
            return cipher.decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], purpose.encode()).decode()
        except InvalidTag:
            raise ValueError("the string was encrypted with another passphrase or for another purpose") from None


def _cipher(passphrase: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=_SALT, length=32, n=2**14, r=8, p=1).derive(passphrase))
