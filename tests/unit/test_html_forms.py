"""Forms of pages: what is checked before anything is parsed, and what a form with a file keeps."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qsl

import pytest

from profilesvc.api import html_forms
from profilesvc.api.html_forms import BUTTONS, TEXTS, FormRule, Parts
from profilesvc.api.request import Upload
from profilesvc.domain.errors import ServiceError

KB = 1024
WITH_FILE = FormRule(2 * KB, 10, Upload(100 * KB, 10 * KB))


def part(name: str, content: bytes, file: str | None = None) -> bytes:
    named = f'name="{name}"' + ("" if file is None else f'; filename="{file}"')
    return b"--x\r\nContent-Disposition: form-data; " + named.encode() + b"\r\n\r\n" + content + b"\r\n"


END = b"--x--\r\n"
TOKEN = part("csrf", b"token")


def check(token: str) -> None:
    if token != "token":
        raise PermissionError(token)


def parsed(sent: bytes, step: int = 10_000, rule: FormRule = WITH_FILE) -> tuple[Any, Any]:
    parts = Parts("x", rule, check)
    for at in range(0, len(sent), step):
        parts.feed(sent[at : at + step])
    return parts.finished()


def status(call: Callable[[], object]) -> int | str:
    try:
        call()
    except ServiceError as error:
        return error.kind.status
    except PermissionError as error:
        return f"token {error}"
    return 200


@pytest.mark.parametrize("step", [1, 7, 1000, 100_000])
def test_a_form_keeps_its_fields_and_the_start_of_a_large_file(step: int) -> None:
    sent = TOKEN + part("a", b"Typed\r\n--") + part("b", b"\r\n--y" * 100)
    sent += part("file", b"\r\n-" * 10_000, "phone.jpg") + part("none", b"", "") + part("a", "ü".encode()) + END
    form, files = parsed(sent, step)
    assert form.getlist("a") == ["Typed\r\n--", "ü"]
    assert form["b"] == "\r\n--y" * 100
    assert len(files["file"].read()) == 10 * KB + 1  # the check of a file finds that it is too large
    assert "none" not in files  # nothing was selected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (TOKEN + END, 200),
        (TOKEN + part("a", b"x") * 9 + END, 200),
        (TOKEN + part("a", b"x") * 10 + END, 413),
        (TOKEN + part("a", b"x" * 3 * KB) + END, 413),
        (TOKEN + part("a", b"x" * KB) * 3 + END, 413),
        (part("csrf", b"other") + END, "token other"),
        (part("a", b"x") + TOKEN + END, "token "),  # the first field, so that nothing else is parsed before it
        (part("file", b"x", "f") + TOKEN + END, "token "),
        (END, "token "),
        (TOKEN, 400),
        (TOKEN[:-10], 400),
        (b"", 400),
        (b"no form", 400),
        (b"--x\r\nA: b\r\n" * 5 + TOKEN, 400),
        (b"--x\r\n" + b"A: b\r\n" * 5 + b"\r\n", 413),
        (b"--x\r\nA: " + b"b" * 2 * KB + b"\r\n\r\n", 413),
        (b"--x\r\n" * 1000, 400),
        (TOKEN + b"--x\r\n\r\n" * 1000, 400),
        (TOKEN + b"--x\rContent-Disposition", 400),
    ],
)
def test_limits_of_a_form_with_a_file(sent: bytes, expected: int | str) -> None:
    assert status(lambda: parsed(sent)) == expected
    assert status(lambda: parsed(sent, 3)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"csrf=token", 200),
        (b"a=1&csrf=token&b=2", 200),
        (b"a=1&csrf=tok%65n", 200),
        (b"csrf=token" + b"&a=1" * 19, 200),
        (b"csrf=token" + b"&a=1" * 20, 413),
        (b"&" * 4000, 413),
        (b"", "token "),
        (b"xcsrf=token", "token "),
        (b"csrf=other&csrf=token", "token other"),  # of two, the first one counts, as in the form
        (b"csrf=" + b"x" * 3000, "token "),
        (b"csrf=\xff", "token ÿ"),
    ],
)
def test_the_fields_and_the_token_of_a_form_are_checked_before_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch, raw: bytes, expected: int | str
) -> None:
    parser = Mock(wraps=parse_qsl)
    monkeypatch.setattr(html_forms, "parse_qsl", parser)
    assert status(lambda: html_forms.fields_of(raw, BUTTONS, check)) == expected
    assert parser.called == (expected == 200)


def test_fields_are_decoded_as_browsers_send_them() -> None:
    form = html_forms.fields_of(b"a=%C3%BC+b&a=2&empty=&%2B=%26&bad=%ff%", TEXTS)
    assert form.getlist("a") == ["ü b", "2"]
    assert (form["empty"], form["+"], form["bad"]) == ("", "&", "\ufffd%")
