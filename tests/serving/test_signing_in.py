"""A demo user signs in at the bundled issuer of a served demo, by a library that knows nothing of either."""

from pathlib import Path

import httpx
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client

from profilesvc.client import ProfileClient
from support.identity.dev_issuer import CALLBACK, Form
from support.program import serving


def test_the_sign_in_that_the_demo_prints_works(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo, httpx.Client(trust_env=False, timeout=60) as browser:
        url = f"http://127.0.0.1:{demo.port}"
        told = next(line for line in demo.introduction() if line.startswith("sign in "))
        assert told == f"sign in        with OpenID Connect: issuer {url}/dev/issuer, client dashboard, no password"
        found = browser.get(f"{url}/dev/issuer/.well-known/openid-configuration").json()
        client = OAuth2Client("dashboard", scope="openid", redirect_uri=CALLBACK, code_challenge_method="S256")
        verifier, nonce = generate_token(48), generate_token(20)
        asked, state = client.create_authorization_url(
            found["authorization_endpoint"], code_verifier=verifier, nonce=nonce
        )
        page = browser.get(asked)
        picked = {**Form(page.text).hidden, "subject": "demo-3"}
        back = browser.post(found["authorization_endpoint"], data=picked).headers["location"]
        tokens = client.fetch_token(
            found["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier
        )
        client.close()
        with ProfileClient.signed_in(url, tokens["id_token"], nonce) as carol:
            assert [business.name for business in carol.businesses().businesses] == ["Diaz Dental"]
