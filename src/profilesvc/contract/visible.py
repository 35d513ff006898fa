"""The rule for every text that must not be empty: a reader can see something of it."""

import re
import unicodedata

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

# Characters of other categories that show nothing: the rest of Unicode's Default_Ignorable_Code_Point (variation
# selectors, Hangul fillers, the grapheme joiner), and the blank pattern of Braille.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})  # control, format, surrogate, and all spaces


def has_visible_text(text: str) -> bool:
    """Return whether any character of a text can be seen."""
    return any(unicodedata.category(char) not in _CATEGORIES and not _INVISIBLE.match(char) for char in text)


def _visible(text: str) -> str:
    if not has_visible_text(text):
        raise PydanticCustomError("visible", "must have visible text")
    return text


VISIBLE = AfterValidator(_visible)
