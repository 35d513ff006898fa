"""The catalogues of the pages: complete, up to date, and with the values and tags of the English texts."""

import pytest

from profilesvc.language.choice import ENGLISH, LANGUAGES
from profilesvc.language.texts import LOCALE
from support.pages import messages


def test_each_language_has_a_catalogue() -> None:
    stored = {path.parts[-3] for path in LOCALE.glob("*/LC_MESSAGES/messages.po")}
    assert stored == set(LANGUAGES) - {ENGLISH}


@pytest.mark.parametrize("language", messages.translated())
def test_the_catalogue_has_the_texts_of_the_code(language: str) -> None:
    stored = messages.path_of(language).read_bytes()
    assert stored == messages.updated(language), f"the texts of {language} are not those of the code: `make messages`"


@pytest.mark.parametrize("language", messages.translated())
def test_each_text_is_translated(language: str) -> None:
    found = list(messages.defects(language))
    advice = f"run `make messages`, then translate in {messages.path_of(language)}"
    assert not found, "\n".join([advice, *found])
