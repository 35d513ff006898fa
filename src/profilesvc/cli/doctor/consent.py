"""The check of `doctor` on the consent page, where owners connect their logins."""

import httpx

from profilesvc.cli.doctor.check import Check, connection_hint
from profilesvc.provider.consent import SCOPE, Consent, Endpoints
from profilesvc.settings import PREFIX, Settings

_CALLBACK = "/dashboard/connections/callback"


async def consent(settings: Settings) -> Check:
    """Check that the consent page accepts the client, the redirect address and the scopes; nothing is consented."""
    page = Consent(settings.provider, Endpoints.of(settings.provider, settings.provider.url))
    if not page.is_configured:
        hint = f"set {PREFIX}PROVIDER__CLIENT_ID, __CLIENT_SECRET and __AUTHORIZE_URL as in docs/connections.md"
        return Check("consent", "warn", "no OAuth client or consent page, so owners cannot connect their logins", hint)
    redirect = f"{settings.base_url}{_CALLBACK}"
    try:
        async with httpx.AsyncClient(timeout=settings.provider.timeout_seconds) as http:
            response = await http.get(page.url("doctor", "v" * 64, redirect))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        hint = f"check {PREFIX}PROVIDER__AUTHORIZE_URL and the way to it"
        return Check("consent", "fail", f"no consent page ({type(error).__name__})", connection_hint(error, hint))
    if response.status_code >= 400:
        message = f"the consent page rejects the client, the redirect address or the scopes ({response.status_code})"
        return Check("consent", "fail", message, f"register {redirect} and the scope {SCOPE} for the client")
    return Check("consent", "ok", f"the consent page accepts the client and {redirect}")
