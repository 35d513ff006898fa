"""Notification settings, and the pushes that follow from changes at the provider."""

import base64
import json
from typing import Any, cast

import httpx
import jwt
import pytest
from quart import Quart, request

from profilesvc.emulator.state import Emulator
from support.provider.rig import Rig

PIER = "locations/111"
SETTING = "/v1/accounts/1/notificationSetting"
TOPIC = "projects/p/topics/profiles"
ALL = ["GOOGLE_UPDATE", "NEW_REVIEW", "UPDATED_REVIEW"]


async def enable(rig: Rig, *types: str, topic: str = TOPIC) -> None:
    body = {"pubsubTopic": topic, "notificationTypes": list(types) or ALL}
    answer = await rig.http.patch(SETTING, params={"updateMask": "pubsubTopic,notificationTypes"}, json=body)
    assert answer.status_code == 200, answer.text


async def pushes(rig: Rig) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.http.get("/__emulator/pushes")).json()["pushes"]
    return found


def data_of(push: dict[str, Any]) -> Any:
    return json.loads(base64.b64decode(push["body"]["message"]["data"]))


async def review(rig: Rig, ident: str, stars: str = "FIVE") -> str:
    name = f"accounts/1/{PIER}/reviews/{ident}"
    await rig.put_state(reviews={name: {"starRating": stars}})
    return name


@pytest.mark.parametrize("mask", ["pubsubTopic", "pubsub_topic", "notificationSetting"])
async def test_setting_is_changed_by_its_mask(emulator: Rig, mask: str) -> None:
    body = {"pubsubTopic": TOPIC}
    assert (await emulator.http.patch(SETTING, params={"updateMask": mask}, json=body)).json() == {
        "name": "accounts/1/notificationSetting",
        **body,
    }


async def test_setting_rejects_unknown_accounts_fields_and_types(emulator: Rig) -> None:
    mask = {"updateMask": "notificationTypes"}
    assert (await emulator.http.get("/v1/accounts/9/notificationSetting")).status_code == 404
    assert (await emulator.http.patch(SETTING, json={})).status_code == 400
    assert (await emulator.http.patch(SETTING, params={"updateMask": "topic"}, json={})).status_code == 400
    assert (await emulator.http.patch(SETTING, params=mask, json={"notificationTypes": ["NEWS"]})).status_code == 400


async def test_changes_are_published_to_the_topic(emulator: Rig) -> None:
    await review(emulator, "1")
    assert await pushes(emulator) == []
    await enable(emulator)
    first = await review(emulator, "2")
    await review(emulator, "2", "ONE")
    await emulator.put_state(google_updated={PIER: {"title": "Harbour Coffee"}})
    await emulator.put_state(google_updated={PIER: {}, "locations/211": {"title": "Another account"}})
    place = f"accounts/1/{PIER}"
    assert [data_of(push) for push in await pushes(emulator)] == [
        {"notificationType": "NEW_REVIEW", "locationName": place, "reviewName": first},
        {"notificationType": "UPDATED_REVIEW", "locationName": place, "reviewName": first},
        {"notificationType": "GOOGLE_UPDATE", "locationName": place},
    ]
    await enable(emulator, topic="")
    await emulator.http.delete("/__emulator/pushes")
    await review(emulator, "3")
    assert await pushes(emulator) == []


async def test_only_chosen_types_are_published(emulator: Rig) -> None:
    await enable(emulator, "UPDATED_REVIEW")
    for _ in range(2):
        await review(emulator, "2")
    assert [data_of(push)["notificationType"] for push in await pushes(emulator)] == ["UPDATED_REVIEW"]


async def test_token_of_a_push_is_signed_by_the_published_key(emulator: Rig) -> None:
    await enable(emulator)
    await emulator.put_state(switches={"push_audience": "https://service.example/news"})
    await review(emulator, "2")
    (push,) = await pushes(emulator)
    token = push["authorization"].removeprefix("Bearer ")
    (key,) = jwt.PyJWKSet.from_dict((await emulator.http.get("/oauth2/v3/certs")).json()).keys
    claims = jwt.decode(
        token,
        key,
        ["RS256"],
        audience="https://service.example/news",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert jwt.get_unverified_header(token)["kid"] == key.key_id
    assert claims["iss"] == "https://accounts.google.com"
    assert (claims["email"], claims["email_verified"]) == ("push@emulator.iam.gserviceaccount.com", True)
    assert claims["exp"] - claims["iat"] == 3600


class Endpoint:
    """A subscriber that refuses the first deliveries."""

    def __init__(self, refusals: int = 0) -> None:
        self.app, self.seen, self._refusals = Quart("subscriber"), list[str](), refusals
        self.app.post("/news")(self.receive)

    async def receive(self) -> tuple[str, int]:
        if self._refusals:
            self._refusals -= 1
            return "", 503
        self.seen.append((await request.get_json())["message"]["messageId"])
        return "", 204


async def delivered(rig: Rig, endpoint: Endpoint, **switches: Any) -> list[str]:
    """The ids of the messages of five reviews, which are pushed to the endpoint."""
    app: Quart = cast(Any, rig.http._transport).app
    shared: Emulator = app.extensions["emulator"]
    shared.push_transport = httpx.ASGITransport(app=endpoint.app)  # type: ignore[arg-type]
    await enable(rig)
    await rig.put_state(switches={"push_endpoint": "http://service/news", **switches})
    names = [f"accounts/1/{PIER}/reviews/{number}" for number in range(5)]
    await rig.put_state(reviews={name: {"starRating": "FIVE"} for name in names})
    return [push["body"]["message"]["messageId"] for push in await pushes(rig)]


async def test_messages_are_pushed_until_they_are_acknowledged(emulator: Rig) -> None:
    endpoint = Endpoint(refusals=2)
    published = await delivered(emulator, endpoint)
    assert sorted(endpoint.seen) == sorted(published)
    assert len(published) == 5


async def test_messages_are_doubled_shuffled_and_late(emulator: Rig) -> None:
    endpoint = Endpoint()
    switches = {"push_times": 2, "push_shuffled": True, "push_delay_seconds": 0.01}
    published = await delivered(emulator, endpoint, **switches)
    assert sorted(endpoint.seen) == sorted([*published, *published])
    assert len(set(published)) == 5
