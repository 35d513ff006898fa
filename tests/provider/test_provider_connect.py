"""Choosing the way to the provider."""

from pathlib import Path

from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.emulator.embedded import open_emulator
from profilesvc.fixtures import load_world
from profilesvc.provider.connect import open_provider
from profilesvc.settings import ProviderSettings, Settings
from support.provider.rig import emulator_at, served


async def test_without_a_url_the_emulator_uses_the_data_folder(tmp_path: Path, clock: FrozenClock) -> None:
    settings = Settings(data_dir=tmp_path)
    opened = open_emulator(settings, clock=clock, entropy=SystemEntropy(), world=load_world())
    async with opened as (provider, app):
        assert app.name
        assert len(await provider.accounts()) == 3
    assert (tmp_path / "emulator.db").is_file()


async def test_without_a_world_the_emulator_is_empty(tmp_path: Path, clock: FrozenClock) -> None:
    opened = open_emulator(Settings(data_dir=tmp_path), clock=clock, entropy=SystemEntropy(), world=None)
    async with opened as (provider, _):
        assert await provider.accounts() == []


async def test_with_a_url_the_network_is_used(tmp_path: Path, clock: FrozenClock) -> None:
    with served(emulator_at(tmp_path, clock)) as origin:
        login = {"client_id": "x", "client_secret": "x", "refresh_token": "x"}
        provider_settings = ProviderSettings.model_validate({"url": origin, **login})
        settings = Settings(data_dir=tmp_path, provider=provider_settings)
        async with open_provider(settings, clock=clock) as provider:
            assert (await provider.location("locations/311"))["title"] == "Diaz Dental"
