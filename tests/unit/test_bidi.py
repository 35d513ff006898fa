"""Characters that change the direction of text: removed from what is shown, kept in what a form sends back."""

import pytest

from profilesvc.dashboard.exports import cell
from profilesvc.domain.bidi import html_without_controls, without_controls

CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
RTL = "\u05e9\u05dc\u05d5\u05dd\u200f 12 \u061cabc\u200e"  # with the marks that such texts need


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_are_removed_from_texts(control: str) -> None:
    assert without_controls(f"invoice{control}gnp.exe") == "invoicegnp.exe"
    assert cell(f"a{control}b") == "ab"
    assert cell(f"{control}=1+1") == "'=1+1"  # what is left is a formula
    assert html_without_controls(f"<p>a{control}b</p>") == "<p>ab</p>"


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>plain</p>",
        f"<p>{RTL}</p>",
        '<input value="a\u202eb">',
        "<textarea name=x>a\u202eb\n\u2066</textarea>",
        '<textarea name=x>\u202e</textarea><input value="\u2069">',
        '<option value="\u202e">',
    ],
)
def test_fields_and_texts_without_controls_stay_as_they_are(html: str) -> None:
    assert html_without_controls(html) == html


def test_the_texts_around_a_field_are_changed() -> None:
    html = "<h1>\u202ex</h1><textarea>\u202e</textarea>\u2067y<textareas>\u202ez"
    assert html_without_controls(html) == "<h1>x</h1><textarea>\u202e</textarea>y<textareas>z"
