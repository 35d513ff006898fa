"""The issuer's login page: plain HTML without scripts or external files."""

from collections.abc import Mapping
from html import escape
from urllib.parse import urlsplit

from profilesvc import look
from profilesvc.language.texts import _, language
from profilesvc.storage.identities import Linked

_STYLE = look.style()
_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
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


def headers(redirect_uri: str | None = None) -> dict[str, str]:
    """Return the security headers. `form-action` applies to redirects too, so it names the origin of `redirect_uri`."""
    target = ""
    if redirect_uri is not None:
        parts = urlsplit(redirect_uri)
        target = f" {parts.scheme}://{parts.netloc}"
    return {
        "Content-Security-Policy": look.policy(_STYLE, f"'self'{target}"),
        "Cache-Control": "no-store",
        "Content-Language": language(),
        "Referrer-Policy": "no-referrer",
    }


def login(users: list[Linked], parameters: Mapping[str, str]) -> str:
    """Return the login page with a button per user. The form sends the request's `parameters` again."""
    hidden = [f'<input type="hidden" name="{escape(n)}" value="{escape(v)}">' for n, v in parameters.items()]
    buttons = [
        f'<button class="choice" name="subject" value="{escape(user.subject)}">{escape(user.name)}'
        f"<small>{escape(user.email)}</small></button>"
        for user in users
    ]
    form = "\n".join(['<form method="post" action="authorize">', *hidden, *buttons, "</form>"])
    none = _("There are no demo users in this database. Load them with <code>profilesvc db seed</code>.")
    intro = _("This is the development issuer of profilesvc. Choose a demo user; there is no password.")
    return _page(_("Sign in"), f"<p>{intro}</p>\n{form if users else f'<p>{none}</p>'}")


def failure(problem: str) -> str:
    """Return the page for a request that must not be redirected."""
    return _page(_("This login cannot continue"), f"<p>{escape(problem)}</p>")


def _page(title: str, content: str) -> str:
    return _PAGE.format(language=language(), title=title, style=_STYLE, content=content)
