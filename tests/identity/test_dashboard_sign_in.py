"""The dashboard as a client of a foreign identity provider: how it authenticates, and what goes wrong there."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from pydantic import SecretStr

from conftest import ON_ONE_DATABASE, Change
from profilesvc.dashboard.session.signing_in import Provider
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.identity.issuer import ISSUER, claims, signed

pytestmark = [pytest.mark.usefixtures("linked"), pytest.mark.in_process("the provider is in this process")]
ODD_ID, ODD_SECRET = "https://profiles.test/dashboard", "a+b/c=%41:d é"


class Login:
    """The provider: its token endpoint returns `answer`, or an ID token, and it keeps the last request there."""

    def __init__(self, *methods: str) -> None:
        self.methods, self.nonce = list(methods), ""
        self.answer: tuple[int, object] | None = None
        self.metadata: dict[str, object] = {}
        self.asked: httpx.Request

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/openid-configuration"):
            endpoints = {f"{name}_endpoint": f"{ISSUER}/{name}" for name in ("authorization", "token")}
            supported = {"token_endpoint_auth_methods_supported": self.methods}
            return httpx.Response(200, json={"issuer": ISSUER, **endpoints, **supported, **self.metadata})
        self.asked = request
        if self.answer is not None:
            return httpx.Response(self.answer[0], content=json.dumps(self.answer[1]))
        return httpx.Response(200, json={"id_token": signed(claims(nonce=self.nonce, aud=ODD_ID))})

    async def back(self, http: httpx.AsyncClient) -> httpx.Response:
        """Sign in: the response to the browser that comes back with a code."""
        sent = (await http.get("/dashboard/sign-in/start")).headers["location"]
        asked = {name: value for name, (value,) in parse_qs(urlsplit(sent).query).items()}
        self.nonce = asked["nonce"]
        return await http.get("/dashboard/callback", params={"code": "c", "state": asked["state"]})


@pytest.fixture
def settings(settings: Settings) -> Settings:
    secret = SecretStr(ODD_SECRET)
    identity = settings.identity.model_copy(update={"client_id": ODD_ID, "client_secret": secret})
    return settings.model_copy(update={"identity": identity})


@pytest.fixture(params=["client_secret_basic", "client_secret_post"])
def login(request: pytest.FixtureRequest) -> Iterator[Login]:
    made = Login(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Provider, "_transport", httpx.MockTransport(made))
        yield made


@ON_ONE_DATABASE
async def test_a_secret_of_any_characters_reaches_the_provider(http: httpx.AsyncClient, login: Login) -> None:
    response = await login.back(http)
    assert (response.status_code, response.headers["location"]) == (303, "/dashboard")
    form = parse_qs(login.asked.content.decode())
    pair = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
    if "authorization" in login.asked.headers:
        assert pair == ("", "")
        text = base64.b64decode(login.asked.headers["authorization"].removeprefix("Basic ")).decode("ascii")
        client_id, _, secret = text.partition(":")
        pair = unquote(client_id), unquote(secret)
    assert pair == (ODD_ID, ODD_SECRET)


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [("invalid_grant", 401, "Start again."), ("invalid_client", 503, "Ask the operator"), (["x"], 503, "operator")],
)
@ON_ONE_DATABASE
async def test_the_log_names_the_error_of_the_provider(
    http: httpx.AsyncClient, login: Login, caplog: pytest.LogCaptureFixture, code: object, status: int, words: str
) -> None:
    login.answer = 400, {"error": code}
    response = await login.back(http)
    assert response.status_code == status
    assert words in response.text
    assert f"the identity provider rejected a code: {str(code)!r}" in caplog.messages


@pytest.mark.parametrize("answer", [(500, {}), (200, []), (200, {}), (200, {"id_token": 5}), (302, "x")])
@ON_ONE_DATABASE
async def test_a_response_without_an_id_token_is_a_page(
    http: httpx.AsyncClient, login: Login, answer: tuple[int, object]
) -> None:
    login.answer = answer
    response = await login.back(http)
    assert response.status_code in (401, 503)
    assert response.headers["content-type"].startswith("text/html")


@ON_ONE_DATABASE
async def test_the_log_names_the_status_of_a_rejection_in_html(
    http: httpx.AsyncClient, login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    login.answer = 401, None
    response = await login.back(http)
    assert response.status_code == 503
    assert "Ask the operator" in response.text
    assert "the identity provider rejected a code: 'HTTP 401'" in caplog.messages


@ON_ONE_DATABASE
async def test_the_id_of_a_public_client_reaches_the_provider(
    http: httpx.AsyncClient, login: Login, services: Services, change: Change
) -> None:
    identity = services.settings.identity.model_copy(update={"client_secret": SecretStr("")})
    change(settings=services.settings.model_copy(update={"identity": identity}))
    assert (await login.back(http)).status_code == 303
    assert parse_qs(login.asked.content.decode())["client_id"] == [ODD_ID]


@pytest.mark.parametrize("methods", [None, [], 5, True])
@ON_ONE_DATABASE
async def test_a_provider_that_names_no_methods_gets_basic(
    http: httpx.AsyncClient, login: Login, methods: object
) -> None:
    login.metadata = {"token_endpoint_auth_methods_supported": methods}
    assert (await login.back(http)).status_code == 303
    assert login.asked.headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("endpoint", [None, 5, "ftp://login.example/token", "https://[::login.example"])
@ON_ONE_DATABASE
async def test_a_provider_without_a_usable_endpoint_is_a_page(
    http: httpx.AsyncClient, login: Login, endpoint: object
) -> None:
    login.metadata = {"token_endpoint": endpoint}
    response = await http.get("/dashboard/sign-in/start")
    assert response.status_code == 503
    assert "The identity provider cannot be reached." in response.text
