"""Choose the language of a reader: the one they selected, else the best one that their browser accepts."""

from functools import lru_cache

from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

ENGLISH = "en"  # the language of the texts in the code
LANGUAGES = {ENGLISH: "English", "de": "Deutsch"}  # each by its own name
_LONGEST = 500  # characters of a header; browsers send about 60


def chosen(*selected: str | None, accepted: str = "") -> str:
    """Return the first of the selected languages that exists, else the best one of an Accept-Language header."""
    return next((one for one in selected if one in LANGUAGES), None) or _best(accepted[:_LONGEST])


@lru_cache(256)  # browsers send few different values
def _best(accepted: str) -> str:
    """Return the language with the highest quality. `de` also serves the readers of `de-AT`."""
    for tag, quality in parse_accept_header(accepted, LanguageAccept):
        language = tag.partition("-")[0].lower()
        if quality > 0 and language in LANGUAGES:
            return language
    return ENGLISH
