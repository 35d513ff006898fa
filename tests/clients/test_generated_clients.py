"""Clients that generators make of the OpenAPI document: generate, compile, and run the whole story with each."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.clients.generators import DOCUMENT, STORIES, guzzle, java, node, python, run
from support.pages.blocks import proven_by

pytestmark = pytest.mark.clients
Story = dict[str, Any]


def generated(generator: str, folder: Path, *options: str) -> Path:
    """A client by openapi-generator."""
    program, archive = java()
    run(program, "-jar", archive, "generate", "-i", DOCUMENT, "-g", generator, "-o", folder / generator, *options)
    return folder / generator


def compiled(folder: Path, *files: str) -> Path:
    """TypeScript as JavaScript, with all checks that the compiler has."""
    (folder / "node_modules").symlink_to(node("typescript").parent)
    (folder / "package.json").write_text('{"type": "commonjs"}')
    options = {
        "strict": True,
        "target": "es2022",
        "module": "node16",
        "outDir": "out",
        "types": ["node"],
        "skipLibCheck": True,
    }
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": files}))
    run("tsc", "--project", folder, cwd=folder)
    return folder / "out"


def test_openapi_python_client_generates_a_working_client(story: Story, tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    (block,) = proven_by("docs/for-integrators.md", "test_openapi_python_client_generates_a_working_client")
    program, *command = shlex.split(block.text.splitlines()[-1].replace("$BASE_URL", story["BASE_URL"]))
    run(python(program), *command, "--output-path", folder, "--meta", "none", "--fail-on-warning")
    run(python("python"), "-W", "error", STORIES / "openapi_python_client.py", PYTHONPATH=str(tmp_path), **story)


def test_openapi_typescript_generates_types_that_compile(story: Story, tmp_path: Path) -> None:
    node("openapi-typescript")
    run("openapi-typescript", DOCUMENT, "--output", tmp_path / "schema.ts", cwd=tmp_path)
    shutil.copy(STORIES / "openapi_typescript.ts", tmp_path / "story.ts")
    run("node", compiled(tmp_path, "story.ts") / "story.js", **story)


def test_openapi_generator_makes_a_python_client_that_works(story: Story, tmp_path: Path) -> None:
    folder = generated("python", tmp_path)
    run(python("python"), STORIES / "openapi_generator.py", PYTHONPATH=str(folder), **story)


def test_openapi_generator_makes_a_typescript_client_that_works(story: Story, tmp_path: Path) -> None:
    node("typescript")
    folder = generated("typescript-fetch", tmp_path)
    shutil.copy(STORIES / "openapi_generator.ts", folder / "story.ts")
    run("node", compiled(folder, "story.ts") / "story.js", **story)


def test_openapi_generator_makes_a_php_client_that_works(story: Story, tmp_path: Path) -> None:
    autoload = guzzle()
    folder = generated("php", tmp_path)
    run("php", STORIES / "openapi_generator.php", AUTOLOAD=str(autoload), GENERATED=str(folder / "lib"), **story)
