"""Schemathesis draws requests from the OpenAPI document and finds no answer that the document does not promise."""

import collections
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import Postgres
from profilesvc.bootstrap import DEV_ISSUER_KEY_FILE
from profilesvc.tokens import keys
from support.api import ALICE, assert_ok
from support.effort import effort
from support.fleet.deployment import deployed
from support.identity.dev_issuer import REQUEST
from support.tokens import PATH as TOKEN
from support.wire import seeded, serving

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "openapi.json"
REPORTS = HERE.parents[1] / "build" / "schemathesis"
PLANS = HERE.parents[1] / "src" / "profilesvc" / "plans.toml"
KEYS = "/api/v1/developer/credentials"
LOCATION = "/api/v1/external-business/locations/111"
ALL = "examples,coverage,fuzzing,stateful"
# The phase of edge cases takes the longest, and is the same for everybody who is let in.
PHASES = effort(
    {"user": "coverage", "service": "fuzzing,stateful"},
    {"user": ALL, "service": ALL, "reading service": ALL},
)
# Of each operation, for each role.
EXAMPLES = effort({"one process": 5}, {"one process": 1_000, "four workers": 200})


@dataclass
class Target:
    """A running service, and who may call it."""

    url: str
    base_url: str
    user: str
    data_dir: Path

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=20, trust_env=False
        )

    def site(self, **members: Any) -> dict[str, Any]:
        """A new key of locations/111 and its first tokens, in one dictionary."""
        body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111", **members}
        with self.client(self.user) as http:
            key = assert_ok(http.post(KEYS, json=body), 201)
            credentials = {name: key[name] for name in ("client_id", "client_secret")}
            granted = assert_ok(http.post(TOKEN, json={"grant_type": "client_credentials", **credentials}))
            return {**key, **granted}

    def bearer(self, role: str) -> str:
        """An access token of someone of that role."""
        if role == "user":
            return self.user
        site = self.site(**({"permissions": ["business.read"]} if role == "reading service" else {}))
        return str(site["access_token"])

    def known(self) -> dict[str, Any]:
        """Values that only an informed caller can send: a key and its tokens, a key that may be revoked, a login."""
        with self.client(self.user) as http:
            assert http.get("/dev/issuer/authorize", params=REQUEST).is_success  # its users are linked by this
            assert_ok(http.patch(f"{LOCATION}/sync", json={"syncEnabled": True}))
        key = keys.load_or_create(self.data_dir / DEV_ISSUER_KEY_FILE)
        login = {"iss": f"{self.base_url}/dev/issuer", "aud": REQUEST["client_id"], "sub": "demo-1"}
        site = self.site()
        return {
            **{name: site[name] for name in ("client_id", "client_secret", "refresh_token")},
            "doomed": self.site()["client_id"],
            "issuer_key": keys.pem_of(key, None),
            "issuer_kid": key.kid,
            "login": login,
        }


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """The plans, with room for every post and key that is drawn: a full quota is tried elsewhere."""
    roomy = re.sub(r"(monthly_posts|live_keys_per_location) = [1-9][\d_]*", r"\1 = 1_000_000", PLANS.read_text("utf-8"))
    (tmp_path / "plans.toml").write_text(roomy, "utf-8")
    return tmp_path / "plans.toml"


@pytest.fixture(params=EXAMPLES)
def target(request: pytest.FixtureRequest, tmp_path: Path, plans: Path) -> Iterator[Target]:
    """One process on SQLite, or the deployment of four on PostgreSQL."""
    if request.param == "one process":
        settings = seeded(request.getfixturevalue("sqlite_template"), tmp_path, plans_file=plans)
        with serving(settings) as served:
            yield Target(served.server.base_url, settings.base_url, served.user, settings.data_dir)
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    with deployed(tmp_path, 4, postgres, PLANS_FILE=str(plans)) as service:
        settings = service.settings
        yield Target(service.service.url, settings.base_url, service.user_token(ALICE), settings.data_dir)


def described(counts: dict[str, dict[str, int]]) -> str:
    """One line for each operation: examples drawn, all requests, different ones, and how they were answered."""
    lines = [f"{'examples':>9}{'requests':>9}{'different':>10}  operation: answers"]
    for label, told in sorted(counts.items()):
        answers: collections.Counter[str] = collections.Counter()
        for phase_and_status, count in told.items():
            answers[phase_and_status.rpartition(" ")[2]] += count
        different = answers.pop("different")
        shown = ", ".join(f"{status} {count}" for status, count in sorted(answers.items()))
        lines.append(f"{drawn(told):9}{answers.total():9}{different:10}  {label}: {shown}")
    return "\n".join(lines) + "\n"


def drawn(told: dict[str, int]) -> int:
    """How many requests the phase that draws sent to an operation."""
    return sum(count for phase_and_status, count in told.items() if phase_and_status.startswith("fuzzing "))


@pytest.mark.fuzz
@pytest.mark.parametrize("role", PHASES)
def test_schemathesis_finds_nothing(target: Target, role: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    processes = request.node.callspec.params["target"]
    known = target.known()
    config = (HERE / "schemathesis.toml").read_text("utf-8").replace("BEARER", target.bearer(role))
    config = config.replace("CHAINS", str(max(5, EXAMPLES[processes] // 5)))
    for name in ("client_id", "client_secret", "refresh_token", "doomed"):
        config = config.replace(name.upper(), known[name])
    (tmp_path / "schemathesis.toml").write_text(config, "utf-8")
    (tmp_path / "known.json").write_text(json.dumps(known), "utf-8")
    (tmp_path / "schemathesis_hooks.py").write_bytes((HERE / "schemathesis_hooks.py").read_bytes())
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", str(DOCUMENT), "--url", target.url),
        *("--checks", "all", "--phases", PHASES[role], "--max-examples", str(EXAMPLES[processes])),
        *("--continue-on-failure", "--no-color", "--warnings", "off"),
        *effort(("--generation-deterministic",), ("--generation-database", "none")),
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    counts = json.loads((tmp_path / "counts.json").read_text("utf-8"))
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{processes}, {role}.txt").write_text(described(counts), "utf-8")
    generated = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    assert generated, run.stdout
    assert generated[1] == generated[2]
    assert len(counts) == sum(map(len, json.loads(DOCUMENT.read_text("utf-8"))["paths"].values()))
    if "fuzzing" in PHASES[role]:
        assert {label: drawn(told) for label, told in counts.items() if drawn(told) < EXAMPLES[processes]} == {}
