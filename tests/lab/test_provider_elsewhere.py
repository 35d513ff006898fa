"""The lab with the provider as a server of its own, as the real one is."""

import re
from collections.abc import Iterator

import pytest

from profilesvc.domain.errors import ServiceError
from profilesvc.lab import Lab, open_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, open_lab(separate_provider=True) as opened:
        patch.chdir(tmp_path_factory.mktemp("lab"))
        yield opened


def test_an_import_finds_the_locations_and_records_only_its_calls(lab: Lab) -> None:
    bob = lab.client.user("bob")
    assert list(bob.iter_locations()) == []
    assert lab.operator.import_locations("bob", "accounts/2") == ["locations/211", "locations/219"]
    assert "/v1/accounts/2/locations" in [call["path"] for call in lab.provider.calls()]
    assert [entry.title for entry in bob.iter_locations()] == ["Marsh Bikes", "Marsh Rentals"]
    assert lab.calls()[-1].provider == ()
    with pytest.raises(ServiceError, match="another user"):
        lab.operator.import_locations("alice", "accounts/2")


def test_an_imported_location_is_assigned_by_the_operator(lab: Lab) -> None:
    lab.operator.import_locations("carol", "accounts/3")
    lab.operator.assign("locations/311", 30)
    assert [entry.businessName for entry in lab.client.user("carol").iter_locations()] == ["Diaz Dental"]


def test_changes_at_the_provider_work_there_too(lab: Lab) -> None:
    lab.operator.import_locations("alice", "accounts/1")
    alice = lab.client.user("alice")
    lab.provider.change(lab.location, title="Harbour Coffee, Quay")
    lab.fault("flapping", times=2)
    assert alice.compare(lab.location).provider["title"] == "Harbour Coffee, Quay"
    assert [line.rpartition(" ")[2] for line in lab.calls()[-1].provider] == ["503", "200"]


def test_the_doctor_finds_the_provider_and_names_nothing_of_the_machine(lab: Lab) -> None:
    found = lab.operator.doctor()
    assert "the login works and sees 3 accounts" in found
    lab.provider.behave(refuse_refresh=True)
    refused = lab.operator.doctor()
    lab.provider.behave(refuse_refresh=False)
    assert re.search(r"^fail +provider .*rejected the service's own login", refused, re.MULTILINE)
    assert re.search(r"/tmp|127\.0\.0\.1|:\d{4}", found + refused) is None
