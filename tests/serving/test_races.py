"""Races over HTTP against one process and against four: each ends as if the requests had come in turn."""

import asyncio
import collections
import random
from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from support.api import ALICE, BOB, assert_error, assert_ok
from support.effort import effort
from support.fleet.deployment import KEYS, TOKEN, Deployment, at_once, deployed, new_site
from support.program import controls
from support.provider.consent import BAKERY, CONNECTIONS, DANA, add_dana, connect_by_token, imported

pytestmark = [pytest.mark.thorough, pytest.mark.fuzz, pytest.mark.postgres]
POSTS = "/api/v1/posts?locationId=locations/111"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
SYNC_OF_BAKERY = "/api/v1/sync/411"
POST = {"summary": "Valid"}
ROUNDS = effort(1, 500)


@pytest.fixture(scope="module", params=effort(["sqlite 1", "postgres 4"], ["sqlite 1", "postgres 1", "postgres 4"]))
def deployment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    database, workers = request.param.split()
    postgres = request.getfixturevalue("postgres") if database == "postgres" else None
    with deployed(tmp_path_factory.mktemp("races"), int(workers), postgres) as running:
        yield running


@pytest.fixture(scope="module")
def alice(deployment: Deployment) -> str:
    return deployment.user_token(ALICE)


async def test_A128_one_idempotency_value_a_hundred_times(deployment: Deployment, alice: str) -> None:
    async with deployment.client(alice) as user:
        for turn in range(ROUNDS):
            before = await deployment.provider_calls("PATCH")
            headers, body = {"X-Idempotency-Key": f"race-{turn}"}, {"title": f"Race {turn}"}
            answers = await at_once(100, partial(user.post, "/api/v1/sync/111", json=body, headers=headers))
            statuses = collections.Counter(answer.status_code for answer in answers)
            assert set(statuses) <= {200, 409}, statuses
            done = [answer for answer in answers if answer.status_code == 200]
            assert sum("idempotency-replayed" not in answer.headers for answer in done) == 1
            for answer in answers:
                if answer.status_code == 409:
                    assert_error(answer, 409, "IDEMPOTENCY_IN_PROGRESS")
            last = await user.post("/api/v1/sync/111", json=body, headers=headers)
            assert {answer.content for answer in (*done, last)} == {last.content}
            assert await deployment.provider_calls("PATCH") == before + 1


async def test_A140_the_quota_is_exact_at_its_edge(deployment: Deployment, alice: str) -> None:
    async with deployment.client(alice) as user:
        await deployment.sql("UPDATE post_usage SET used = 0")
        await deployment.sql("DELETE FROM post_usage WHERE owner_id = 1")  # of the test before
        assert_ok(await user.post(POSTS, json={"summary": "The row of the month"}), 201)
        for _ in range(effort(1, 50)):
            await deployment.sql("UPDATE post_usage SET used = 995 WHERE owner_id = 1")
            before = await deployment.provider_calls("POST")
            answers = await at_once(200, lambda: user.post(POSTS, json={"summary": "Edge"}))
            assert collections.Counter(answer.status_code for answer in answers) == {201: 5, 429: 195}
            assert await deployment.provider_calls("POST") == before + 5
            assert_error(await user.post(POSTS, json={"summary": "Late"}), 429, "QUOTA_EXCEEDED")


async def test_place_that_is_given_back_is_never_called_used_up(deployment: Deployment, alice: str) -> None:
    """With one post left in the month, a post that the provider rejects holds the place of a valid one for a while."""
    fault = {"kind": "status", "status": 400, "times": 1, "match": {"method": "POST", "path": ".*/localPosts"}}
    async with deployment.client(alice) as user:
        await deployment.sql("DELETE FROM post_usage WHERE owner_id = 1")  # of the test before
        assert_ok(await user.post(POSTS, json={"summary": "The row of the month"}), 201)
        for _ in range(effort(5, 100)):
            await deployment.sql("UPDATE post_usage SET used = 999, held = 0 WHERE owner_id = 1")
            with controls(deployment.emulator.folder / "var", deployment.emulator.url) as control:
                await asyncio.to_thread(control.post, "faults", json=fault)
            answers = await at_once(2, lambda: user.post(POSTS, json=POST))
            assert collections.Counter(answer.status_code for answer in answers)[502] == 1
            for answer in answers:
                if answer.status_code == 429:
                    assert_error(answer, 429, "RATE_LIMITED")
            if 201 not in {answer.status_code for answer in answers}:
                assert_ok(await user.post(POSTS, json=POST), 201)
            assert_error(await user.post(POSTS, json=POST), 429, "QUOTA_EXCEEDED")


async def test_disconnection_of_a_login_leaves_no_lease(deployment: Deployment, alice: str) -> None:
    async with httpx.AsyncClient(base_url=deployment.emulator.url, trust_env=False) as emulator:
        with controls(deployment.emulator.folder / "var", deployment.emulator.url) as control:
            emulator.headers["Authorization"] = control.headers["Authorization"]
        await add_dana(emulator)
    async with deployment.client(alice) as user:
        for _ in range(effort(3, 200)):
            number = await connect_by_token(user, alice, DANA)
            await imported(user, int(number), locations=[BAKERY], business_id=10)
            path = "/api/v1/external-business/locations/411/sync"
            assert_ok(await user.patch(path, json={"syncEnabled": True}))
            assert_ok(await user.post(SYNC_OF_BAKERY, json={"title": "First"}))
            running = [asyncio.create_task(user.post(SYNC_OF_BAKERY, json={"title": f"{i}"})) for i in range(6)]
            await asyncio.sleep(random.uniform(0, 0.1))
            assert_ok(await user.delete(f"{CONNECTIONS}/{number}"))
            statuses = {answer.status_code for answer in await asyncio.gather(*running)}
            assert statuses <= {200, 404}, statuses


async def test_A107_A114_keys_of_one_millisecond_have_ids_of_their_own(deployment: Deployment, alice: str) -> None:
    body = {"name": "Twin", "business_id": 10, "assigned_location_id": "locations/113"}
    async with deployment.client(alice) as user:
        for _ in range(effort(1, 100)):
            answers = await at_once(30, lambda: user.post(KEYS, json=body))
            made = [assert_ok(answer, 201)["client_id"] for answer in answers if answer.status_code == 201]
            assert len(made) == len(set(made)) == 20
            for answer in answers:
                if answer.status_code != 201:
                    assert_error(answer, 409, "CONFLICT")
            for client_id in made:
                assert_ok(await user.delete(f"{KEYS}/{client_id}"))


async def test_A147_the_last_contact_never_goes_back(deployment: Deployment, alice: str) -> None:
    async with deployment.client(alice) as user:
        key = await new_site(user)
        async with deployment.client(key["access_token"]) as site:
            enough = asyncio.Event()

            async def beat() -> set[int]:
                answers = set()
                while not enough.is_set():
                    answers.add((await site.post(HEARTBEAT, json={})).status_code)
                return answers

            beating = [asyncio.create_task(beat()) for _ in range(20)]
            seen = []
            for _ in range(effort(20, 1_000)):
                status = assert_ok(await user.get(f"/api/v1/api-keys/{key['client_id']}/status"))
                seen.append(status["last_heartbeat_at"] or "")
            enough.set()
            assert set().union(*await asyncio.gather(*beating)) == {200}
        assert seen[-1] > seen[0]
        assert seen == sorted(seen)


async def test_A078_nothing_succeeds_after_a_revocation_was_answered(deployment: Deployment, alice: str) -> None:
    async with deployment.client(alice) as user:
        for _ in range(effort(1, 50)):
            key = await new_site(user)
            async with deployment.client(key["access_token"]) as site:
                assert {answer.status_code for answer in await at_once(50, partial(site.get, POSTS))} == {200}
                early: list[int] = []
                late: list[int] = []
                revoked = asyncio.Event()

                async def read(http: httpx.AsyncClient, revoked: asyncio.Event, *outcomes: list[int]) -> None:
                    for _ in range(10):
                        outcome = outcomes[revoked.is_set()]  # by the time at which the request starts
                        outcome.append((await http.get(POSTS)).status_code)

                async def revoke(path: str, revoked: asyncio.Event) -> None:
                    assert_ok(await user.delete(path))
                    revoked.set()

                reading = [read(site, revoked, early, late) for _ in range(20)]
                await asyncio.gather(*reading, revoke(f"{KEYS}/{key['client_id']}", revoked))
                late += [answer.status_code for answer in await at_once(50, partial(site.get, POSTS))]
            assert set(early) <= {200, 401}
            assert set(late) == {401}


async def test_A042_one_refresh_token_fifty_times(deployment: Deployment, alice: str) -> None:
    async with deployment.client(alice) as user:
        key = await new_site(user, name="Refresh")
        token = key["refresh_token"]
        for _ in range(effort(2, 1_000)):
            body = {"grant_type": "refresh_token", "refresh_token": token}
            answers = await at_once(50, partial(user.post, TOKEN, json=body))
            pairs = {(data["access_token"], data["refresh_token"]) for data in map(assert_ok, answers)}
            assert len(pairs) == 1
            token = pairs.pop()[1]


async def test_concurrent_tenants_do_not_see_each_other(deployment: Deployment, alice: str) -> None:
    """Answers are not exchanged between callers that share processes and connections."""
    async with deployment.client(alice) as first, deployment.client(deployment.user_token(BOB)) as second:
        answers = await asyncio.gather(*(user.get("/api/v1/businesses") for _ in range(50) for user in (first, second)))
    names = [{entry["name"] for entry in assert_ok(answer)["businesses"]} for answer in answers]
    assert all(seen == {"Harbour Coffee", "Harbour Books"} for seen in names[::2])
    assert all(seen == {"Marsh Bikes"} for seen in names[1::2])
