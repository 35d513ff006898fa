"""Bad page numbers, page tokens and location ids (rows A097, A099, A100 of the list of bad input)."""

import httpx

from conftest import AsUser
from support.api import BOB, assert_error, assert_ok, fields

LOCATIONS = "/api/v1/external-business/locations"


POSTS = "/api/v1/posts"


# Every route with a page or a size.
NUMBERS = [
    (LOCATIONS, "page"),
    (LOCATIONS, "limit"),
    ("/api/v1/sync/history/111", "page"),
    ("/api/v1/sync/history/111", "limit"),
    (f"{POSTS}?locationId=111", "pageSize"),
]


async def test_A097_the_number_or_size_of_a_page_must_be_a_positive_integer(alice: httpx.AsyncClient) -> None:
    bad = [
        "0",
        "-1",
        "abc",
        "1e3",
        "1_0",
        "+1",
        " 1",
        "1 ",
        "\u0661",
        "1" + "0" * 20,
        "",
        "1.0",
        "0x1",
        "null",
        "१",
    ]
    for path, name in NUMBERS:
        for value in bad:
            response = await alice.get(path, params={**httpx.URL(path).params, name: value})
            details = assert_error(response, 400, "VALIDATION_ERROR")
            assert fields(details) == [name], (path, value)
            assert details["errors"][0]["in"] == "query"
        joint = "&" if "?" in path else "?"
        for twisted in (f"{name}=1&{name}=2", f"{name}=1&{name}=1", f"{name}[]=1", f"{name}[a]=1"):
            response = await alice.get(f"{path}{joint}{twisted}")
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name], twisted
        assert_ok(await alice.get(f"{path}{joint}unknown=1&unknown=2&also[]=3"))


async def test_A099_a_foreign_or_changed_page_token_is_rejected(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    first = assert_ok(await alice.get(POSTS, params={"locationId": "111", "pageSize": 2}))
    token, bob = first["nextPageToken"], await as_user(BOB)
    assert token
    other = await bob.get(POSTS, params={"locationId": "211", "pageToken": token})
    assert_error(other, 400, "VALIDATION_ERROR")
    flipped = ("A" if token[0] != "A" else "B") + token[1:]
    for value in (
        "x",
        token[:-1],
        token + "A",
        flipped,
        token * 2,
        "x" * 60_000,
        "\0",
        "é",
        "=" * 8,
        "..",
        "null",
    ):
        response = await alice.get(POSTS, params={"locationId": "111", "pageToken": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["pageToken"], value[:20]


async def test_A100_an_invalid_location_id_is_rejected(alice: httpx.AsyncClient) -> None:
    missing = await alice.get(POSTS)
    assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["locationId"]
    for query in ("locationId=", "locationId=111&locationId=111", "locationId[]=111", "locationid=111"):
        response = await alice.get(f"{POSTS}?{query}")
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["locationId"], query
    for value in (
        "x" * 65,
        "locations/",
        "locations",
        "accounts/1/locations/111",
        "locations/111/localPosts/1",
        "locations/locations/111",
        "111 ",
        "111\n",
        "111\0",
        "1;2",
        "../111",
        "\u0661\u0661\u0661",
        "%31%31%31",
        "Locations/111",
    ):
        response = await alice.get(POSTS, params={"locationId": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["locationId"], value
    for value in ("111", "locations/111"):
        assert_ok(await alice.get(POSTS, params={"locationId": value}))
    assert_error(await alice.get(POSTS, params={"locationId": "x" * 64}), 404, "NOT_FOUND")
