"""The image of Containerfile: built on a base of Debian's packages, and at work as a user without rights."""

import json
import re
from pathlib import Path

import httpx
import pytest

from image.containers import Container, Podman, missing
from support.pages.blocks import proven_by

pytestmark = [pytest.mark.image, pytest.mark.skipif(bool(missing()), reason=f"{missing()}")]


def test_the_image_is_built_as_the_page_says(podman: Podman, port: int) -> None:
    replaced = (
        ("serve --host 0.0.0.0", f"serve --host 127.0.0.1 --port {port}"),
        ("--ready", f"--ready --port {port}"),
    )
    _, trial = proven_by("docs/deploy.md", "test_the_image_is_built_as_the_page_says")
    script = trial.text
    for written, here in replaced:
        assert written in script
        script = script.replace(written, here)
    *lines, remove = script.splitlines()
    assert "the server accepts requests" in podman.shell("\n".join(lines))
    assert podman.run("inspect", "--format", "{{.State.ExitCode}}", "demo").strip() == "0"
    podman.shell(remove)


def test_the_image_describes_itself(podman: Podman) -> None:
    (image,) = json.loads(podman.run("image", "inspect", podman.IMAGE))
    config = image["Config"]
    assert config["User"] == "10001:10001"
    assert config["StopSignal"] in ("SIGTERM", "15")
    assert image["Healthcheck"]["Test"] == ["CMD", "profilesvc", "doctor", "--ready"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert labels.items() >= {"title": "profilesvc", "licenses": "MIT"}.items()
    assert re.fullmatch("[0-9a-f]{40}", labels["revision"])


def test_it_serves_on_a_read_only_root_and_stops_with_0(podman: Podman, port: int) -> None:
    with podman.container("serve", "--host", "127.0.0.1", "--port", str(port), "--demo") as service:
        service.wait_until_ready(port)
        assert service.run("id", "-u").strip() == "10001"
        assert "ead-only" in service.run("sh", "-c", "touch /opt/x 2>&1 || true")
        assert "accepts requests" in service.run("profilesvc", "doctor", "--ready", "--port", str(port))
        checks = json.loads(service.run("profilesvc", "doctor", "--json"))
        assert {check["status"] for check in checks} == {"ok"}
        assert_token(service, port)
        assert service.stop() == 0


def test_it_reads_secrets_from_files(podman: Podman, port: int, tmp_path: Path) -> None:
    (tmp_path / "pepper").write_text("pepper-of-the-test-6hT2kq9ZrVbW\n")
    (tmp_path / "pepper").chmod(0o644)
    inside = "/run/secrets/pepper"
    options = (f"--volume={tmp_path}/pepper:{inside}:ro", f"--env=PROFILESVC_SECRET_PEPPER_FILE={inside}")
    with podman.container("serve", "--host", "127.0.0.1", "--port", str(port), "--demo", options=options) as service:
        service.wait_until_ready(port)
        (pepper,) = [
            row for row in json.loads(service.run("profilesvc", "doctor", "--json")) if row["name"] == "pepper"
        ]
        assert "not set" not in pepper["message"]
        assert_token(service, port)


def assert_token(service: Container, port: int) -> None:
    command = (
        "keys",
        "create",
        "alice@example.com",
        "--name",
        "Site",
        "--business",
        "10",
        "--location",
        "locations/111",
    )
    key = json.loads(service.run("profilesvc", *command, "--json"))
    grant = {"grant_type": "client_credentials"}
    login = (key["client_id"], key["client_secret"])
    response = httpx.post(f"http://127.0.0.1:{port}/oauth2/token", data=grant, auth=login, trust_env=False)
    assert response.status_code == 200, response.text
    assert response.json()["access_token"]
