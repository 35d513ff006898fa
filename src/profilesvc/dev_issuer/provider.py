"""The development issuer: codes and ID tokens, signed with its own key. Only used codes are stored."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import orjson
from jwt import PyJWTError

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import SECOND
from profilesvc.services.context import Services
from profilesvc.storage import identities, users
from profilesvc.storage.identities import Linked
from profilesvc.tokens.id_tokens import PublicKey
from profilesvc.tokens.jose import b64, is_compact, unverified
from profilesvc.tokens.keys import RsaKey, load_or_create, public_jwk
from profilesvc.tokens.signer import random_id

PATH = "/dev/issuer"
CLIENT_ID = "dashboard"
CODE_SECONDS = 60
ID_TOKEN_SECONDS = 300
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_MAX_CODE = 4096


@dataclass(frozen=True, slots=True)
class Login:
    """A sign-in that is not finished: its user, redirect URI, PKCE challenge and nonce."""

    subject: str
    redirect_uri: str
    challenge: str
    nonce: str | None


class DevIssuer:
    """The issuer at {base_url}/dev/issuer. Its key is created on first use."""

    def __init__(self, base_url: str, client_id: str, key_file: Path, world: JsonObject) -> None:
        self.base_url, self.client_id = base_url, client_id
        self.url = f"{base_url}{PATH}"
        self._key_file, self._demo_users = key_file, world["users"]
        self._newcomers = [Linked(f"new-{each['id']}", each["email"], each["name"]) for each in world["newcomers"]]

    @cached_property
    def _key(self) -> RsaKey:
        return load_or_create(self._key_file)

    @property
    def jwks(self) -> JsonObject:
        """Return the public key as a JWK set."""
        return {"keys": [{**public_jwk(self._key.public), "kid": self._key.kid, "use": "sig", "alg": "RS256"}]}

    async def find(self, kid: str | None, alg: str) -> PublicKey | None:
        """Return the key to the service itself, so that it does not call its own process over the network."""
        return self._key.public if alg == "RS256" and kid == self._key.kid else None

    async def users(self, services: Services) -> list[Linked]:
        """Return the people who can sign in: all linked users, and newcomers if their first login creates a user."""
        linked = await self._linked(services)
        if not services.settings.identity.create_users:
            return linked
        subjects = {user.subject for user in linked}
        return linked + [each for each in self._newcomers if each.subject not in subjects]

    async def _linked(self, services: Services) -> list[Linked]:
        """Return all linked users. The first call links the demo users."""
        async with services.storage.read() as session:
            linked = await identities.issuer_subjects(session, self.url)
            subjects, demo_users = {user.subject for user in linked}, {}
            for person in self._demo_users:
                if (subject := f"demo-{person['id']}") not in subjects:
                    demo_users[subject] = await users.user_by_email(session, person["email"])
        missing = {subject: user for subject, user in demo_users.items() if user is not None}
        if not missing:
            return linked
        async with services.storage.write() as session:
            for subject, user in missing.items():
                await identities.link(session, self.url, subject, user.id, services.clock.now())
            return await identities.issuer_subjects(session, self.url)

    def accepts(self, redirect_uri: str) -> bool:
        """Return whether the URI is on this machine or at the service itself (RFC 8252 §7.3)."""
        try:
            parts = urlsplit(redirect_uri)
            origin = origin_of(parts)
        except ValueError:
            return False
        plain = redirect_uri.isascii() and redirect_uri.isprintable() and not set(redirect_uri) & set(" \\#'\";")
        ours = origin == origin_of(urlsplit(self.base_url))
        loopback = parts.scheme == "http" and parts.hostname in _LOOPBACK
        # The parser ignores text after a bracket, as in `[::1].elsewhere.example`.
        whole = re.fullmatch(r"(?:[^\[\]@:]*|\[[0-9a-f:]*\])(?::[0-9]*)?", parts.netloc, re.IGNORECASE)
        return plain and whole is not None and (ours or loopback)

    def code(self, services: Services, login: Login) -> str:
        """Return an authorization code, valid for a minute and one exchange."""
        claims = {"sub": login.subject, "uri": login.redirect_uri, "chl": login.challenge, "nonce": login.nonce}
        return self._signed(services, "code+jwt", {**claims, "aud": self.url}, CODE_SECONDS)

    async def redeem(self, services: Services, code: str, redirect_uri: str, verifier: str) -> Login | None:
        """Return the login of a code, once. Return None if the code is invalid (RFC 7636 §4.6)."""
        login = self._login(code, services.clock.now())
        if login is None or login.redirect_uri != redirect_uri or login.challenge != s256(verifier):
            return None
        digest, now = hashlib.sha256(code.encode()).hexdigest(), services.clock.now()
        async with services.storage.write() as session:
            is_first = await identities.mark_used(session, digest, now + 2 * CODE_SECONDS * SECOND)
        return login if is_first else None

    def _login(self, code: str, now: int) -> Login | None:
        if not is_compact(code, _MAX_CODE):
            return None
        try:
            header, claims = unverified(code)
            self._key.verify(code)
        except (ValueError, TypeError, RecursionError, PyJWTError):
            return None
        if header.get("typ") != "code+jwt" or claims["exp"] * SECOND <= now:
            return None
        return Login(claims["sub"], claims["uri"], claims["chl"], claims["nonce"])

    async def id_token(self, services: Services, subject: str, nonce: str | None = None) -> str | None:
        """Return an ID token of a user who can sign in, or None."""
        person = next((user for user in await self.users(services) if user.subject == subject), None)
        if person is None:
            return None
        claims = {"sub": subject, "aud": self.client_id, "email": person.email, "email_verified": True}
        if nonce is not None:
            claims["nonce"] = nonce
        return self._signed(services, "JWT", {**claims, "name": person.name}, ID_TOKEN_SECONDS)

    def _signed(self, services: Services, typ: str, claims: JsonObject, ttl_seconds: int) -> str:
        now = services.clock.now() // SECOND
        payload = {"iss": self.url, "iat": now, "exp": now + ttl_seconds, "jti": random_id(services.entropy), **claims}
        return self._key.sign(typ, orjson.dumps(payload))


def origin_of(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port, with the default port filled in.

    Raises:
        ValueError: The port is not a number.
    """
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def s256(verifier: str) -> str:
    """Return the challenge that belongs to a verifier (RFC 7636 §4.2)."""
    return b64(hashlib.sha256(verifier.encode()).digest())
