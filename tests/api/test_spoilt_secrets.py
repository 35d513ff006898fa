"""A secret whose + became a space, because a form was not encoded: the 401 says what to do."""

from base64 import b64encode
from urllib.parse import quote_plus

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.domain.keys import spoilt_secret
from support.api import Site

HINT = "Encode the + of a form as %2B (curl: --data-urlencode)."
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SECRET = "a+b/" * 16
CASES = {
    "right characters": ("wrong", ""),
    "plus": (SECRET, ""),
    "lost plus": (SECRET.replace("+", " "), HINT),
    "one of several": (SECRET.replace("+", " ", 1), HINT),
    "at its start": (" " + SECRET[1:], HINT),
    "at its end": (SECRET[:-1] + " ", HINT),
    "copied with a space": (SECRET + " ", "Remove the space."),
    "copied with two": (f" {SECRET} ", "Remove the space."),
    "copied and lost": (f" {SECRET.replace('+', ' ')}", HINT),
}


@pytest.mark.parametrize(("secret", "ending"), CASES.values(), ids=CASES)
def test_sentence_fits_what_was_sent(secret: str, ending: str) -> None:
    assert spoilt_secret(secret).endswith(ending)
    assert bool(spoilt_secret(secret)) == bool(ending)


async def with_plus(as_service: AsService) -> Site:
    while True:
        site = await as_service()
        if "+" in site.key["client_secret"].strip("+"):
            return site


@ON_ONE_DATABASE
@pytest.mark.parametrize("way", ["form", "basic", "refresh", "json", "introspect", "revoke"])
async def test_lost_plus_is_named(http: httpx.AsyncClient, as_service: AsService, way: str) -> None:
    site = await with_plus(as_service)
    client_id, secret, token = site.key["client_id"], site.key["client_secret"], site.tokens["refresh_token"]
    pair = f"client_id={client_id}&client_secret={secret}"  # not encoded
    lost = {"client_id": client_id, "client_secret": secret.replace("+", " ")}
    basic = {"Authorization": "Basic " + b64encode(":".join(lost.values()).encode()).decode()}
    requests = {
        "form": ("/oauth2/token", f"grant_type=client_credentials&{pair}", FORM),
        "basic": ("/oauth2/token", "grant_type=client_credentials", FORM | basic),
        "refresh": ("/oauth2/token", f"grant_type=refresh_token&refresh_token={token}&{pair}", FORM),
        "introspect": ("/oauth2/introspect", f"token={token}&{pair}", FORM),
        "revoke": ("/oauth2/revoke", f"token={token}&{pair}", FORM),
    }
    if way == "json":
        answer = await http.post("/api/v1/auth/token", json={"grant_type": "client_credentials", **lost})
    else:
        path, content, headers = requests[way]
        answer = await http.post(path, content=content, headers=headers)
    body = answer.json()
    assert answer.status_code in {400, 401}
    assert (body.get("error_description") or body["error"]["message"]).endswith(HINT)
    assert secret not in answer.text
    if way in requests and way != "basic":
        path, content, headers = requests[way]
        assert (await http.post(path, content=content.replace(secret, quote_plus(secret)), headers=headers)).is_success
