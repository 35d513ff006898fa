"""The language of a reader: which one is chosen, and how it writes times."""

import pytest

from profilesvc.domain.request import RequestInfo, serving
from profilesvc.language import formats
from profilesvc.language.choice import chosen
from profilesvc.language.texts import Words, gettext, ngettext


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("DE-at", "de"),
        ("de-CH,fr;q=0.9,en;q=0.8", "de"),
        ("en;q=0.5, de;q=0.6", "de"),
        ("fr, it;q=0.9", "en"),
        ("fr, de;q=0.1", "de"),
        ("*", "en"),
        ("*;q=0.5, de;q=0.1", "de"),
        ("de;q=0", "en"),
        ("de;q=0, *", "en"),
        ("de;q=-1", "en"),
        ("de;q=x, en;q=0.1", "en"),
        ("de;q=1e999", "en"),
        (";;;,,,q=1", "en"),
        ("dede", "en"),
        ("../../etc/passwd", "en"),
        ("d\N{CYRILLIC SMALL LETTER IE}", "en"),
        ("x," * 100_000 + "de", "en"),
    ],
)
def test_the_best_accepted_language_is_chosen(accepted: str, language: str) -> None:
    assert chosen(accepted=accepted) == language


def test_a_selected_language_precedes_the_accepted_one_if_it_exists() -> None:
    assert chosen("en", accepted="de") == "en"
    assert chosen(None, "de", accepted="en") == "de"
    for made_up in ("", "fr", "DE", "../de", "de\r\nX: y", "\N{NULL}"):
        assert chosen(made_up, accepted="de") == "de"
        assert chosen(made_up) == "en"


def test_times_and_numbers_are_those_of_the_language() -> None:
    at = "2026-01-05T09:08:07Z"
    assert (formats.utc(at), formats.utc(at, seconds=True)) == ("2026-01-05 09:08 UTC", "2026-01-05 09:08:07 UTC")
    assert (formats.day(at), formats.number(99.5)) == ("2026-01-05", "99.5")
    token = serving.set(RequestInfo(language="de"))
    try:
        assert (formats.utc(at), formats.utc(at, seconds=True)) == ("05.01.2026, 09:08 UTC", "05.01.2026, 09:08:07 UTC")
        assert (formats.day(at), formats.number(99.5)) == ("05.01.2026", "99,5")
    finally:
        serving.reset(token)


def test_words_are_translated_when_they_are_read() -> None:
    states = Words({"none": "No key"})
    token = serving.set(RequestInfo(language="de"))
    try:
        assert dict(states) == {"none": "Kein Schlüssel"}
        assert gettext("no text of a page") == "no text of a page"
        assert ngettext("There is a problem", "There are %(num)s problems", 3) == "Es gibt 3 Probleme"
    finally:
        serving.reset(token)
    assert dict(states) == states.english == {"none": "No key"}
