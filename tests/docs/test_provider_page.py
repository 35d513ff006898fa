"""docs/provider.md: the commands for the real provider, as far as they work without it."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from profilesvc.settings import load
from support.pages.blocks import proven_by

PAGE = "docs/provider.md"


def test_the_exchange_of_the_code_is_a_valid_request() -> None:
    (block,) = proven_by(PAGE, "test_the_exchange_of_the_code_is_a_valid_request")
    forms: list[dict[str, list[str]]] = []

    class TokenEndpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            forms.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        here = block.text.replace("https://oauth2.googleapis.com", f"http://127.0.0.1:{server.server_port}")
        subprocess.run(["bash", "-c", f"export NO_PROXY=127.0.0.1; {here}"], check=True, timeout=30)
    names = ("client_id", "client_secret", "code", "grant_type", "redirect_uri")  # RFC 6749, section 4.1.3
    assert [sorted(form) for form in forms] == [list(names)]


def test_the_settings_of_the_page_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = proven_by(PAGE, "test_the_settings_of_the_page_are_accepted")
    file = tmp_path / ".env"
    file.write_text(block.text.replace("…", "x" * 20), "utf-8")
    for name in ("ENVIRONMENT", "BASE_URL"):
        monkeypatch.delenv(f"PROFILESVC_{name}", raising=False)
    monkeypatch.setenv("PROFILESVC_TOKENS__KEY_PASSPHRASE", "correct horse battery staple")
    settings = load(_env_file=file, environment="production", base_url="https://profiles.example.com")
    assert not settings.provider.embedded
    assert settings.provider.refresh_token.get_secret_value() == "x" * 20
