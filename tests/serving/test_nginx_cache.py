"""nginx as a cache in front of the service that stores every cacheable response: callers are never mixed up."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import make_settings
from profilesvc.bootstrap import Runtime, create_app, open_services
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import tokens
from support.api import ALICE, BOB, assert_error, assert_ok
from support.network.ports import free_port
from support.waiting import patience, until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx-light)")
LOCATIONS = "/api/v1/external-business/locations"
# `proxy_cache_valid` stores responses without a lifetime for ten minutes, whatever the caller, as testers had it.
CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=kept:1m;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {service};
            proxy_cache kept;
            proxy_cache_key $request_uri;
            proxy_cache_valid any 10m;
            add_header X-Kept $upstream_cache_status always;
        }}
    }}
}}
"""


@pytest.fixture
def people(tmp_path: Path, sqlite_template: Path) -> dict[str, str]:
    """User tokens, by e-mail address, of the demo data in the test's folder."""
    for file in sqlite_template.iterdir():
        shutil.copy(file, tmp_path)

    async def made() -> dict[str, str]:
        async with open_services(make_settings(tmp_path), Runtime(), provider=False) as services:
            return {email: await tokens.user_token(services, email) for email in (ALICE, BOB)}

    return asyncio.run(made())


@pytest.fixture
def cache(tmp_path: Path, people: dict[str, str]) -> Iterator[str]:
    """The address of nginx in front of the service."""
    port = free_port()
    with EmbeddedServer(create_app(make_settings(tmp_path))) as server:
        folder = tmp_path / "nginx"
        folder.mkdir()
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=port, service=server.base_url))
        assert NGINX is not None
        process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(configuration)], stderr=subprocess.PIPE)
        try:
            url = f"http://127.0.0.1:{port}"
            _await(url, process)
            yield url
        finally:
            process.terminate()
            process.communicate(timeout=patience(10))


def _await(url: str, process: "subprocess.Popen[bytes]") -> None:
    def answers() -> bool:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(httpx.TransportError):
            return bool(httpx.get(f"{url}/healthz", trust_env=False))
        return False

    until(answers, "nginx", every=0.05)


def test_a_cache_never_serves_the_response_of_another_caller(cache: str, people: dict[str, str]) -> None:
    with httpx.Client(base_url=cache, trust_env=False, timeout=60) as http:
        bearer = {email: {"Authorization": f"Bearer {token}"} for email, token in people.items()}
        bobs = http.get(LOCATIONS, headers=bearer[BOB])
        alices = http.get(LOCATIONS, headers=bearer[ALICE])
        assert {one["name"] for one in assert_ok(bobs)["locations"]}.isdisjoint(
            {one["name"] for one in assert_ok(alices)["locations"]}
        )
        assert_error(http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN")
        assert_ok(http.get(LOCATIONS, headers=bearer[BOB]))
        for path in (LOCATIONS, f"{LOCATIONS}/211", "/api/v1/audit", "/dashboard", "/healthz", "/metrics", "/nothing"):
            kept = [http.get(path, headers=bearer[BOB]).headers["x-kept"] for _ in range(2)]
            assert "HIT" not in kept, path
        for path in ("/openapi.json", "/.well-known/jwks.json", "/dashboard/static/icon.svg"):
            kept = [http.get(path).headers["x-kept"] for _ in range(2)]
            assert kept[1] == "HIT", path
