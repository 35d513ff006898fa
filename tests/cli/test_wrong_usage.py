"""Words of the command line that no database can store are wrong usage, not a defect."""

import pytest

from profilesvc.cli.opening import LARGEST
from support.api import ALICE
from support.command_line import Run, refused

SITE = ("--name", "x", "--location", "111")


@pytest.mark.parametrize("number", [str(LARGEST + 1), "9" * 20, "9" * 5_000, "0", "x", "\u0661x"])
@pytest.mark.parametrize(
    "words",
    [
        "locations assign 111 {}",
        "webhooks disable {} 1",
        "webhooks disable 1 {}",
        "webhooks enable 1 {}",
        "provider connections check {} 1",
        "provider connections check 1 {}",
        "provider connections disconnect {} 1",
        "provider connections disconnect 1 {}",
        f"keys create {ALICE} --business {{}} {' '.join(SITE)}",
        "keys deactivate svcid_1_1_x --reason billing_issue --version {}",
        "keys reactivate svcid_1_1_x --reason billing_issue --version {}",
        f"users billing {ALICE} --paid --version {{}}",
    ],
)
def test_numbers_have_a_range(run: Run, words: str, number: str) -> None:
    message = refused(run(*words.format(number).split()), 2)
    assert "Invalid value" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    "words", ["webhooks disable 1 {}", "provider connections check 1 {}", "locations assign 111 {}"]
)
def test_the_largest_number_is_an_id(run: Run, words: str) -> None:
    assert "no" in refused(run(*words.format(LARGEST).split()))


@pytest.mark.parametrize(
    "words",
    [
        ("users", "token", "\udcff"),
        ("users", "add", "zoe@example.com", "--name", "Zo\udceb"),
        ("users", "link", ALICE, "sub\udcff"),
        ("keys", "list", "\udcff"),
        ("keys", "revoke", "\udcff"),
        ("keys", "create", ALICE, "--business", "10", "--location", "111", "--name=\udcff"),
        ("keys", "audit", "--before", "\udcff"),
        ("events", "tail", "\udcff", "--once"),
        ("\udcff",),
    ],
)
def test_words_are_utf_8(run: Run, words: tuple[str, ...]) -> None:
    message = refused(run(*words), 2)
    assert message.splitlines()[-1].endswith("is not UTF-8")
    assert "\\udc" in message


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8000", "ftp://host", "http://", "http://[::1", "http://host:99999", "http://a..b"),
        *("http://a\tb", "http://-\u00e9.example", f"http://{'a' * 64}.example"),
    ],
)
def test_an_address_is_a_url(run: Run, url: str) -> None:
    message = refused(run("simulate", "plugin", "--client-id", "a", "--client-secret", "b", "--url", url), 2)
    assert "must be a URL such as https://host" in message
    line = run("doctor", url)
    assert (line.exit_code, line.stderr) == (1, "")
    assert line.stdout.startswith("fail  reachable")
    assert "is not a URL" in line.stdout
