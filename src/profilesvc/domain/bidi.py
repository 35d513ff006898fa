"""Control characters that change the direction of text around them (UAX #9): a name must not turn the page over."""

import re

# Embeddings, overrides and isolates. The marks U+061C, U+200E and U+200F stay, because Arabic and Hebrew need them.
_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
# A tag with its attributes, or a text field: what a form sends back must not change.
_KEPT_IN_HTML = re.compile(rf"<textarea\b[^>]*>[^<]*|<[^>]*>|{_CONTROLS.pattern}")


def without_controls(text: str) -> str:
    """Return a text for a mail or a table without the characters that would change the direction of what follows."""
    return _CONTROLS.sub("", text)


def html_without_controls(html: str) -> str:
    """Return a page whose texts have none of these characters. Fields of forms keep theirs."""
    if _CONTROLS.search(html) is None:
        return html
    return _KEPT_IN_HTML.sub(lambda match: match[0] if match[0].startswith("<") else "", html)
