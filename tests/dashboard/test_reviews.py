"""Reviews in the dashboard: filters, templates of replies and the state of a reply, without a script."""

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import FrozenClock, iso
from support.api import BOB
from support.browser.dashboard import Browser, SignIn
from support.provider.drive import drift

REVIEWS = "/dashboard/sites/111/reviews"
STARS = ["ONE", "TWO", "THREE", "FOUR", "FIVE"]


async def written(emulator: httpx.AsyncClient, clock: FrozenClock) -> None:
    """Sixty reviews, twelve of each rating, the odd ones answered."""
    parent = "accounts/1/locations/111/reviews"
    reviews: JsonObject = {}
    for number in range(60):
        at = iso(clock.now() - number * 1000)
        review: JsonObject = {
            "starRating": STARS[number % 5],
            "comment": f"Number {number}.",
            "createTime": at,
            "updateTime": at,
        }
        if number % 2:
            review["reviewReply"] = {"comment": "Thanks", "updateTime": at, "reviewReplyState": "APPROVED"}
        reviews[f"{parent}/7{number:03}"] = review
    await drift(emulator, reviews=reviews)


async def test_reviews_are_filtered_by_stars_and_by_reply(
    alice_there: Browser, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await written(emulator, clock)
    page = await alice_there.open(f"{REVIEWS}?stars=1&unanswered=1")
    articles = alice_there.answer.text.split("<article ")[1:]
    mine = [text for text in articles if "Number " in text]
    assert len(mine) == 6
    assert all("1 star<" in text and "Withdraw the reply" not in text for text in articles)
    assert "reviews that were read" in page.text
    assert len([text for text in (await alice_there.open(REVIEWS)).text.split() if text in ("star", "stars")]) >= 25
    page = await alice_there.open(f"{REVIEWS}?unanswered=1")
    more = next(link for link in page.links if "page=" in link)
    assert "unanswered=1" in more
    page = await alice_there.open(more)
    reply = next(form["action"] for form in page.forms if "/reply?" in form["action"])
    await alice_there.send(reply, comment="Thanks from here")
    assert alice_there.answer.url.params["unanswered"] == "1"  # the same page of the same filter
    assert alice_there.answer.url.params["page"] in more
    assert "The reply was sent to the provider." in alice_there.page.text


async def test_a_template_is_inserted_changed_and_sent(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/templates")
    page = await alice_there.send("/templates", 400, name=" ", comment="")
    assert alice_there.answer.text.count('href="#name"') == alice_there.answer.text.count('href="#comment"') == 1
    await alice_there.send("/templates", name="Thanks", comment="Thank you for coming.")
    page = await alice_there.send("/templates", name="Thanks", comment="Thank you very much.")
    assert "The template is saved." in page.text
    assert "for coming" not in page.text
    page = await alice_there.open(REVIEWS)
    form = next(form for form in page.forms if form["action"].endswith("/reply"))
    page = await alice_there.send(form["action"], intent="template")
    form = next(one for one in page.forms if one["action"] == form["action"])
    assert form["fields"]["comment"] == ["Thank you very much."]
    page = await alice_there.send(form["action"])
    assert "The reply was sent to the provider." in page.text
    assert "Thank you very much." in page.text
    page = await alice_there.open("/dashboard/templates")
    delete = next(form["action"] for form in page.forms if form["action"].endswith("/delete"))
    await alice_there.send(delete, 400)
    assert "Thank you" not in (await alice_there.send(delete, sure="on")).text


async def test_a_reply_that_is_checked_shows_its_state_as_it_changes(
    alice_there: Browser, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    parent, at = "accounts/1/locations/111/reviews", iso(clock.now())
    review = {"starRating": "TWO", "comment": "Cold.", "createTime": at, "updateTime": at}
    states = []
    for state in ("PENDING", "REJECTED"):
        reply = {"comment": "Sorry", "updateTime": at, "reviewReplyState": state}
        await drift(emulator, reviews={f"{parent}/7777": {**review, "reviewReply": reply}})
        page = await alice_there.open(f"{REVIEWS}/7777/live")
        states.append((page.text, "data-poll" in alice_there.answer.text))
    assert states == [
        ("The provider checks your reply before it is public.", True),
        ("The provider rejected your reply. Change it, and send it again.", False),
    ]


async def test_another_users_templates_are_out_of_reach(alice_there: Browser, signed_in: SignIn) -> None:
    await alice_there.open("/dashboard/templates")
    await alice_there.send("/templates", name="Mine", comment="Alice's words")
    delete = next(form["action"] for form in alice_there.page.forms if form["action"].endswith("/delete"))
    bob = await signed_in(BOB)
    page = await bob.open("/dashboard/templates")
    assert "Alice" not in page.text
    fields = page.form("/templates")["fields"]
    answer = await bob.http.post(delete, data={**fields, "sure": "on"})
    assert answer.status_code == 404
    assert "Alice&#39;s words" in (await alice_there.http.get("/dashboard/templates")).text
