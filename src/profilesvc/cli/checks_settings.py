"""What `doctor` finds out about secrets, sign-in and the counters of rate limits."""

from collections.abc import Iterator

from profilesvc.cli.checks import Check, Status
from profilesvc.settings import PREFIX, IdentitySettings, Settings, is_placeholder

_LEAST_CHARACTERS, _LEAST_DIFFERENT = 16, 6
_MAKE = "make one with `openssl rand -base64 32`"


def secrets(settings: Settings) -> Iterator[Check]:
    """The two secrets of the service's own: there, no placeholder, and not easy to guess."""
    yield _secret("pepper", "SECRET_PEPPER", settings.secret_pepper.get_secret_value(), settings)
    yield _secret("passphrase", "TOKENS__KEY_PASSPHRASE", settings.tokens.key_passphrase.get_secret_value(), settings)


def _secret(name: str, variable: str, value: str, settings: Settings) -> Check:
    worst: Status = "fail" if settings.production else "warn"
    if not value:
        purpose = {
            "pepper": "the digests of client secrets are not keyed",
            "passphrase": "the signing keys are stored unencrypted",
        }
        status: Status = "warn" if settings.production else "ok"
        return Check(name, status, f"not set: {purpose[name]}", f"set {PREFIX}{variable}; {_MAKE}")
    if is_placeholder(value):
        return Check(name, worst, "still the placeholder of the example", f"replace {PREFIX}{variable}; {_MAKE}")
    if len(value) < _LEAST_CHARACTERS or len(set(value)) < _LEAST_DIFFERENT:
        return Check(name, worst, "too short to be a secret", f"replace {PREFIX}{variable}; {_MAKE}")
    return Check(name, "ok", "set")


async def sign_in(settings: Settings) -> Check:
    """Whether users can get a token without the operator: is there a provider, and can its keys be read?"""
    if settings.identity.issuer:
        return await _issuer(settings.identity)
    if settings.with_dev_issuer:
        return Check("sign-in", "ok", "by the bundled development issuer")
    hint = f"set {PREFIX}IDENTITY__ISSUER, __JWKS_URL and __CLIENT_ID (docs/identity.md)"
    return Check("sign-in", "warn", "no identity provider: users cannot sign in", hint)


async def _issuer(identity: IdentitySettings) -> Check:
    from profilesvc.tokens.jwks import read_keys

    try:
        count = len(await read_keys(identity.jwks_url))
    except Exception as error:
        hint = (
            f"is {PREFIX}IDENTITY__JWKS_URL right, and does the provider answer? Users cannot sign in without its keys"
        )
        return Check("sign-in", "fail", f"{identity.jwks_url} cannot be read ({type(error).__name__})", hint)
    if not count:
        return Check(
            "sign-in", "fail", f"{identity.jwks_url} has no key that can be used", "is it the provider's JWKS?"
        )
    return Check("sign-in", "ok", f"by {identity.issuer}")


async def limits(settings: Settings) -> Check:
    """Whether the counters of rate limits are where all processes count together."""
    if not settings.limits.enabled:
        status: Status = "warn" if settings.production else "ok"
        return Check("limits", status, "switched off", f"set {PREFIX}LIMITS__ENABLED=true")
    if settings.limits.shared:
        return await _counters(settings.limits.storage_url.get_secret_value())
    hint = f"set {PREFIX}LIMITS__STORAGE_URL=redis://… to count together"
    is_alone = not settings.production or settings.effective_database_url.startswith("sqlite")
    return Check("limits", "ok" if is_alone else "warn", "each process counts for itself", "" if is_alone else hint)


async def _counters(url: str) -> Check:
    from profilesvc.limits.redis import problem_with

    hint = f"each process counts for itself meanwhile; is it running, and is {PREFIX}LIMITS__STORAGE_URL right?"
    if problem := await problem_with(url):
        return Check("limits", "fail", f"the shared counters do not answer: {problem}", hint)
    return Check("limits", "ok", "all processes count together")
