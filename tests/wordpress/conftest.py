"""A WordPress with the plugin, in front of the real service with a clock that the tests move."""

from collections.abc import Iterator
from typing import Any

import pytest

from profilesvc.lab import Lab, open_lab
from support.clients.recording_proxy import RecordingProxy, recording_proxy
from support.clients.wordpress import Key, Site, WordPress, installed, missing

KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}


@pytest.fixture(scope="session")
def service() -> Iterator[RecordingProxy]:
    """The server that the plugin calls: the lab's service, or scripted responses."""
    with recording_proxy() as proxy:
        yield proxy


@pytest.fixture(scope="session")
def installation(service: RecordingProxy) -> Iterator[WordPress]:
    absent = missing()
    if absent:
        pytest.skip(f"not installed here: {', '.join(absent)}")
    with installed(service.url) as wordpress:
        yield wordpress


@pytest.fixture
def lab(service: RecordingProxy) -> Iterator[Lab]:
    """The real service, with a frozen clock."""
    with open_lab(keep_open=True) as opened:
        service.reset(opened.url)
        yield opened


@pytest.fixture
def site(installation: WordPress, lab: Lab) -> Site:
    """A WordPress with the plugin activated and nothing stored."""
    installation.run("activate_plugin('profilesvc/profilesvc.php'); Profilesvc\\Store::erase();")
    return Site(installation)


@pytest.fixture
def new_key(lab: Lab, installation: WordPress) -> Any:
    """`new_key()`: a key of Alice's for this site."""
    domains = {"allowed_domains": [installation.url.removeprefix("http://")]}

    def create() -> Key:
        response = lab.user("alice").post("/api/v1/developer/credentials", json=KEY | domains)
        assert response.status_code == 201, response.text
        created = response.json()["data"]
        return Key(created["client_id"], created["client_secret"])

    return create


@pytest.fixture
def key(new_key: Any) -> Key:
    created: Key = new_key()
    return created


@pytest.fixture
def connected(site: Site, key: Key) -> Site:
    """A site that is connected and has sent one heartbeat."""
    beat = "return [$connected, wp_clear_scheduled_hook('profilesvc_heartbeat', ['once']), $heartbeat->beat()->code];"
    pair = f"'{key.client_id}', '{key.client_secret}'"
    assert site.run(f"$connected = $connector->connect({pair})->code; {beat}") == ["OK", 1, "OK"]
    return site
