"""What tests of the pages of keys share."""

import re
from typing import Any

import httpx

from support.browser.dashboard import Browser


def secret_of(browser: Browser) -> dict[str, str]:
    fields = next(form["fields"] for form in browser.page.forms if "client_secret" in form["fields"])
    return {name: values[0] for name, values in fields.items()}


async def token_of(http: httpx.AsyncClient, pair: dict[str, str]) -> httpx.Response:
    return await http.post("/api/v1/auth/token", json={"grant_type": "client_credentials", **pair})


async def made(browser: Browser, **changes: Any) -> dict[str, str]:
    await browser.open("/dashboard/keys")
    await browser.send("/keys", **{"name": "Website", "location": "locations/111", **changes})
    return secret_of(browser)


def shown_problems(browser: Browser) -> list[str]:
    """The list at the top of the page; each problem is next to its field, too, and the link leads there."""
    html = browser.answer.text
    top = html.partition('id="problems"')[2].partition("</section>")[0]
    found = re.findall(r"<li>(?:<a href=\"#([^\"]+)\">)?([^<]+)", top)
    for target, text in found:
        if target:
            tag = re.search(rf'<(?:input|select|textarea)[^>]* id="{target}"[^>]*>', html)
            assert tag, target
            assert 'aria-invalid="true"' in tag[0]
            assert f"{target}-error" in tag[0].partition('aria-describedby="')[2].partition('"')[0].split()
            assert text in html.partition(f'id="{target}-error">')[2].partition("</small>")[0]
    assert html.count('aria-invalid="true"') == len({target for target, _ in found if target})
    return [text for _, text in found]
