"""Connect a login at the emulator, as a browser does it: for the notebooks and the recorded examples."""

import re
from urllib.parse import urlsplit

import httpx

from profilesvc.client.operation import PREFIX

SCOPE = "https://www.googleapis.com/auth/business.manage"
_SCOPES = ["openid", "email", SCOPE]


def consent(browser: httpx.Client, url: str, email: str, scopes: list[str] | None = None) -> str:
    """Choose an account on the consent page and allow these scopes. Return the address that the page redirects to."""
    page = _path(url)
    text = browser.get(page).text
    subject = re.search(rf'value="([^"]+)" required\s+(?:checked)?>\s*{re.escape(email)}', text)
    if subject is None:
        raise ValueError(f"the consent page does not offer {email}")
    form = {"decision": "allow", "subject": subject[1], "granted": _SCOPES if scopes is None else scopes}
    return browser.post(page, data=form, follow_redirects=False).headers["location"]


def connect_login(owner: httpx.Client, email: str, scopes: list[str] | None = None) -> httpx.Response:
    """Connect a login for the user of a client, in a browser in which the user is signed in. Return the last page."""
    started = owner.post(f"{PREFIX}/provider-connections").raise_for_status().json()["data"]
    back = consent(owner, started["authorization_url"], email, scopes)
    token = owner.headers["Authorization"].removeprefix("Bearer ")
    cookie = f"profilesvc_session={token}; __Host-profilesvc_session={token}"  # the second one is of https
    return owner.get(_path(back), headers={"Cookie": cookie}, follow_redirects=False)


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"
