"""The stylesheet of pages that are not the dashboard's, and the values of the design, which all pages share."""

import base64
import hashlib
from pathlib import Path

_FOLDER = Path(__file__).parent
TOKENS = _FOLDER / "tokens.css"


def style() -> str:
    """Return the stylesheet of a page that includes it in a `style` element, without further requests."""
    return TOKENS.read_text("utf-8") + (_FOLDER / "plain.css").read_text("utf-8")


def policy(style: str, form_action: str = "'self'") -> str:
    """Return the content security policy of a page that has this stylesheet and loads nothing.

    Browsers apply `form-action` to redirects too, so it names every origin that a form may lead to.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action {form_action}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
