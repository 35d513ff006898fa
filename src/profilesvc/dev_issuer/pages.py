"""The issuer's one page: who do you want to be. Plain HTML, no script, nothing loaded from anywhere."""

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from urllib.parse import urlsplit

from profilesvc.storage.identities import Linked

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 28rem; margin: 10vh auto; padding: 0 1rem; color: #1c2430 }
h1 { font-size: 1.4rem } p { color: #4a5565 } form { display: grid; gap: .6rem }
button { font: inherit; text-align: left; padding: .8rem 1rem; border: 1px solid #8a94a3; border-radius: .5rem;
  background: #fff; cursor: pointer }
button:hover, button:focus-visible { border-color: #0b5cad; outline: 2px solid #0b5cad }
small { display: block; color: #4a5565 }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""
_NOBODY = "<p>There are no demo users in this database. <code>profilesvc db seed</code> loads them.</p>"


def headers(redirect_uri: str | None = None) -> dict[str, str]:
    """What keeps the page to itself. Browsers hold a form's redirect to `form-action` too, so its origin is named."""
    target = ""
    if redirect_uri is not None:
        parts = urlsplit(redirect_uri)
        target = f" {parts.scheme}://{parts.netloc}"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'{target}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
    }


def login(users: list[Linked], parameters: Mapping[str, str]) -> str:
    """A button per user; `parameters` are the request's and go with it."""
    hidden = [f'<input type="hidden" name="{escape(n)}" value="{escape(v)}">' for n, v in parameters.items()]
    buttons = [
        f'<button name="subject" value="{escape(user.subject)}">{escape(user.name)}<small>{escape(user.email)}</small>'
        "</button>"
        for user in users
    ]
    form = "\n".join(['<form method="post" action="authorize">', *hidden, *buttons, "</form>"])
    intro = "<p>The development issuer of profilesvc: pick a demo user. There is no password, and no production.</p>"
    return _page("Sign in", f"{intro}\n{form if users else _NOBODY}")


def refusal(problem: str) -> str:
    """For what must not be redirected anywhere."""
    return _page("This login cannot go on", f"<p>{escape(problem)}</p>")


def _page(title: str, content: str) -> str:
    return _PAGE.format(title=title, style=_STYLE, content=content)
