"""The files that a repository host, an editor and a newcomer read: valid by their schemas, and true."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from package.tools import run, tool
from support.pages.blocks import proven_by
from support.repository import ROOT, git, text_files

pytestmark = pytest.mark.package

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
FORMS = sorted(set((GITHUB / "ISSUE_TEMPLATE").iterdir()) - {GITHUB / "ISSUE_TEMPLATE" / "config.yml"})
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-issue-forms": FORMS,
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_of_the_host_is_valid(schema: str) -> None:
    assert SCHEMAS[schema]
    run(tool("check-jsonschema"), "--builtin-schema", schema, *SCHEMAS[schema])


def test_an_invalid_form_is_found(tmp_path: Path) -> None:
    (tmp_path / "form.yml").write_text("name: Without a body\ndescription: x\n", "utf-8")
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-issue-forms", tmp_path / "form.yml", status=1)


def test_the_workflow_is_safe() -> None:
    run(tool("zizmor"), "--offline", "--no-progress", "--persona", "pedantic", GITHUB)


def test_an_unsafe_workflow_is_found(tmp_path: Path) -> None:
    (workflow,) = WORKFLOWS
    unsafe = re.sub(r"@[0-9a-f]{40} # (v\S+)", r"@\1", workflow.read_text("utf-8"))
    assert unsafe != workflow.read_text("utf-8")
    (tmp_path / "ci.yml").write_text(unsafe, "utf-8")
    found = run(tool("zizmor"), "--offline", "--no-progress", tmp_path / "ci.yml", status=14)
    assert "unpinned-uses" in found.stdout


def test_the_workflow_only_calls_the_checks_of_the_repository() -> None:
    (workflow,) = WORKFLOWS
    (job,) = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["sudo .ci/run"]
    assert [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step] == ["actions/checkout"]


@pytest.mark.skipif(git("ls-files") == "", reason="pre-commit needs a git checkout")
def test_the_hooks_run_without_a_network(tmp_path: Path) -> None:
    """The hook for English is left out here, because `make lint` is the same."""
    run(tool("pre-commit"), "validate-config", ".pre-commit-config.yaml")
    offline = {"PRE_COMMIT_HOME": str(tmp_path), "HTTPS_PROXY": "http://127.0.0.1:9", "SKIP": "english"}
    printed = run(tool("pre-commit"), "run", "--all-files", variables=offline).stdout
    assert printed.count("Passed") == 3
    document = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [each["repo"] for each in document["repos"]] == ["local"]


def test_the_dev_container_installs_what_the_makefile_has() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert container["image"].startswith("python:3.11-")
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text("utf-8")
    (target,) = re.findall(r"^make ([a-z-]+)$", container["postCreateCommand"])
    assert re.search(rf"^{target}: ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_text_files_follow_the_editor_settings() -> None:
    for name, text in text_files().items():
        if name.endswith((".py", ".md", ".toml", ".php", ".conf")):
            assert text.endswith("\n"), name
            assert not re.search(r"\r|[ \t]+$", text, re.MULTILINE), name


def test_the_first_change_fails_the_tests_of_its_rule(tmp_path: Path) -> None:
    change, command = proven_by("CONTRIBUTING.md", "test_the_first_change_fails_the_tests_of_its_rule")
    for name in ("src", "tests", "docs", "data", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    file = tmp_path / "src/profilesvc/domain/heartbeats.py"
    text, count = re.subn(r"^ONLINE_FOR = .*\n", change.text, file.read_text("utf-8"), flags=re.MULTILINE)
    assert count == 1
    words = command.text.split()
    assert words[0] == ".venv/bin/pytest"
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words[1:]]
    variables = {"PYTHONPATH": str(tmp_path / "src")}
    assert " passed" in run(*words, cwd=tmp_path, variables=variables).stdout
    file.write_text(text, "utf-8")
    assert "test_edges_of_the_windows" in run(*words, cwd=tmp_path, status=1, variables=variables).stdout


def test_the_pages_at_the_root_link_to_files() -> None:
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text("utf-8")):
            assert (ROOT / target).exists(), f"{page.name}: {target}"
