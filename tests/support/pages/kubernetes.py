"""The manifests of deploy/kubernetes/, rendered by the kubectl that pip installs. No cluster is asked."""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.repository import ROOT

KUBECTL = Path(sys.executable).with_name("kubectl")
OVERLAYS = ROOT / "deploy" / "kubernetes" / "overlays"
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
PROMETHEUS_RULE = ROOT / "deploy" / "kubernetes" / "monitoring" / "prometheusrule.yaml"
SECRETS = "/run/secrets/profilesvc"
_HEAD = """# Written from deploy/prometheus/rules.yml by `make reference`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: profilesvc
  labels:
    app.kubernetes.io/name: profilesvc
spec:
"""
Manifest = dict[str, Any]


@functools.cache
def rendered(overlay: str) -> tuple[Manifest, ...]:
    """Return the objects of an overlay as `kubectl apply -k` would send them."""
    words = [str(KUBECTL), "kustomize", str(OVERLAYS / overlay)]
    environment = os.environ | {"KUBECONFIG": os.devnull}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def named(overlay: str, kind: str, name: str = "profilesvc") -> Manifest:
    """Return an object by its kind and name. The hash of a ConfigMap's settings does not count."""
    found = [
        manifest
        for manifest in rendered(overlay)
        if manifest["kind"] == kind and manifest["metadata"]["name"].startswith(name)
    ]
    assert len(found) == 1, (overlay, kind, name)
    return found[0]


def pods(overlay: str) -> Iterator[Manifest]:
    """Return the pod templates of the Deployment and of the Job."""
    return (manifest["spec"]["template"] for manifest in rendered(overlay) if manifest["kind"] in ("Deployment", "Job"))


def settings(overlay: str) -> dict[str, str]:
    """Return the variables that the containers of an overlay get."""
    data: dict[str, str] = named(overlay, "ConfigMap", "profilesvc-settings")["data"]
    return data


def prometheus_rule() -> str:
    """Return the rules of Prometheus as an object of the Prometheus Operator."""
    _, groups, rules = RULES.read_text("utf-8").partition("groups:\n")
    return _HEAD + "".join(f"  {line}" if line.strip() else line for line in (groups + rules).splitlines(keepends=True))


if __name__ == "__main__":
    PROMETHEUS_RULE.write_text(prometheus_rule(), "utf-8")
