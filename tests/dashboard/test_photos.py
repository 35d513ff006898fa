"""Photos of posts: uploaded in the dashboard, kept while a draft or post has them, within the limits of an owner."""

import asyncio
import struct
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from conftest import ON_ONE_DATABASE
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.photos import media_type
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import housekeeping, operator
from profilesvc.services.context import Services
from profilesvc.services.drafts import photos as service
from profilesvc.storage.tables import photos
from support.api import ALICE, CAROL, Site, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.pictures import png

SITE = "/dashboard/sites/111"
LISTED = "/api/v1/posts?locationId=locations/111"
pytestmark = pytest.mark.in_process("runs the rounds itself")


async def upload(browser: Browser, content: bytes = png(), **fields: Any) -> httpx.Response:
    page = await browser.open(f"{SITE}/posts")
    data = {**page.form("/posts")["fields"], **fields}
    return await browser.http.post(f"{SITE}/posts", data=data, files={"photo_file": ("x.png", content, "text/html")})


async def stored(services: Services) -> int:
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(photos))).scalar_one())


async def test_a_photo_is_stored_served_and_forgotten(
    alice_there: Browser, visitor: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    answer = await upload(alice_there, summary="With a photo")
    assert answer.status_code == 303, answer.text
    newest = assert_ok(await plugin.http.get(LISTED))["localPosts"][0]
    url = httpx.URL(newest["media"][0]["sourceUrl"])
    served = await visitor.http.get(url.path)
    assert served.content == png()
    assert served.headers["content-type"] == "image/png"
    assert served.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in served.headers["content-security-policy"]
    assert (await visitor.http.get(url.path.replace("photos/1-", "photos/2-"))).status_code == 404
    clock.advance(days=31)
    await housekeeping.run_once(services)
    assert (await visitor.http.get(url.path)).status_code == 404


async def test_a_form_that_is_sent_twice_stores_its_photo_once(
    alice_there: Browser, plugin: Site, services: Services
) -> None:
    """At the same time, and once more afterwards: the same post is the answer to each of them."""
    fields = (await alice_there.open(f"{SITE}/posts")).form("/posts")["fields"] | {"summary": "Twice"}

    async def send() -> tuple[int, str]:
        answer = await alice_there.http.post(f"{SITE}/posts", data=fields, files={"photo_file": ("x.png", png())})
        return answer.status_code, answer.headers.get("location", answer.text)

    found = [*await asyncio.gather(*(send() for _ in range(3))), await send()]
    assert found == [(303, f"{SITE}/posts?notice=posted")] * 4
    listed = assert_ok(await plugin.http.get(LISTED))["localPosts"]
    assert [post["summary"] for post in listed].count("Twice") == 1
    assert await stored(services) == 1


async def test_a_repeated_upload_does_not_shorten_the_time_of_a_draft(services: Services, clock: FrozenClock) -> None:
    alice = await operator.act_for(services, ALICE)
    url = await service.store(services, alice, png(), "once")
    async with services.storage.write() as session:
        await service.hold(services, session, alice.owner_id, f'{{"media": [{{"sourceUrl": "{url}"}}]}}')
    assert await service.store(services, alice, png(), "once") == url
    clock.advance(days=31)
    await housekeeping.run_once(services)
    assert (await service.read(services, url.rpartition("/")[2])).content == png()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<svg onload='alert(1)'/>" * 1000, "must be a JPEG or PNG image"),
        (png(side=200), "250 pixels"),
        (png(size=100), "10 KB to 5 MB"),
        (png(size=5 * 1024 * 1024), "10 KB to 5 MB"),
        (png(size=12 * 1024 * 1024), "10 KB to 5 MB"),
        (b"\xff\xd8\xff" + bytes(20_000), "not a complete image"),
    ],
    ids=["svg", "small", "few bytes", "many bytes", "a phone", "broken"],
)
@ON_ONE_DATABASE
async def test_a_photo_that_the_provider_would_refuse_is_not_stored(
    alice_there: Browser, content: bytes, problem: str
) -> None:
    answer = await upload(alice_there, content, kind="EVENT", summary="Typed")
    assert answer.status_code == 400
    assert problem in answer.text
    assert 'href="#title"' in answer.text  # all problems at once
    assert "Typed</textarea>" in answer.text


async def test_a_photo_is_not_stored_for_a_plan_without_posts(signed_in: SignIn, services: Services) -> None:
    carol = await signed_in(CAROL)
    csrf = carol.page.form("/sign-out")["fields"]["csrf"][0]
    fields = {"csrf": csrf, "kind": "STANDARD", "summary": "Text", "once": "once"}
    file = {"photo_file": ("x.png", png())}
    answer = await carol.http.post("/dashboard/sites/311/posts", data=fields, files=file)
    assert answer.status_code == 403
    assert await stored(services) == 0


def test_a_jpeg_of_empty_segments_is_rejected_early() -> None:
    """Reading all of its segments would hold up every request for a second."""
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 300, 300) + bytes(12_000)
    assert media_type(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 900 + frame) == "image/jpeg"
    with pytest.raises(ValueError, match="not a complete image"):
        media_type(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 1_001 + frame)


async def test_the_photo_of_a_draft_is_kept_as_long_as_the_draft(
    alice_there: Browser, services: Services, clock: FrozenClock
) -> None:
    await upload(alice_there, summary="First", intent="draft")
    await alice_there.open(f"{SITE}/posts")
    link = next(link for link in alice_there.page.links if "draft=" in link)
    photo = (await alice_there.open(link)).form("/posts")["fields"]["photo"][0]
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", summary="Second", photo=photo, intent="draft")
    clock.advance(days=45)
    await housekeeping.run_once(services)
    await alice_there.sign_in("alice@example.com")
    assert (await alice_there.http.get(httpx.URL(photo).path)).status_code == 200
    await alice_there.open(f"{SITE}/posts")
    for left in (1, 0):
        assert await stored(services) == 1
        action = next(form["action"] for form in alice_there.page.forms if "/drafts/" in form["action"])
        await alice_there.send(action, sure="on")
        assert await stored(services) == left


async def test_the_photo_of_a_draft_is_deleted_when_another_replaces_it(
    alice_there: Browser, services: Services
) -> None:
    await upload(alice_there, summary="First", intent="draft")
    await alice_there.open(f"{SITE}/posts")
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    await alice_there.send("/posts", photo="https://harbour.example/other.png", intent="draft")
    assert await stored(services) == 0


@pytest.mark.in_process("fails a statement")
async def test_a_draft_stays_if_its_photo_cannot_be_deleted(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object) -> None:
        raise ServiceError(SERVICE_UNAVAILABLE)

    await upload(alice_there, summary="First", intent="draft")
    await alice_there.open(f"{SITE}/posts")
    action = next(form["action"] for form in alice_there.page.forms if "/drafts/" in form["action"])
    with monkeypatch.context() as failing:
        failing.setattr("profilesvc.storage.drafts.photos.remove", fail)
        await alice_there.send(action, 503, sure="on")
    await alice_there.open(f"{SITE}/posts")
    assert action in [form["action"] for form in alice_there.page.forms]
    await alice_there.send(action, sure="on")
    assert await stored(services) == 0


async def test_a_photo_is_deleted_with_the_last_post_that_has_it(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await upload(alice_there, summary="First", intent="draft")
    await alice_there.open(f"{SITE}/posts")
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    await alice_there.send("/posts", intent="post")
    [newest, *_] = assert_ok(await plugin.http.get(LISTED))["localPosts"]
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", summary="Second", photo=newest["media"][0]["sourceUrl"])
    posts = assert_ok(await plugin.http.get(LISTED))["localPosts"][:2]
    for post, left in zip(posts, (1, 0), strict=True):
        assert await stored(services) == 1
        assert_ok(await plugin.http.delete(f"/api/v1/posts/{post['name'].rpartition('/')[2]}?locationId=111"))
        assert await stored(services) == left


async def test_the_photo_of_a_sent_draft_is_kept_for_30_days(
    alice_there: Browser, services: Services, clock: FrozenClock
) -> None:
    await upload(alice_there, summary="First", intent="draft")
    await alice_there.open(f"{SITE}/posts")
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    await alice_there.send("/posts", intent="post")
    clock.advance(days=29)
    await housekeeping.run_once(services)
    assert await stored(services) == 1
    clock.advance(days=2)
    await housekeeping.run_once(services)
    assert await stored(services) == 0


async def test_the_photos_of_an_owner_have_a_limit_in_bytes(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_BYTES", 2 * 1024 * 1024)
    assert (await upload(alice_there, png(size=1024 * 1024), summary="Fits")).status_code == 303
    answer = await upload(alice_there, png(size=1024 * 1024), summary="Typed")
    assert answer.status_code == 409
    assert "Your photos use 1.0 of 2 MB" in answer.text
    assert "Typed</textarea>" in answer.text
    assert await stored(services) == 1


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "The form: must be a complete form as browsers send it"), ("de", "Das Formular:")],
)
@pytest.mark.parametrize("media_type", ["multipart/form-data", "multipart/form-data; boundary=y"])
async def test_a_form_that_is_cut_off_is_named_as_the_form(
    alice_there: Browser, plugin: Site, media_type: str, language: str, text: str
) -> None:
    headers = {"Content-Type": media_type, "Accept-Language": language}
    answer = await alice_there.http.post(f"{SITE}/posts", content=b"--x\r\n", headers=headers)
    assert answer.status_code == 400
    assert text in answer.text
