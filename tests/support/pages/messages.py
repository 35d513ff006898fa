"""The catalogues of the pages: `python -m support.pages.messages` adds new texts, and removes those that are gone."""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from profilesvc.language.choice import ENGLISH, LANGUAGES
from profilesvc.language.texts import LOCALE
from support.repository import ROOT

CODE = ROOT / "src" / "profilesvc"
_METHODS = [("**.html", "jinja2"), ("**.py", "python")]
_OPTIONS = {"**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
_KEYWORDS = {
    "_": None,
    "N_": None,
    "gettext": None,
    "ngettext": (1, 2),
    "plural": (1, 2),
    "NN_": (1, 2),
    "pgettext": ((1, "c"), 2),
}
_FOLDERS = ("dashboard", "dev_issuer", "language")
_VALUE = re.compile(r"%\(\w+\)s|%%|<[^>]+>|`[^`]*`")


def translated() -> list[str]:
    """Return the languages that have a catalogue."""
    return [language for language in LANGUAGES if language != ENGLISH]


def path_of(language: str) -> Path:
    """Return the file of a language."""
    return LOCALE / language / "LC_MESSAGES" / "messages.po"


def extracted() -> Catalog:
    """Return the texts of the code, in the order of their files."""
    catalogue = Catalog(charset="utf-8")
    for folder in _FOLDERS:
        found = extract_from_dir(CODE / folder, _METHODS, _OPTIONS, _KEYWORDS)
        for file, _line, text, comments, context in sorted(found, key=lambda one: (one[0], one[1])):
            catalogue.add(text, None, [(f"{folder}/{file}", 0)], auto_comments=comments, context=context)
    return catalogue


def stored(language: str) -> Catalog:
    """Return the catalogue of a language."""
    with path_of(language).open("rb") as file:
        return read_po(file, locale=language)


def updated(language: str) -> bytes:
    """Return the catalogue of a language with the texts of the code. A changed text has to be translated again."""
    catalogue = stored(language)
    catalogue.update(extracted(), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    written = BytesIO()
    write_po(written, catalogue, width=0, omit_header=True, no_location=True, sort_by_file=True)
    head = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Plural-Forms: {catalogue.plural_forms}\\n"\n'
    return f'{head}"Content-Type: text/plain; charset=utf-8\\n"\n\n'.encode() + written.getvalue()


def defects(language: str) -> Iterator[str]:
    """Return what is wrong with the translations of a language, each with its text."""
    for message in stored(language):
        if message.id:
            yield from (f"{_english(message)[0]!r}: {defect}" for defect in _defects(message))


def _english(message: Message) -> tuple[str, ...]:
    return tuple(message.id) if isinstance(message.id, list | tuple) else (message.id,)


def _defects(message: Message) -> Iterator[str]:
    english = _english(message)
    ours = tuple(message.string) if isinstance(message.string, list | tuple) else (message.string or "",)
    if not all(ours):
        yield "has no translation"
        return
    if message.fuzzy:
        yield "is marked as fuzzy"
    for text in ours:  # the form for one may leave out its number
        values, wanted = set(_VALUE.findall(text)), set(_VALUE.findall(english[-1]))
        if values != wanted and not (text is not ours[-1] and wanted - values == {"%(num)s"}):
            yield f"has other values, tags or code than {text!r}"


if __name__ == "__main__":
    for each in translated():
        path_of(each).write_bytes(updated(each))
