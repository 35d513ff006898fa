"""`GET /`, which people type: a browser gets the dashboard, a program gets the paths to start with."""

import httpx
import pytest

from profilesvc import __version__

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def test_a_browser_gets_the_dashboard(http: httpx.AsyncClient) -> None:
    response = await http.get("/", headers={"Accept": CHROMIUM})
    assert (response.status_code, response.headers["Location"]) == (303, "/dashboard")
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
async def test_a_program_gets_paths_that_exist(http: httpx.AsyncClient, accept: str) -> None:
    response = await http.get("/", headers={"Accept": accept})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.headers["Cache-Control"] == "no-store"
    found = response.json()
    assert (found.pop("name"), found.pop("version")) == ("profilesvc", __version__)
    assert {name: (await http.get(path)).status_code for name, path in found.items()} == {
        "dashboard": 303,  # to the sign-in
        "api_page": 200,
        "openapi": 200,
        "guides": 302,
    }
