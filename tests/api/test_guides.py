"""The guides at `/guides/`, and the links of the OpenAPI document to them."""

from pathlib import Path

import httpx
import pytest

from conftest import BASE_URL, ON_ONE_DATABASE, Change
from profilesvc.services.context import Services
from support.api import assert_error
from support.repository import DOCS, anchors

pytestmark = pytest.mark.in_process("changes a setting of the running service")
OUTSIDE = ["missing.html", "docs", "../outside.html", "..%2Foutside.html", "docs/..%2F..%2Foutside.html"]


@pytest.fixture
def folder(tmp_path: Path, services: Services, change: Change) -> Path:
    """A site of one page, next to a file that is not part of it."""
    site = tmp_path / "site"
    (site / "docs").mkdir(parents=True)
    (site / "docs" / "index.html").write_text("<h1>Guides</h1>")
    (tmp_path / "outside.html").write_text("private")
    change(settings=services.settings.model_copy(update={"guides_folder": site}))
    return site


@pytest.mark.parametrize("address", ["/guides", "/guides/"])
async def test_serves_the_files_of_the_site(http: httpx.AsyncClient, folder: Path, address: str) -> None:
    start = await http.get(address)
    assert start.headers["Location"] == "/guides/docs/index.html"
    page = await http.get(start.headers["Location"])
    assert (page.status_code, page.text) == (200, "<h1>Guides</h1>")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", OUTSIDE)
@ON_ONE_DATABASE
async def test_files_outside_of_the_site_are_not_found(http: httpx.AsyncClient, folder: Path, name: str) -> None:
    response = await http.get(f"/guides/{name}")
    assert response.status_code == 404
    assert "private" not in response.text


async def test_the_document_links_the_guides_if_they_are_there(http: httpx.AsyncClient, folder: Path) -> None:
    document = (await http.get("/openapi.json")).json()
    for part in (document, *document["tags"]):
        page, _, anchor = part["externalDocs"]["url"].removeprefix(f"{BASE_URL}/guides/docs/").partition("#")
        source = (DOCS / page).with_suffix(".md")
        assert source.is_file(), page
        assert not anchor or anchor in anchors(source)


async def test_without_guides_there_are_no_links(
    http: httpx.AsyncClient, services: Services, change: Change, tmp_path: Path
) -> None:
    change(settings=services.settings.model_copy(update={"guides_folder": tmp_path / "missing"}))
    assert_error(await http.get("/guides/docs/index.html"), 404, "NOT_FOUND")
    assert "externalDocs" not in (await http.get("/openapi.json")).text
