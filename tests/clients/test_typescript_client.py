"""clients/typescript: generate, compile with all checks, and call every operation of a running service."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from profilesvc.fixtures import fixture_path
from support.api import assert_ok
from support.clients.generators import DOCUMENT, INSTALLED, ROOT, node, run
from support.pages.blocks import proven_by

pytestmark = pytest.mark.clients
CLIENT = ROOT / "clients" / "typescript"
BUILD = "npm run build"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
README = "clients/typescript/README.md"
TYPES = str(INSTALLED / "node_modules" / "@types")
OURS = ("errors.ts", "hours.ts", "index.ts", "paging.ts", "retry-after.ts", "tokens.ts", "webhooks.ts")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built copy of the client, with the sample of its README as `test/readme.ts`."""
    node("@hey-api/openapi-ts")
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "generated"))
    (folder / "node_modules").symlink_to(node("typescript").parent)
    (sample,) = proven_by(README, "built")
    (folder / "test" / "readme.ts").write_text(sample.text)  # a package can import itself by its name
    run(*BUILD.split(), cwd=folder, API_DOCUMENT=str(DOCUMENT))
    return folder


def test_the_client_calls_every_operation(built: Path, story: dict[str, Any]) -> None:
    run("node", "dist/test/operations.js", cwd=built, API_DOCUMENT=str(DOCUMENT), **story)


def test_deliveries_are_verified(built: Path) -> None:
    """Signed here by the library of the specification; the test in TypeScript changes each part."""
    at = datetime.now(UTC)
    body, ident = json.dumps({"id": "evt_1_7", "type": "key.rolled", "text": "é"}, ensure_ascii=False), "evt_1_7"
    timestamp = str(int(at.timestamp()))
    headers = {
        "webhook-id": ident,
        "webhook-timestamp": timestamp,
        "webhook-signature": Webhook(SECRET).sign(ident, at, body),
    }
    run("node", "dist/test/webhooks.js", cwd=built, BODY=body, HEADERS=json.dumps(headers), SECRET=SECRET)


def test_hours_are_read_as_the_dashboard_reads_them(built: Path) -> None:
    run("node", "dist/test/hours.js", cwd=built, CASES=str(ROOT / "data" / "fixtures" / "hours_cases.json"))


def test_rules_that_need_no_service(built: Path) -> None:
    run("node", "dist/test/rules.js", cwd=built, CASES=str(fixture_path("retry_after_cases.json")))


def test_the_sample_of_the_readme(built: Path, story: dict[str, Any]) -> None:
    with httpx.Client(base_url=story["BASE_URL"], headers={"Authorization": f"Bearer {story['USER_TOKEN']}"}) as owner:
        body = {"name": "README", "business_id": 10, "assigned_location_id": "locations/111"}
        key = assert_ok(owner.post("/api/v1/developer/credentials", json=body), 201)
    pair = {name.upper(): key[name] for name in ("client_id", "client_secret")}
    lines = run("node", "dist/test/readme.js", cwd=built, BASE_URL=story["BASE_URL"], **pair).splitlines()
    assert lines[0].endswith(" PROCESSING")
    assert lines[1].endswith(" Our winter menu is here.")
    assert lines[-1] == "summary is required for a STANDARD post"


def test_another_project_installs_it(built: Path, tmp_path: Path) -> None:
    """The tools of the second command are those of `make clients`, because a test downloads nothing."""
    (block,) = proven_by(README, "test_another_project_installs_it")
    install, _tools = block.text.splitlines()
    (sample,) = proven_by(README, "built")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = {"strict": True, "module": "nodenext", "target": "es2022", "types": ["node"], "typeRoots": [TYPES]}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["sample.ts"]}))
    (tmp_path / "sample.ts").write_text(sample.text)
    run(*install.replace("PATH/clients/typescript", str(built)).split(), "--offline", "--ignore-scripts", cwd=tmp_path)
    run("tsc", "--project", tmp_path, cwd=tmp_path)
    assert (tmp_path / "sample.js").exists()


def test_the_readme_builds_it_as_the_test_does() -> None:
    """`make clients` installs its packages in another folder, so that the clone stays clean."""
    (block,) = proven_by(README, "test_the_readme_builds_it_as_the_test_does")
    assert block.text.splitlines() == ["npm install", BUILD]


def test_our_part_is_small() -> None:
    assert sum(len((CLIENT / "src" / name).read_text("utf-8").splitlines()) for name in OURS) <= 500


def test_its_tools_are_those_of_make_clients() -> None:
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    installed = (Path(__file__).parent / "npm.txt").read_text("utf-8").split()
    assert {f"{name}@{version}" for name, version in package["devDependencies"].items()} <= set(installed)
    assert "dependencies" not in package
