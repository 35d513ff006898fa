"""Translate the texts of pages. A text in the code is English; its translations are in `locale/`.

`_` and `ngettext` return a text in the language of the current request. `N_` marks a text that is translated later.
"""

import gettext as standard
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TypeVar, overload

from profilesvc.domain.request import current_request
from profilesvc.language.choice import ENGLISH

LOCALE = Path(__file__).parent / "locale"


@cache
def translations(language: str) -> standard.NullTranslations:
    """Return the catalogue of a language, compiled when the first reader needs it."""
    if language == ENGLISH:
        return standard.NullTranslations()
    from babel.messages.mofile import write_mo  # imported here because the import is slow
    from babel.messages.pofile import read_po

    with (LOCALE / language / "LC_MESSAGES" / "messages.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return standard.GNUTranslations(compiled)


def language() -> str:
    """Return the language of the current request; outside of one it is English."""
    return current_request().language


def gettext(text: str) -> str:
    """Return the text in the reader's language, or in English if it is not translated."""
    current = language()
    return text if current == ENGLISH else translations(current).gettext(text)


def _(text: str, /, **values: object) -> str:
    """Return the text in the reader's language, with the values of its `%(name)s`. Without values, `%` is plain."""
    translated = gettext(text)
    return translated % values if values else translated


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """Return the form of a text for a number, which is its `%(num)s`."""
    return plural(one, many, count) % {"num": count, **values}


def plural(one: str, many: str, count: int) -> str:
    """Return the form of a text for a number, without its values."""
    current = language()
    if current == ENGLISH:
        return one if count == 1 else many
    return translations(current).ngettext(one, many, count)


def pgettext(context: str, text: str) -> str:
    """Return a text that has another translation in other places; the context is for translators."""
    return translations(language()).pgettext(context, text)


def N_(text: str) -> str:  # noqa: N802  the usual name, which the extraction knows
    """Mark a text for the catalogues; it is translated where it is read."""
    return text


def NN_(one: str, many: str) -> tuple[str, str]:  # noqa: N802
    """Mark the two forms of a text, which `ngettext` translates later."""
    return one, many


Default = TypeVar("Default")


class Words(Mapping[str, str]):
    """Texts by their names, marked by `N_`. Each is translated when it is read; `english` has them as written.

    A name without a text is its own text, because a stored one can be of another version (D-137).
    """

    def __init__(self, english: Mapping[str, str] | None = None, /, **more: str) -> None:
        self.english = {**(english or {}), **more}

    def __getitem__(self, name: str) -> str:
        return gettext(self.english[name]) if name in self.english else name

    def __contains__(self, name: object) -> bool:
        return name in self.english

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, /, default: str | Default) -> str | Default: ...

    def get(self, name: str, /, default: object = None) -> object:
        """Return the text of a name, or the default if it has none, as for a name that a caller has sent."""
        return gettext(self.english[name]) if name in self.english else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.english)

    def __len__(self) -> int:
        return len(self.english)
