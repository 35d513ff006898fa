"""The template of the plugin's translations has every text of the plugin."""

from support.pages.translations import PLUGIN, TEMPLATE, calls, template, texts


def test_the_template_is_up_to_date() -> None:
    assert TEMPLATE.read_text("utf-8") == template(), "run `make plugin-files`"


def test_every_call_is_found() -> None:
    written = sum(calls(file) for file in PLUGIN.rglob("*.php"))
    found = sum(file.read_text("utf-8").count("', 'profilesvc')") for file in PLUGIN.rglob("*.php"))
    assert written == found > 50
    assert len(texts()) > 45


def test_a_placeholder_has_a_hint() -> None:
    assert [text for text, (_, hint) in texts().items() if "%" in text and not hint] == []
