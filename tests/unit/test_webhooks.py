"""Which URLs and addresses are accepted, the form of messages to chats, and the cost of importing."""

import subprocess
import sys

import pytest

from profilesvc.delivery.chats import message
from profilesvc.domain.addresses import is_public, parse_target
from support.cases.sites import ADDRESSES
from support.cases.webhook_urls import OTHER_FORM as USUAL
from support.cases.webhook_urls import REFUSED

# What a name may resolve to, as the system's resolver returns it.
NOT_PUBLIC = ["127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "169.254.169.254", "x", "", "127.1"]


@pytest.mark.parametrize(("url", "problem"), REFUSED.items())
def test_a_url_is_refused_with_its_reason(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as raised:
        parse_target(url, allow_private=False)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://hooks.example", "https://hooks.example/"),
        ("HTTPS://Hooks.Example:443/A?b=1", "https://hooks.example/A?b=1"),
        ("https://hooks.example.:8443/", "https://hooks.example:8443/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://xn--hks-sna.example/", "https://xn--hks-sna.example/"),
        ("https://H\u00d6oks.example/", "https://xn--hoks-5qa.example/"),
        ("https://hooks\u3002\uff45xample/", "https://hooks.example/"),
        ("https://\u2615.example/", "https://xn--53h.example/"),
        ("https://my_hooks.example/", "https://my_hooks.example/"),
        ("https://[2606:4700:0::1111]/", "https://[2606:4700::1111]/"),
    ],
)
def test_a_url_is_accepted_in_its_one_form(url: str, same: str) -> None:
    assert parse_target(url, allow_private=False).url == same


@pytest.mark.parametrize("case", [case for case in ADDRESSES if case["site"]], ids=lambda case: case["address"])
def test_the_host_of_a_webhook_is_that_of_a_site(case: dict[str, str]) -> None:
    """Both are canonical by one function. An address in another form, and an accident, are refused here too."""
    address = case["address"].partition("#")[0].strip()
    url = address if "://" in address else f"https://{address}"
    try:
        found = parse_target(url, allow_private=True).netloc.removesuffix(":443").removesuffix(":80")
    except ValueError as error:
        found = str(error)
    assert found in (case["site"], USUAL, case["refused"])
    assert (found == USUAL) is (case["site"][0].isdigit() and case["site"] not in address)


def test_development_may_allow_this_machine() -> None:
    assert parse_target("http://127.0.0.1:80/x", allow_private=True).url == "http://127.0.0.1/x"
    assert parse_target("http://[::1]:8001/", allow_private=True).netloc == "[::1]:8001"
    with pytest.raises(ValueError, match="usual form"):
        parse_target("http://2130706433/", allow_private=True)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::8a"])
def test_a_public_address_is_accepted(address: str) -> None:
    assert is_public(address)


def test_there_are_enough_cases() -> None:
    assert len(REFUSED) + len(NOT_PUBLIC) >= 90


def test_a_chat_cannot_be_made_to_mention_or_format() -> None:
    title = "A sync of <!here> *failed*"
    data = {"location_id": "<!channel> & `x`", "error": "@everyone"}
    document = {"id": "evt_1_1", "type": "sync.failed", "created_at": "2026-01-02T03:04:05.678Z", "data": data}
    slack = message("slack", title, document)
    assert (slack["mrkdwn"], slack["unfurl_links"]) == (False, False)
    assert slack["text"].startswith("A sync of &lt;!here&gt; *failed*\n")
    assert "&lt;!channel&gt; &amp;" in slack["text"]
    discord = message("discord", title, document)
    assert (discord["allowed_mentions"], discord["flags"]) == ({"parse": []}, 4)
    assert discord["content"].startswith(r"A sync of \<\!here\> \*failed\*")
    assert "Location: `<!channel> & x`\n" in discord["content"]


HOSTILE = {
    "[pay here](https://evil.example)": r"\[pay here\](https://evil.example)",
    "![x](https://evil.example/x.png)": r"\!\[x\](https://evil.example/x.png)",
    "*a* _b_ ~c~ `d`": r"\*a\* \_b\_ \~c\~ \`d\`",
    "{{DATE(2026-01-02T03:04:05Z, SHORT)}}": r"\{\{DATE(2026-01-02T03:04:05Z, SHORT)\}\}",
    "- item": r"\- item",
    "+ item": r"\+ item",
    "12. item": r"12\. item",
    "1) item": r"1\) item",
    "2026-01-02": "2026-01-02",
    "# heading": r"\# heading",
    "> quote": r"\> quote",
    "<at>all</at> &lt;b&gt;": r"\<at\>all\</at\> \&lt;b\&gt;",
    "a\nTime: 1999\r\n\u2028- b": "a Time: 1999 - b",
    "back\\slash": r"back\\slash",
    "|a|b|": r"\|a\|b\|",
}


@pytest.mark.parametrize("field", ["location_id", "client_id", "error", "title", "id", "created_at"])
@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_every_text_of_a_card_is_shown_as_it_is(text: str, field: str) -> None:
    names = {"location_id": "Location", "client_id": "API key", "error": "Error", "id": "Event", "created_at": "Time"}
    document = {"id": "evt_1_1", "created_at": "2026-01-02T03:04:05.678Z", "data": {field: text}}
    if field in document:
        document[field] = text
    card = message("teams", text if field == "title" else "A title", document)["attachments"][0]["content"]["body"]
    shown = {fact["title"]: fact["value"] for fact in card[1]["facts"]} | {"title": card[0]["text"]}
    assert shown[names.get(field, field)] == HOSTILE[text]


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
@pytest.mark.parametrize("kind", ["slack", "discord"])
def test_a_text_cannot_look_like_another_line(kind: str, text: str) -> None:
    document = {"id": "evt_1_1", "created_at": "2026-01-02T03:04:05.678Z", "data": {"error": text}}
    sent = message(kind, text, document)
    lines = sent["text" if kind == "slack" else "content"].splitlines()
    assert [line.partition(":")[0] for line in lines[1:]] == ["Error", "Event", "Time"]


@pytest.mark.slow
def test_a_started_command_does_not_load_the_transport() -> None:
    code = "import profilesvc.bootstrap, sys; print('profilesvc.delivery' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
