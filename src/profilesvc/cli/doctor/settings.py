"""The checks of `doctor` on secrets, sign-in, rate limits and mail."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from profilesvc.cli.doctor.check import Check, Status, connection_hint
from profilesvc.settings import PREFIX, IdentitySettings, Settings, is_placeholder
from profilesvc.settings.strength import GENERATE, weakness


def secrets(settings: Settings) -> Iterator[Check]:
    """Check that both secrets of the service are set, are not placeholders, and are hard to guess."""
    yield _secret("pepper", "SECRET_PEPPER", settings.secret_pepper.get_secret_value(), settings)
    yield _secret("passphrase", "TOKENS__KEY_PASSPHRASE", settings.tokens.key_passphrase.get_secret_value(), settings)


def _secret(name: str, variable: str, value: str, settings: Settings) -> Check:
    worst: Status = "fail" if settings.production else "warn"
    if not value:
        purpose = {
            "pepper": "the digests of client secrets are not keyed, and who copies the database can sign webhooks",
            "passphrase": "the signing keys and the owners' logins at the provider can be read in the database",
        }
        status: Status = "warn" if settings.production else "ok"
        hint = f"before the first API key, set {PREFIX}{variable}; {GENERATE}"
        return Check(name, status, f"not set: {purpose[name]}", hint)
    if is_placeholder(value):
        return Check(name, worst, "still a placeholder", f"replace {PREFIX}{variable}; {GENERATE}")
    if problem := weakness(value):
        return Check(name, worst, problem, f"replace {PREFIX}{variable}; {GENERATE}")
    return Check(name, "ok", "set")


async def sign_in(settings: Settings) -> Check:
    """Check whether users can sign in: there is an identity provider, and its keys can be read."""
    if settings.identity.issuer:
        return await _issuer(settings.identity)
    if settings.with_dev_issuer:
        return Check("sign-in", "ok", "with the bundled development issuer")
    hint = f"set {PREFIX}IDENTITY__ISSUER, __JWKS_URL and __CLIENT_ID as in docs/identity.md"
    return Check("sign-in", "warn", "no identity provider, so users cannot sign in", hint)


async def _issuer(identity: IdentitySettings) -> Check:
    from profilesvc.tokens.jwks import read_keys

    try:
        count = len(await read_keys(identity.jwks_url))
    except Exception as error:
        hint = f"check {PREFIX}IDENTITY__JWKS_URL and the provider, because users cannot sign in without its keys"
        message = f"{identity.jwks_url} cannot be read ({type(error).__name__})"
        return Check("sign-in", "fail", message, connection_hint(error, hint))
    if not count:
        return Check("sign-in", "fail", f"{identity.jwks_url} has no usable key", "set it to the provider's JWKS")
    return Check("sign-in", "ok", f"with {identity.issuer}")


def proxy(settings: Settings) -> Check:
    """Check whether the proxy in front is trusted; production needs one, because the service does not serve TLS."""
    if settings.trusted_hops:
        return Check("proxy", "ok", f"{settings.trusted_hops} in front")
    hint = f"set {PREFIX}TRUSTED_HOPS to the number of proxies in front"
    return Check("proxy", "warn", "none is trusted, so all callers share the address of the proxy", hint)


def guides(settings: Settings) -> Check:
    """Check whether this installation has the guides, to which /docs links."""
    if settings.effective_guides_folder is not None:
        return Check("guides", "ok", f"from {settings.effective_guides_folder}")
    if settings.guides_folder is not None:
        hint = f"correct {PREFIX}GUIDES_FOLDER; the service needs to read this folder"
        return Check("guides", "warn", f"{settings.guides_folder} is not a folder", hint)
    hint = f"build them with `make docs` and set {PREFIX}GUIDES_FOLDER (docs/deploy.md, step 1)"
    return Check("guides", "warn", "not installed, so the links of /docs to /guides/ lead to 404", hint)


async def limits(settings: Settings) -> Check:
    """Check whether all processes share the counters of the rate limits."""
    if not settings.limits.enabled:
        status: Status = "warn" if settings.production else "ok"
        return Check("limits", status, "switched off", f"set {PREFIX}LIMITS__ENABLED=true")
    if settings.limits.shared:
        return await _counters(settings.limits.storage_url.get_secret_value())
    hint = f"set {PREFIX}LIMITS__STORAGE_URL=redis://… to share the counters"
    if not settings.production or settings.effective_database_url.startswith("sqlite"):
        return Check("limits", "ok", "each process has its own counters")
    return Check("limits", "warn", "each process has its own counters, so two processes allow twice as much", hint)


async def _counters(url: str) -> Check:
    from profilesvc.limits.redis import problem_with

    hint = f"start Redis, or correct {PREFIX}LIMITS__STORAGE_URL; until then each process has its own counters"
    if problem := await problem_with(url):
        return Check("limits", "fail", f"the shared counters do not respond: {problem}", hint)
    return Check("limits", "ok", "all processes share the counters")


async def mail(settings: Settings) -> Check:
    """Check whether alerts can be sent: the mail server accepts a connection, and the login if there is one."""
    from profilesvc.delivery.smtp import Mailer, Unsent

    if not settings.mail.url.get_secret_value():
        if not settings.production:
            return Check("mail", "ok", "messages are written to files, which /dashboard/mail shows")
        hint = f"set {PREFIX}MAIL__URL and {PREFIX}MAIL__FROM (docs/operations.md, Alarms)"
        return Check("mail", "warn", "no mail server: alerts by e-mail are off", hint)
    if settings.mail.from_.endswith(".invalid"):
        return Check("mail", "fail", f"messages are from {settings.mail.from_}", f"set {PREFIX}MAIL__FROM")
    try:
        await Mailer(settings).check()
    except Unsent as error:
        hint = f"start the mail server, or correct {PREFIX}MAIL__URL; until then alerts wait"
        return Check("mail", "fail", str(error), hint)
    has_login = urlsplit(settings.mail.url.get_secret_value()).username
    return Check(
        "mail", "ok", f"the mail server accepts {'the login' if has_login else 'connections; there is no login'}"
    )
