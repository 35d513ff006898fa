"""Standard OAuth libraries against a running server, with nothing in their calls that knows of this service (D-05)."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import joserfc.jwt
import pytest
import requests
import time_machine
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import ClaimsOption
from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error, TokenExpiredError
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session as RequestsOAuth2Session

from support.clients.oauth_service import LOCATIONS, Issuer, Service, issuing, new_key
from support.repository import DOCS

Later = Callable[[], time_machine.travel]
READ_OFFLINE = "business.read offline_access"


@pytest.fixture(scope="module")
def issuer(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with issuing(sqlite_template, tmp_path_factory.mktemp("oauth")) as running:
        yield running


@pytest.fixture
def service(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with issuer.service() as made:
        yield made


@pytest.fixture(params=["client_secret_basic", "client_secret_post"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ended(response: Any) -> bool:
    return bool(response.status_code == 401 and response.json()["error"]["code"] == "AUTH_INVALID_TOKEN")


def test_authlib_fetches_refreshes_introspects_and_revokes_a_token(service: Service, method: str) -> None:
    credentials = (service.client_id, service.client_secret)
    with OAuth2Session(*credentials, token_endpoint_auth_method=method, scope=READ_OFFLINE) as session:
        token = session.fetch_token(service.token_url, grant_type="client_credentials")
        assert token["scope"] == READ_OFFLINE
        assert session.get(service.url + LOCATIONS).status_code == 200
        first = dict(token)
        renewed = session.refresh_token(service.token_url)
        assert renewed["refresh_token"] != first["refresh_token"]
        told = session.introspect_token(f"{service.url}/oauth2/introspect", token=renewed["access_token"]).json()
        assert (told["active"], told["client_id"]) == (True, service.client_id)
        old = session.introspect_token(f"{service.url}/oauth2/introspect", token=first["refresh_token"])
        assert old.json() == {"active": False}
        done = session.revoke_token(f"{service.url}/oauth2/revoke", token=renewed["refresh_token"])
        assert done.status_code == 200
        assert ended(session.get(service.url + LOCATIONS))


def test_authlib_renews_a_token_by_itself(service: Service, method: str) -> None:
    seen: list[str] = []
    credentials = (service.client_id, service.client_secret)
    with OAuth2Session(
        *credentials,
        scope="offline_access",
        token_endpoint_auth_method=method,
        token_endpoint=service.token_url,
        update_token=lambda token, refresh_token=None, access_token=None: seen.append(str(refresh_token)),
    ) as session:
        token = session.fetch_token(service.token_url, grant_type="client_credentials")
        session.token = {**token, "expires_at": 1}
        assert session.get(service.url + LOCATIONS).status_code == 200
        assert seen == [token["refresh_token"]]
        assert session.token["refresh_token"] != token["refresh_token"]


async def test_authlibs_async_client_fetches_renews_and_revokes_a_token(service: Service, method: str) -> None:
    credentials = (service.client_id, service.client_secret)
    async with AsyncOAuth2Client(
        *credentials,
        scope="offline_access",
        token_endpoint_auth_method=method,
        token_endpoint=service.token_url,
        trust_env=False,
    ) as client:
        token = await client.fetch_token(service.token_url, grant_type="client_credentials")
        client.token = {**token, "expires_at": 1}
        assert (await client.get(service.url + LOCATIONS)).status_code == 200
        assert client.token["refresh_token"] != token["refresh_token"]
        access = client.token["access_token"]
        told = await client.introspect_token(f"{service.url}/oauth2/introspect", token=access)
        assert told.json()["active"] is True
        await client.revoke_token(f"{service.url}/oauth2/revoke", token=access, token_type_hint="refresh_token")
        assert ended(await client.get(service.url + LOCATIONS))


def test_authlib_raises_its_own_errors(service: Service, method: str) -> None:
    with OAuth2Session(service.client_id, "wrong", token_endpoint_auth_method=method) as session:
        with pytest.raises(OAuthError) as caught:
            session.fetch_token(service.token_url, grant_type="client_credentials")
        assert caught.value.error == "invalid_client"
    with OAuth2Session(service.client_id, service.client_secret, token_endpoint_auth_method=method) as session:
        with pytest.raises(OAuthError) as caught:
            session.refresh_token(service.token_url, refresh_token="nonsense")
        assert caught.value.error == "invalid_grant"
        with pytest.raises(OAuthError) as caught:
            session.fetch_token(service.token_url, grant_type="client_credentials", scope="nothing")
        assert caught.value.error == "invalid_scope"


class TestRequestsOAuthlib:
    def session(self, service: Service, **options: Any) -> RequestsOAuth2Session:
        return RequestsOAuth2Session(client=BackendApplicationClient(client_id=service.client_id), **options)

    @pytest.mark.parametrize("way", ["auth", "client_secret", "include_client_id"])
    def test_requests_oauthlib_fetches_a_token(self, service: Service, way: str) -> None:
        options: dict[str, Any] = {"client_secret": service.client_secret}
        if way == "auth":
            options = {"auth": HTTPBasicAuth(service.client_id, service.client_secret)}
        elif way == "include_client_id":
            options["include_client_id"] = True
        with self.session(service) as session:
            token = session.fetch_token(service.token_url, **options)
            assert token["scope"] == ["business.read", "business.write"]
            assert session.get(service.url + LOCATIONS).status_code == 200

    def test_requests_oauthlib_renews_a_token_by_itself(self, service: Service) -> None:
        saved: list[dict[str, Any]] = []
        credentials = {"client_id": service.client_id, "client_secret": service.client_secret}
        renewal = {"auto_refresh_url": service.token_url, "auto_refresh_kwargs": credentials}
        with self.session(service, **renewal, token_updater=saved.append) as session:
            token = session.fetch_token(service.token_url, client_secret=service.client_secret, scope="offline_access")
            session.token = {**token, "expires_at": 1, "expires_in": -1}
            assert session.get(service.url + LOCATIONS).status_code == 200
            (renewed,) = saved
            assert renewed["refresh_token"] != token["refresh_token"]

    def test_requests_oauthlib_raises_its_own_errors(self, service: Service) -> None:
        with self.session(service) as session, pytest.raises(OAuth2Error) as caught:
            session.fetch_token(service.token_url, client_secret="wrong")
        assert caught.value.error == "invalid_client"


@pytest.mark.parametrize("symbol", ["+", "/"])
def test_secrets_with_the_symbols_of_base64_work_in_every_way(service: Service, symbol: str) -> None:
    """Libraries differ in what they percent-encode, so that a secret with + is the one that fails."""
    key = {"client_id": service.client_id, "client_secret": service.client_secret}
    while symbol not in key["client_secret"]:
        key = new_key(service.url, service.user)
    for method in ("client_secret_basic", "client_secret_post"):
        with OAuth2Session(**key, token_endpoint_auth_method=method) as session:
            assert session.fetch_token(service.token_url, grant_type="client_credentials")["access_token"]
    basic = HTTPBasicAuth(key["client_id"], key["client_secret"])
    with RequestsOAuth2Session(client=BackendApplicationClient(client_id=key["client_id"])) as session:
        assert session.fetch_token(service.token_url, auth=basic)["access_token"]


class TestDiscovery:
    def metadata(self, service: Service) -> AuthorizationServerMetadata:
        found = httpx.get(f"{service.url}/.well-known/oauth-authorization-server", trust_env=False)
        assert (found.status_code, found.headers["content-type"]) == (200, "application/json")
        assert found.headers["cache-control"] == "max-age=3600"
        return AuthorizationServerMetadata(found.json())

    def test_the_metadata_fits_the_standard(self, service: Service) -> None:
        metadata = self.metadata(service)
        assert metadata["issuer"] == service.url
        for name in metadata.REGISTRY_KEYS:
            # The addresses are not https here, and authlib treats an empty list as none.
            if name in metadata and not name.endswith(("issuer", "_endpoint", "_uri", "response_types_supported")):
                getattr(metadata, f"validate_{name}", lambda: None)()
        assert metadata["response_types_supported"] == []
        assert metadata["scopes_supported"] == ["business.read", "business.write", "offline_access"]
        methods = ["client_secret_basic", "client_secret_post"]
        for endpoint in ("token", "revocation", "introspection"):
            assert metadata[f"{endpoint}_endpoint_auth_methods_supported"] == methods

    def test_every_address_in_the_metadata_works(self, service: Service) -> None:
        metadata = self.metadata(service)
        credentials = (service.client_id, service.client_secret)
        assert {"client_credentials", "refresh_token"} <= set(metadata["grant_types_supported"])
        with OAuth2Session(*credentials, scope=" ".join(metadata["scopes_supported"])) as session:
            token = session.fetch_token(metadata["token_endpoint"], grant_type="client_credentials")
            token = session.refresh_token(metadata["token_endpoint"])
            access = token["access_token"]
            told = session.introspect_token(metadata["introspection_endpoint"], token=access)
            assert told.json()["active"] is True
            assert session.revoke_token(metadata["revocation_endpoint"], token=access).status_code == 200
            assert ended(session.get(service.url + LOCATIONS))
        for name in ("jwks_uri", "service_documentation"):
            assert httpx.get(metadata[name], trust_env=False).status_code == 200

    def test_joserfc_verifies_the_tokens_by_the_served_keys(self, service: Service) -> None:
        metadata = self.metadata(service)
        keys = KeySet.import_key_set(httpx.get(metadata["jwks_uri"], trust_env=False).json())
        with OAuth2Session(service.client_id, service.client_secret, scope="offline_access") as session:
            given = session.fetch_token(metadata["token_endpoint"], grant_type="client_credentials")
        token = joserfc.jwt.decode(given["access_token"], keys, algorithms=["RS256"])
        assert token.header["typ"] == "at+jwt"
        issuer: ClaimsOption = {"essential": True, "value": metadata["issuer"]}
        client: ClaimsOption = {"essential": True, "value": service.client_id}
        there: ClaimsOption = {"essential": True}
        registry = joserfc.jwt.JWTClaimsRegistry(  # RFC 9068 §2.2
            iss=issuer, aud=issuer, sub=client, client_id=client, exp=there, iat=there, jti=there
        )
        registry.validate(token.claims)
        with pytest.raises(JoseError):  # only the service verifies its refresh tokens
            joserfc.jwt.decode(given["refresh_token"], keys, algorithms=["RS256", "HS256"])
        header, payload, signature = given["access_token"].split(".")
        with pytest.raises(BadSignatureError):
            joserfc.jwt.decode(f"{header}.{payload}.{signature[:-8]}AAAAAAAA", keys, algorithms=["RS256"])


def programs_of_the_guide(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the Python blocks of the page. They read the environment, so nothing but that is given to them."""
    monkeypatch.delenv("OAUTHLIB_INSECURE_TRANSPORT")
    monkeypatch.delenv("AUTHLIB_INSECURE_TRANSPORT")
    names = {"BASE_URL": service.url, "CLIENT_ID": service.client_id, "CLIENT_SECRET": service.client_secret}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    return re.findall(r"```python\n(.*?)```", (DOCS / "oauth.md").read_text("utf-8"), re.DOTALL)


def test_the_guide_handles_what_the_library_raises(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: dict[str, Any] = {}
    session, handling, *_ = programs_of_the_guide(service, monkeypatch)
    exec(session + handling, ran)
    client, call = ran["session"], ran["call"]
    client.revoke_token(f"{service.url}/oauth2/revoke", token=client.token["access_token"])
    assert call("GET", "/api/v1/posts", params={"locationId": "locations/111"}).status_code == 200

    client.token = {**client.token, "expires_at": 1}
    key = f"{service.url}/api/v1/developer/credentials/{service.client_id}/deactivate"
    owner = {"Authorization": f"Bearer {service.user}"}
    httpx.post(key, headers=owner, json={"reason": "user_requested"}, trust_env=False).raise_for_status()
    capsys.readouterr()
    assert call("GET", LOCATIONS) is None
    assert capsys.readouterr().out.startswith("no token: invalid_client The API key has been deactivated")

    response = requests.Response()
    response.status_code = 503
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", lambda *_arguments, **_options: response)
    assert call("GET", LOCATIONS) is None
    assert capsys.readouterr().out.startswith("no token for now: 503")
    monkeypatch.undo()
    client.close()


def test_the_programs_of_the_guide_run_and_renew(
    service: Service, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in programs_of_the_guide(service, monkeypatch):
        if "fetch_token(" not in program.partition("\n\n\n")[0]:
            continue  # goes on after another program
        ran: dict[str, Any] = {}
        exec(program, ran)
        assert ran["posts"].status_code == 200
        issuer.clock.advance(days=100)
        with time_machine.travel(issuer.clock.now() / 1000):
            exec(program.rpartition("\n\n")[2], ran)
            assert ran["posts"].status_code == 200
        ran["session"].close()


class TestA100DaysLater:
    """The access token ended after 90 days. A refresh token, which lasts 30, would be dead: there is none."""

    @pytest.fixture
    def later(self, issuer: Issuer) -> Later:
        """Both clocks move on; the library's by what it returns."""

        def move() -> time_machine.travel:
            return time_machine.travel(issuer.clock.advance(days=100) / 1000)

        return move

    def test_authlib_renews_an_expired_token_by_itself(self, service: Service, method: str, later: Later) -> None:
        with OAuth2Session(
            service.client_id,
            service.client_secret,
            grant_type="client_credentials",
            token_endpoint=service.token_url,
            token_endpoint_auth_method=method,
        ) as session:
            first = session.fetch_token()["access_token"]
            assert session.get(service.url + LOCATIONS).status_code == 200
            with later():
                assert session.get(service.url + LOCATIONS).status_code == 200
            assert session.token["access_token"] != first

    async def test_authlibs_async_client_renews_an_expired_token_by_itself(
        self, service: Service, method: str, later: Later
    ) -> None:
        async with AsyncOAuth2Client(
            service.client_id,
            service.client_secret,
            grant_type="client_credentials",
            token_endpoint=service.token_url,
            token_endpoint_auth_method=method,
            trust_env=False,
        ) as client:
            first = (await client.fetch_token())["access_token"]
            assert (await client.get(service.url + LOCATIONS)).status_code == 200
            with later():
                assert (await client.get(service.url + LOCATIONS)).status_code == 200
            assert client.token["access_token"] != first

    def test_requests_oauthlib_repeats_the_grant_for_an_expired_token(self, service: Service, later: Later) -> None:
        with RequestsOAuth2Session(client=BackendApplicationClient(client_id=service.client_id)) as session:
            session.fetch_token(service.token_url, client_secret=service.client_secret)
            assert session.get(service.url + LOCATIONS).status_code == 200
            with later():
                with pytest.raises(TokenExpiredError):
                    session.get(service.url + LOCATIONS)
                session.fetch_token(service.token_url, client_secret=service.client_secret)
                assert session.get(service.url + LOCATIONS).status_code == 200

    def test_oauthlib_repeats_the_grant_for_an_expired_token(self, service: Service, later: Later) -> None:
        client = BackendApplicationClient(client_id=service.client_id)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}

        def grant() -> None:
            form = client.prepare_request_body(client_secret=service.client_secret, include_client_id=True)
            answer = httpx.post(service.token_url, content=form, headers=headers, trust_env=False)
            client.parse_request_body_response(answer.text)
            assert "refresh_token" not in client.token

        def call() -> int:
            uri, headers, _ = client.add_token(service.url + LOCATIONS)
            return httpx.get(uri, headers=headers, trust_env=False).status_code

        grant()
        assert call() == 200
        with later():
            with pytest.raises(TokenExpiredError):
                call()
            grant()
            assert call() == 200
