"""deploy/kubernetes/: the overlays are valid, restricted and consistent, and the service runs with their settings."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest

from conftest import Postgres
from profilesvc.settings import PREFIX
from support.database.redis_server import RedisServer
from support.network.ports import free_port
from support.pages.blocks import blocks, proven_by
from support.pages.kubernetes import (
    KUBECTL,
    OVERLAYS,
    PROMETHEUS_RULE,
    SECRETS,
    Manifest,
    named,
    pods,
    prometheus_rule,
    rendered,
    settings,
)
from support.program import Server, command, serving
from support.repository import ROOT
from support.waiting import patience, until

VERSIONS = ("1.30", "1.37")
OPERATOR = {"PrometheusRule", "ServiceMonitor"}  # kinds of the Prometheus Operator, which have no schema there
PAGE = "docs/kubernetes.md"
LONGEST_REQUEST_SECONDS = 20
POSTGRES_CONNECTIONS = 100 - 3  # the default, less those for superusers


@pytest.fixture(params=["single", "high-availability"])
def overlay(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_objects_are_valid(overlay: str) -> None:
    for manifest in rendered(overlay):
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.SchemaNotFoundError:
                assert manifest["kind"] in OPERATOR


def test_a_misspelt_field_is_noticed() -> None:
    manifest = deepcopy(named("single", "Deployment"))
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(manifest, VERSIONS[0], strict=True)


def unrestricted(spec: Manifest) -> list[str]:
    """Return the rules of the restricted profile of the Pod Security Standards that a pod breaks."""
    pod = spec.get("securityContext", {})
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    found += [volume["name"] for volume in spec["volumes"] if not kinds & volume.keys()]
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        own = container.get("securityContext", {})
        profile = own.get("seccompProfile", pod.get("seccompProfile", {})).get("type")
        checks = {
            "runAsNonRoot": own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True,
            "runAsUser": own.get("runAsUser", pod.get("runAsUser")) != 0,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "seccompProfile": profile in ("RuntimeDefault", "Localhost"),
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,  # stricter than the profile
            "hostPort": not any("hostPort" in port for port in container.get("ports", [])),
        }
        found += [name for name, passes in checks.items() if not passes]
    return found


def test_every_pod_has_the_restricted_profile(overlay: str) -> None:
    for pod in pods(overlay):
        assert unrestricted(pod["spec"]) == []
        assert pod["spec"]["automountServiceAccountToken"] is False
        for container in pod["spec"]["containers"]:
            assert container["resources"]["limits"]["memory"]
    labels = named(overlay, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize(
    ("broken", "change"),
    [
        ("capabilities", {"capabilities": {}}),
        ("allowPrivilegeEscalation", {"allowPrivilegeEscalation": True}),
        ("readOnlyRootFilesystem", {"readOnlyRootFilesystem": False}),
        ("runAsUser", {"runAsUser": 0}),
        ("seccompProfile", {"seccompProfile": {"type": "Unconfined"}}),
    ],
)
def test_a_pod_with_more_rights_is_noticed(broken: str, change: Manifest) -> None:
    spec = deepcopy(next(pods("single"))["spec"])
    spec["containers"][0]["securityContext"] |= change
    assert unrestricted(spec) == [broken]


def test_the_selectors_find_the_pods_of_the_server(overlay: str) -> None:
    deployment = named(overlay, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    (container,) = deployment["template"]["spec"]["containers"]
    service = named(overlay, "Service")
    assert labels == deployment["selector"]["matchLabels"] == service["spec"]["selector"]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == ports
    policy = named(overlay, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [["http"], ["metrics"]]
    for pod in pods(overlay):
        assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_several_processes_are_spread_scaled_and_drained() -> None:
    deployment = named("high-availability", "Deployment")["spec"]
    labels = deployment["selector"]["matchLabels"]
    assert "replicas" not in deployment  # else each apply would undo the autoscaler
    scaler = named("high-availability", "HorizontalPodAutoscaler")["spec"]
    assert (scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]) == ("Deployment", "profilesvc")
    budget = named("high-availability", "PodDisruptionBudget")["spec"]
    assert scaler["minReplicas"] > budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"] == labels
    spread = deployment["template"]["spec"]["topologySpreadConstraints"]
    assert [rule["topologyKey"] for rule in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert all(rule["labelSelector"]["matchLabels"] == labels for rule in spread)
    migration = named("high-availability", "Job")["spec"]["template"]["metadata"]["labels"]
    assert not labels.items() <= migration.items()  # the Service must not send requests to it
    pool = int(settings("high-availability")[f"{PREFIX}DATABASE_POOL_SIZE"])
    processes = scaler["maxReplicas"] + deployment["strategy"]["rollingUpdate"]["maxSurge"]
    assert processes * 2 * pool < POSTGRES_CONNECTIONS


def test_one_process_of_sqlite_never_overlaps_with_the_next() -> None:
    deployment = named("single", "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    volumes = {volume["name"]: volume for volume in deployment["template"]["spec"]["volumes"]}
    claim = named("single", "PersistentVolumeClaim")
    assert volumes["data"] == {"name": "data", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}


def test_the_pods_have_time_to_drain(overlay: str) -> None:
    drain = float(settings(overlay)[f"{PREFIX}DRAIN_SECONDS"])
    (pod,) = (pod["spec"] for pod in pods(overlay) if "terminationGracePeriodSeconds" in pod["spec"])
    (container,) = pod["containers"]
    ready = container["readinessProbe"]
    assert drain >= ready["periodSeconds"] * ready["failureThreshold"]  # a proxy that asks like this has noticed
    assert pod["terminationGracePeriodSeconds"] >= drain + LONGEST_REQUEST_SECONDS + 10


def test_the_monitor_reads_the_port_of_the_metrics() -> None:
    monitor, service = (named("high-availability", kind) for kind in ("ServiceMonitor", "Service"))
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    (container,) = named("high-availability", "Deployment")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert str(ports["metrics"]) == settings("high-availability")[f"{PREFIX}METRICS__PORT"]
    (group,) = named("high-availability", "PrometheusRule")["spec"]["groups"]
    assert len(group["rules"]) > 10


def test_the_rules_of_the_operator_are_those_of_prometheus() -> None:
    """`make reference` writes them."""
    assert PROMETHEUS_RULE.read_text("utf-8") == prometheus_rule()


class Secrets:
    """The Secret of the page as files, with the values of a test."""

    def __init__(self, folder: Path, **values: str) -> None:
        self.folder, self.values = folder, values
        folder.mkdir()
        for name, value in values.items():
            (folder / name).write_text(f"{value}\n")

    def variables(self, overlay: str, folder: Path, metrics_port: int) -> dict[str, str]:
        """Return the settings of an overlay without the prefix. Only paths, ports and placeholders are replaced."""
        found = {name.removeprefix(PREFIX): value for name, value in settings(overlay).items()}
        files = {name.removesuffix("_FILE") for name, value in found.items() if value.startswith(SECRETS)}
        assert files == self.values.keys()
        found = {name: value.replace(SECRETS, str(self.folder)) for name, value in found.items()}
        found = {name: "a-client" if value == "change-me" else value for name, value in found.items()}
        return found | {"DATA_DIR": str(folder), "METRICS__PORT": str(metrics_port), "DRAIN_SECONDS": "0.5"}


def words_of(pod: Manifest) -> list[str]:
    (container,) = pod["spec"]["containers"]
    command_line: list[str] = container["command"]
    assert command_line[0] == "profilesvc"
    return command_line[1:]


@contextlib.contextmanager
def running(overlay: str, folder: Path, secrets: Secrets) -> Iterator[tuple[Server, int]]:
    """Migrate and serve with the commands and settings of the pods, on free ports of 127.0.0.1."""
    port = free_port()
    variables = secrets.variables(overlay, folder, port)
    server, *migrations = sorted(pods(overlay), key=lambda pod: "db" in words_of(pod))
    for migration in migrations:
        done = command(folder, *words_of(migration), **variables)
        assert done.returncode == 0, done.stderr
    words = [{"0.0.0.0": "127.0.0.1", "8000": "0"}.get(word, word) for word in words_of(server)]
    with serving(folder, *words, **variables) as started:
        yield started, port


def secret_values(**more: str) -> dict[str, str]:
    names = (
        "SECRET_PEPPER",
        "TOKENS__KEY_PASSPHRASE",
        "IDENTITY__CLIENT_SECRET",
        "PROVIDER__CLIENT_SECRET",
        "PROVIDER__REFRESH_TOKEN",
    )
    return {name: f"a-secret-value-of-{name}" for name in names} | more


def assert_it_runs(overlay: str, folder: Path, secrets: Secrets) -> None:
    (container,) = named(overlay, "Deployment")["spec"]["template"]["spec"]["containers"]
    with running(overlay, folder, secrets) as (server, metrics_port):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            found = httpx.get(f"{server.url}{container[probe]['httpGet']['path']}", timeout=10)
            assert found.status_code == 200, (probe, found.text)
        assert "profilesvc_build_info" in httpx.get(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10).text
        assert httpx.get(f"{server.url}/metrics", timeout=10).status_code == 404
        server.process.send_signal(signal.SIGTERM)
        until(
            lambda: httpx.get(f"{server.url}/readyz", timeout=10).status_code != 200, "/readyz to report the drain", 10
        )
        _, err = server.process.communicate(timeout=patience(40))
        assert server.process.returncode == 0, err
        assert [line for line in err.splitlines() if '"level": "ERROR"' in line] == []


def test_the_service_runs_with_the_settings_of_one_process(tmp_path: Path) -> None:
    assert_it_runs("single", tmp_path, Secrets(tmp_path / "secrets", **secret_values()))
    assert (tmp_path / "profilesvc.db").exists()


@pytest.mark.postgres
def test_the_service_runs_with_the_settings_of_several(
    tmp_path: Path, postgres: Postgres, redis_server: RedisServer
) -> None:
    postgres.create("kubernetes")
    values = secret_values(DATABASE_URL=postgres.url("kubernetes"), LIMITS__STORAGE_URL=redis_server.url)
    try:
        assert_it_runs("high-availability", tmp_path, Secrets(tmp_path / "secrets", **values))
    finally:
        postgres.drop("kubernetes")


CLUSTER = """#!/bin/sh
# No cluster: what a command would send is rendered or written, and the words of all others are noted.
case "$1 $2" in
  "create secret") exec KUBECTL "$@" --dry-run=client -o yaml ;;
  "apply -k") echo "$@" >>NOTED; exec KUBECTL kustomize "$3" ;;
  "apply -f") exec cat "$3" ;;
  *) echo "$@" >>NOTED ;;
esac
"""


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """The Secret has the files that the settings name, and each object that a command names is in the overlay."""
    noted = tmp_path / "noted"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").write_text(CLUSTER.replace("KUBECTL", str(KUBECTL)).replace("NOTED", str(noted)))
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    found = proven_by(PAGE, "test_the_commands_of_the_page")
    assert found == [block for block in blocks(PAGE) if block.language == "sh"]
    script = "\n".join(block.text for block in found)
    shell = f"set -euo pipefail\nPATH={tmp_path}/bin:$PATH\nexport KUBECONFIG=/dev/null\n{script}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    files = {path.name for path in (tmp_path / "secrets").iterdir()}
    wanted = {Path(value).name for value in settings("high-availability").values() if value.startswith(SECRETS)}
    assert files == wanted
    assert all(f"\n  {name}: " in done.stdout for name in files)  # the Secret
    assert_named(noted.read_text("utf-8"))


def assert_named(commands: str) -> None:
    applied = {Path(path).name for path in re.findall(r"apply -k (\S+)", commands)}
    assert applied == {"high-availability"} <= {path.name for path in OVERLAYS.iterdir()}
    objects = {
        f"{manifest['kind'].lower()}/{manifest['metadata']['name']}" for manifest in rendered("high-availability")
    }
    mentioned = set(re.findall(r"\b(?:job|deployment)/[a-z-]+", commands))
    assert mentioned == {"job/profilesvc-migration", "deployment/profilesvc"} <= objects


def test_the_page_names_every_alert() -> None:
    (group,) = named("high-availability", "PrometheusRule")["spec"]["groups"]
    page: Any = (ROOT / PAGE).read_text("utf-8")
    alerts = {rule["alert"] for rule in group["rules"]}
    assert set(re.findall(r"`(Profilesvc\w+)`", page)) == alerts
