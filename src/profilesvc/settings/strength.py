"""The required strength of the pepper and the passphrase. `doctor` and the start in production use the same rule."""

_LEAST_CHARACTERS, _LEAST_DIFFERENT = 16, 6
GENERATE = "generate one with `openssl rand -base64 32`"


def weakness(secret: str) -> str | None:
    """Return why a secret can be guessed, as the end of a sentence that starts with its name, or None."""
    if len(secret) >= _LEAST_CHARACTERS and len(set(secret)) >= _LEAST_DIFFERENT:
        return None
    return f"must have at least {_LEAST_CHARACTERS} characters, {_LEAST_DIFFERENT} of them different"
