"""The charset of a body, and entity tags that a server in front has changed."""

import pytest

from conftest import ON_ONE_DATABASE
from support.api import Site, assert_error, assert_ok
from support.posts import PATH, PIER

pytestmark = ON_ONE_DATABASE
HEARTBEAT = "/api/v1/api-keys/heartbeat"


@pytest.mark.parametrize(
    "charset",
    ["utf-8", "UTF-8", '"utf-8"', "utf8", "us-ascii", "", "utf-8; version=1", 'utf-8; note="charset=utf-16"'],
)
async def test_of_json_may_be_utf8(plugin: Site, charset: str) -> None:
    kind = f"application/json; charset={charset}" if charset else "application/json"
    assert_ok(await plugin.http.post(HEARTBEAT, content=b"{}", headers={"Content-Type": kind}))


@pytest.mark.parametrize(
    "charset", ["utf-16", "UTF-16LE", '"utf-16"', "utf-32", "iso-8859-1", "windows-1252", "utf-7", "x"]
)
@pytest.mark.parametrize("kind", ["application/json", "application/merge-patch+json"])
async def test_of_json_may_be_nothing_else(plugin: Site, charset: str, kind: str) -> None:
    headers = {"Content-Type": f"{kind}; charset={charset}"}
    encoded = "{}".encode("utf-16") if "16" in charset else b"{}"
    response = await plugin.http.post(HEARTBEAT, content=encoded, headers=headers)
    assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert "UTF-8" in response.json()["error"]["message"]


TAGS = ["-gzip", "-br", "--gzip", ";gzip", "-zstd", "-deflate", "-gzip-br"]


@pytest.mark.parametrize("suffix", TAGS)
@pytest.mark.parametrize("form", ['W/"{}"', '"{}"', '"other", W/"{}"', 'W/"{}", "x"'])
async def test_tag_of_a_compressing_proxy_is_known(plugin: Site, suffix: str, form: str) -> None:
    tag = (await plugin.http.get(PATH, params=PIER)).headers["etag"].removeprefix('W/"').removesuffix('"')
    again = await plugin.http.get(PATH, params=PIER, headers={"If-None-Match": form.format(tag + suffix)})
    assert again.status_code == 304


@pytest.mark.parametrize("tag", ["{}x-gzip", "{}-other", "-gzip", "{}-gzip-x", "gzip"])
async def test_other_tag_is_not(plugin: Site, tag: str) -> None:
    known = (await plugin.http.get(PATH, params=PIER)).headers["etag"].removeprefix('W/"').removesuffix('"')
    headers = {"If-None-Match": f'W/"{tag.format(known)}"'}
    assert (await plugin.http.get(PATH, params=PIER, headers=headers)).status_code == 200
