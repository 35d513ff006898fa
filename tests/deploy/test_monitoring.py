"""deploy/prometheus/ and deploy/grafana/: the rules fire, and they and the dashboard use metrics that exist."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from profilesvc.operations import census
from profilesvc.services.context import Services
from support.api import Site, assert_ok
from support.pages.kubernetes import RULES
from support.repository import ROOT

TESTS = RULES.with_name("rules_test.yml")
DASHBOARD = ROOT / "deploy" / "grafana" / "profilesvc.json"
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=str(ROOT / "build" / "prometheus" / "usr" / "bin"))
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed; `make promtool` does it")
SELECTOR = re.compile(r"\b(profilesvc_\w+|up)\b(?:\{([^}]*)\})?")
BY = re.compile(r"\bby \(([^)]*)\)")
OF_PROMETHEUS = {"job", "exported_job", "instance", "le"}  # labels that the scrape adds or renames


def rules() -> dict[str, str]:
    """Return the expression of each alert."""
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if panel["type"] != "row")


def shown() -> dict[str, str]:
    """Return the expressions of the dashboard."""
    return {f"{panel['title']} {query['refId']}": query["expr"] for panel in panels() for query in panel["targets"]}


def promtool(*words: str, folder: Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_promtool
def test_the_rules_fire_for_their_causes_only() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES.name, folder=RULES.parent)
    assert "SUCCESS" in promtool("test", "rules", TESTS.name, folder=TESTS.parent)


@needs_promtool
def test_a_rule_that_never_fires_is_noticed(tmp_path: Path) -> None:
    changed = RULES.read_text("utf-8").replace('"in-flight"', '"in-fligth"')
    (tmp_path / RULES.name).write_text(changed)
    shutil.copy(TESTS, tmp_path)
    with pytest.raises(AssertionError, match="ProfilesvcOverloaded"):
        promtool("test", "rules", TESTS.name, folder=tmp_path)


@needs_promtool
def test_prometheus_can_read_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    known = [expression.replace("$__rate_interval", "5m") for expression in shown().values()]
    found = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(known)]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": found}]}))
    assert f"{len(found)} rules found" in promtool("check", "rules", "panels.yml", folder=tmp_path)


def test_each_alert_is_tested_when_it_fires_and_when_it_does_not() -> None:
    cases = [
        case for test in yaml.safe_load(TESTS.read_text("utf-8"))["tests"] for case in test.get("alert_rule_test", [])
    ]
    for fires in (True, False):
        tested = {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires}
        if fires:
            assert tested == rules().keys()
        else:  # the healthy service is the other case of ProfilesvcErrorsForAnHour and ProfilesvcProcessDown
            assert rules().keys() - tested <= {"ProfilesvcErrorsForAnHour", "ProfilesvcProcessDown"}


def used(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Return each metric of an expression with the labels that select it. Grouping names labels of all of them."""
    grouped = {label.strip() for found in BY.findall(expression) for label in found.split(",")}
    for name, selectors in SELECTOR.findall(expression):
        yield name, grouped | set(re.findall(r"(\w+)\s*[=!]~?", re.sub(r'"[^"]*"', "", selectors)))


async def test_the_rules_and_the_dashboard_use_metrics_that_exist(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    """The text of /metrics after a request, a count, two rejections and a delivery has every name and label."""
    assert_ok(await plugin.http.get("/api/v1/posts", params={"locationId": "111"}))
    services.metrics.limit_reached("in-flight")
    services.metrics.quota_event("posts", "refused")
    services.metrics.delivery("webhook", "delivered")
    services.metrics.job_started("sweep", "one process", 60, services.clock.now())
    services.metrics.job_ended("sweep", "ok", 0.1, services.clock.now())
    await census.count(services)
    exposed: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families((await http.get("/metrics")).text):
        for sample in family.samples:
            if not sample.name.endswith("_created"):  # of each counter: when it started
                exposed.setdefault(sample.name, set()).update(sample.labels)
    expressions = rules() | shown()
    mentioned = {name for expression in expressions.values() for name, _ in used(expression)}
    assert mentioned - exposed.keys() == set()
    for title, expression in expressions.items():
        for name, labels in used(expression):
            assert labels - OF_PROMETHEUS - exposed[name] == set(), (title, name)
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exposed if name.startswith("profilesvc_")}
    of_dashboard = {re.sub(r"_(bucket|count)$", "", name) for expr in shown().values() for name, _ in used(expr)}
    assert families - of_dashboard == set(), "the dashboard lacks a metric"


def test_the_dashboard_can_be_imported() -> None:
    board = json.loads(DASHBOARD.read_text("utf-8"))
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    names = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text("utf-8"))) - {"__rate_interval", "__all"}
    assert names == variables
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells, panel["title"]
        cells |= own
    for panel in panels():
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
