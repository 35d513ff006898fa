"""The check of `doctor` on the consent page, against the emulator's."""

from pathlib import Path

from pydantic import SecretStr

from profilesvc.cli.doctor.check import Check
from profilesvc.cli.doctor.consent import consent
from profilesvc.domain.time import FrozenClock
from profilesvc.settings import ProviderSettings, Settings
from support.network.ports import free_port
from support.provider.rig import START, emulator_at, served


def configured(origin: str, base_url: str = "https://profiles.example", **provider: object) -> Settings:
    values = {"client_id": "tests", "client_secret": SecretStr("hush-hush"), "url": origin, **provider}
    return Settings(base_url=base_url, provider=ProviderSettings.model_validate(values))


async def checked(settings: Settings) -> Check:
    found = await consent(settings)
    assert "hush-hush" not in str(found)
    return found


async def test_page_accepts_the_client_and_its_redirect_address(tmp_path: Path) -> None:
    with served(emulator_at(tmp_path, FrozenClock(START))) as origin:
        found = await checked(configured(origin))
    assert found.status == "ok"
    assert "https://profiles.example/dashboard/connections/callback" in found.message


async def test_rejected_request_names_what_to_register(tmp_path: Path) -> None:
    with served(emulator_at(tmp_path, FrozenClock(START))) as origin:
        found = await checked(configured(origin, authorize_url=f"{origin}/no/such/page"))
    assert found.status == "fail"
    assert found.message.endswith("(404)")
    assert "https://profiles.example/dashboard/connections/callback" in str(found.hint)
    assert "business.manage" in str(found.hint)


async def test_page_that_does_not_respond_fails() -> None:
    found = await checked(configured(f"http://127.0.0.1:{free_port()}"))
    assert (found.status, found.message) == ("fail", "no consent page (ConnectError)")


async def test_warns_without_a_client() -> None:
    found = await checked(configured("http://127.0.0.1:1", client_id=""))
    assert found.status == "warn"
    assert "PROVIDER__CLIENT_ID" in str(found.hint)
