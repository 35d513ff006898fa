"""The PHP below the cards of the notebooks: it runs, and it makes the request of the card."""

import base64
import html
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from profilesvc.lab import open_lab
from support.other_python import page_of
from support.pages.notebooks import NOTEBOOKS, load

pytestmark = [
    pytest.mark.wordpress,
    pytest.mark.skipif(shutil.which("php") is None, reason="PHP is not installed here"),
]

_CARD = re.compile(
    r"[✓✗] (\d{3})\b(?:(?!✓|✗).)*?<summary>curl</summary><pre [^>]*>(.*?)</pre></details>"
    r"<details><summary>PHP</summary><pre [^>]*>(.*?)</pre>",
    re.DOTALL,
)
_RUN = """
$base_url = $argv[2]; $token = $argv[3]; $client_id = 'ID'; $client_secret = 'SECRET'; $results = [];
function wp_json_encode($value) { return json_encode($value, JSON_PRESERVE_ZERO_FRACTION); }
foreach (json_decode(file_get_contents($argv[1])) as $code) { eval($code); $results[] = $response; }
echo json_encode($results);
"""
_NOTE = "function wp_remote_request($url, $arguments) { return ['url' => $url] + $arguments; }"
_SEND = """
function wp_remote_request($url, $arguments) {
    $headers = [];
    foreach ($arguments['headers'] ?? [] as $name => $value) { $headers[] = "$name: $value"; }
    $options = ['method' => $arguments['method'], 'header' => $headers, 'ignore_errors' => true];
    $stream = fopen($url, 'r', false, stream_context_create(['http' => $options]));
    return (int) explode(' ', stream_get_meta_data($stream)['wrapper_data'][0])[1];
}
"""


class Card(NamedTuple):
    """A card of a notebook: the status of its response, and its request as `curl` and as PHP."""

    status: int
    curl: str
    php: str


def _cards(path: Path) -> list[Card]:
    outputs = [output for cell in load(path)["cells"] for output in cell.get("outputs", [])]
    shown = "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    return [Card(int(status), html.unescape(curl), html.unescape(php)) for status, curl, php in _CARD.findall(shown)]


def _run(cards: list[Card], sender: str, folder: Path, base_url: str, token: str) -> list[Any]:
    codes = folder / "codes.json"
    codes.write_text(json.dumps([card.php for card in cards]), "utf-8")
    command = ["php", "-d", "display_errors=stderr", "-r", sender + _RUN, str(codes), base_url, token]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    results: list[Any] = json.loads(done.stdout)
    return results


def _of_curl(command: str) -> dict[str, Any]:
    """Return the request of a `curl` command as the arguments of wp_remote_request."""
    name, *words = shlex.split(command.replace("\\\n", ""))
    assert name == "curl"
    request: dict[str, Any] = {"headers": {}}
    while words:
        word = words.pop(0)
        match word:
            case "-X":
                request["method"] = words.pop(0)
            case "-H":
                header, _, value = words.pop(0).partition(": ")
                request["headers"][header] = value.replace("$TOKEN", "TOKEN")
            case "-u":
                pair = words.pop(0).replace("$CLIENT_ID", "ID").replace("$CLIENT_SECRET", "SECRET")
                request["headers"]["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            case "-d":
                request["body"] = words.pop(0)
            case _:
                request["url"] = word.replace("$BASE_URL", "https://profiles.example")
    return request


def _parsed(request: dict[str, Any]) -> dict[str, Any]:
    body = request.get("body")
    is_json = isinstance(body, str) and body[:1] in "{["
    return {**request, "headers": request.get("headers", {}), "body": json.loads(str(body)) if is_json else body}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_php_of_a_card_makes_the_request_of_its_curl(path: Path, tmp_path: Path) -> None:
    cards = _cards(path)
    assert cards
    requests = _run(cards, _NOTE, tmp_path, "https://profiles.example", "TOKEN")
    for card, request in zip(cards, requests, strict=True):
        assert _parsed(request) == _parsed(_of_curl(card.curl)), card.php


def test_every_fold_belongs_to_a_card() -> None:
    folds = sum(path.read_text("utf-8").count("<summary>PHP</summary>") for path in NOTEBOOKS)
    assert sum(len(_cards(path)) for path in NOTEBOOKS) == folds


def test_the_php_of_the_first_page_has_the_responses_of_its_cards(tmp_path: Path) -> None:
    cards = _cards(page_of("00"))
    with open_lab(keep_open=True) as lab:
        assert _run(cards, _SEND, tmp_path, lab.url, lab.user_token("alice")) == [card.status for card in cards]
