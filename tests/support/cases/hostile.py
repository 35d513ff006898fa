"""Tokens that must never be accepted (rows A058 to A081 of the list of bad input), made from one good one."""

import base64
import hashlib
import hmac
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from profilesvc.domain.signing_keys import KeyDates
from profilesvc.domain.time import DAY
from profilesvc.tokens.claims import TokenType
from profilesvc.tokens.keys import HmacKey, RsaKey, SigningKey, pem_of, public_jwk
from profilesvc.tokens.signer import Keyring, Signer

Case = tuple[str, str]
BASE = "http://profiles.test"
NOW = 1_767_323_045_678
CLAIMS: dict[str, Any] = {
    "sub": "svcid_1_1_site",
    "client_id": "svcid_1_1_site",
    "scope": "service",
    "permissions": ["business.read"],
    "location": "locations/111",
    "business_id": 10,
    "epoch": 0,
    "jti": "j" * 21 + "A",
    "fam": "f" * 21 + "Q",
    "gen": 0,
    "auth_time": NOW // 1000,
}
COMMON_SECRETS = (
    "",
    " ",
    "secret",
    "password",
    "changeme",
    "123456",
    "jwt",
    "key",
    "your-256-bit-secret",
    "test",
    "null",
)


def signer_of(base_url: str, *keys: SigningKey) -> Signer:
    """A signer with these keys, where each signs a day longer than the one before."""
    dates = [KeyDates(key.kid, day, day * DAY, alg=key.alg) for day, key in enumerate(keys)]
    return Signer(Keyring(zip(dates, keys, strict=True)), base_url)


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def dumps(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()


Secret = rsa.RSAPrivateKey | bytes


def secret_of(key: SigningKey) -> Secret:
    return key.private if isinstance(key, RsaKey) else key.secret


def signature(signing_input: str, secret: Secret, digest: str = "sha256") -> str:
    """By RSA or by HMAC, whatever the header says."""
    content = signing_input.encode()
    if isinstance(secret, bytes):
        return b64(hmac.digest(secret, content, digest))
    return b64(secret.sign(content, padding.PKCS1v15(), getattr(hashes, digest.upper())()))


@dataclass
class Forge:
    """Makes tokens of any shape; with our key, as an attacker with a leaked signature oracle would."""

    key: SigningKey
    claims: dict[str, Any]
    now: int  # seconds
    typ: TokenType = "at+jwt"

    @property
    def header(self) -> dict[str, Any]:
        return {"alg": self.key.alg, "typ": self.typ, "kid": self.key.kid}

    def sign(self, header: Any = None, payload: Any = None, secret: Secret | None = None) -> str:
        """A signed token, by our key unless another is given; bytes are written as they are."""
        signing_input = self.unsigned(self.header if header is None else header, payload)
        return f"{signing_input}.{signature(signing_input, secret_of(self.key) if secret is None else secret)}"

    def unsigned(self, header: Any, payload: Any = None) -> str:
        return f"{b64(dumps(header))}.{b64(dumps(self.claims if payload is None else payload))}"

    def hmac(self, secret: bytes, alg: str = "HS256") -> str:
        return self.sign({**self.header, "alg": alg}, secret=secret)

    def good(self) -> str:
        return self.sign()

    def with_header(self, **members: Any) -> str:
        return self.sign({**self.header, **members})

    def with_claims(self, **claims: Any) -> str:
        return self.sign(payload={**self.claims, **claims})

    def without(self, *claims: str) -> str:
        return self.sign(payload={name: value for name, value in self.claims.items() if name not in claims})

    def raw_claim(self, name: str, literal: str) -> str:
        """A claim as raw text, for values that json.dumps would not write."""
        rest = dumps({key: value for key, value in self.claims.items() if key != name})
        return self.sign(payload=rest[:-1] + f',"{name}":{literal}}}'.encode())


def hostile(forge: Forge) -> Iterator[Case]:
    """(row and what is wrong, token)"""
    assert isinstance(forge.key, RsaKey)
    yield from _algorithms(forge, forge.key)
    yield from _other_keys(forge)
    yield from _headers(forge)
    yield from _spellings(forge)
    yield from _payloads(forge)
    yield from _times(forge)
    yield from _issuers(forge)
    yield from _identities(forge)


def _algorithms(forge: Forge, key: RsaKey) -> Iterator[Case]:
    for alg in ("none", "None", "NONE", "nOnE", "", "rs256", "RS384", "RS512", "PS256", "HS256", None, ["RS256"], 5):
        yield f"A058 alg {alg} with our signature", forge.with_header(alg=alg)
    for alg in ("none", "None", "NONE", "nOnE"):
        yield f"A058 alg {alg}, no signature", forge.unsigned({**forge.header, "alg": alg}) + "."
    no_alg = {name: value for name, value in forge.header.items() if name != "alg"}
    yield "A058 no alg", forge.sign(no_alg)
    for form, secret in public_forms(key).items():
        yield f"A059 HS256 keyed with our public key as {form}", forge.hmac(secret)
    for text in COMMON_SECRETS:
        yield f"A060 HS256 keyed with {text!r}", forge.hmac(text.encode())
    signing_input = forge.unsigned({**forge.header, "alg": "PS256"}).encode()
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    ps256 = key.private.sign(signing_input, pss, hashes.SHA256())
    yield "A061 PS256 by our key", f"{signing_input.decode()}.{b64(ps256)}"
    rs512 = forge.unsigned({**forge.header, "alg": "RS512"})
    yield "A061 RS512 by our key", f"{rs512}.{signature(rs512, key.private, 'sha512')}"
    es256 = forge.unsigned({**forge.header, "alg": "ES256"})
    made = ec.generate_private_key(ec.SECP256R1()).sign(es256.encode(), ec.ECDSA(hashes.SHA256()))
    yield "A061 ES256", f"{es256}.{b64(made)}"
    eddsa = forge.unsigned({**forge.header, "alg": "EdDSA"})
    yield "A061 EdDSA", f"{eddsa}.{b64(ed25519.Ed25519PrivateKey.generate().sign(eddsa.encode()))}"


def public_forms(key: RsaKey) -> dict[str, bytes]:
    encodings, formats = serialization.Encoding, serialization.PublicFormat
    pem = key.public.public_bytes(encodings.PEM, formats.SubjectPublicKeyInfo)
    modulus = key.public.public_numbers().n
    return {
        "PEM": pem,
        "PEM without the last newline": pem.rstrip(b"\n"),
        "PEM with CRLF": pem.replace(b"\n", b"\r\n"),
        "PKCS#1 PEM": key.public.public_bytes(encodings.PEM, formats.PKCS1),
        "DER": key.public.public_bytes(encodings.DER, formats.SubjectPublicKeyInfo),
        "PKCS#1 DER": key.public.public_bytes(encodings.DER, formats.PKCS1),
        "JWK": dumps(public_jwk(key.public)),
        "modulus": modulus.to_bytes(256, "big"),
        "kid": key.kid.encode(),
    }


def _other_keys(forge: Forge) -> Iterator[Case]:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    jwk = public_jwk(other.public_key())
    yield "A061 RS256 by another key under our kid", forge.sign(secret=other)
    thumbprint = b64(hashlib.sha256(dumps({"e": jwk["e"], "kty": "RSA", "n": jwk["n"]})).digest())
    yield "A077 a removed key under its own kid", forge.sign({**forge.header, "kid": thumbprint}, secret=other)
    yield "A062 jwk of the attacker", forge.sign({**forge.header, "jwk": jwk}, secret=other)


def _headers(forge: Forge) -> Iterator[Case]:
    url = "https://evil.example/keys.json"
    ours = {"kty": "oct", "k": b64(b"k" * 32)} if isinstance(forge.key, HmacKey) else public_jwk(forge.key.public)
    for name, value in [("jwk", ours), ("jku", url), ("x5u", url), ("x5c", ["MIIB"]), ("x5t", "AA"), ("cty", "JWT")]:
        yield f"A062 header {name}, signed by our key", forge.with_header(**{name: value})
    kid: Any
    for kid in ("", "x", 5, None, [forge.key.kid], {}, "../../dev/null", "x' UNION SELECT 'a", "/proc/sys/kernel/x"):
        yield f"A063 kid {kid!r}", forge.with_header(kid=kid)
    yield "A063 kid in the other case", forge.with_header(kid=forge.key.kid.swapcase())
    yield "A063 kid of 10 KB", forge.with_header(kid="k" * 10_240)
    yield "A063 no kid", forge.sign({"alg": "RS256", "typ": "at+jwt"})
    yield "A064 crit unknown", forge.with_header(crit=["exp"])
    yield "A064 crit empty", forge.with_header(crit=[])
    yield "A064 b64 false", forge.with_header(b64=False, crit=["b64"])
    yield "A064 zip", forge.with_header(zip="DEF")
    for typ in ("rt+jwt", "JWT", "AT+JWT", "application/at+jwt", "", 5, None):
        yield f"A065 typ {typ}", forge.with_header(typ=typ)
    yield "A065 no typ", forge.sign({"alg": "RS256", "kid": forge.key.kid})
    header = dumps(forge.header)
    yield "A066 alg twice", forge.sign(header[:-1] + b',"alg":"RS256"}')
    yield "A066 alg twice, none first", forge.sign(b'{"alg":"none",' + header[1:])
    yield "A066 sub twice", forge.sign(payload=dumps(forge.claims)[:-1] + b',"sub":"1"}')
    yield "A070 header is a list", forge.sign([forge.header])
    yield "A070 header is deep", forge.sign(b"[" * 1_500 + b"]" * 1_500)
    yield "A070 header is empty", forge.sign(b"")
    yield "A070 header is not UTF-8", forge.sign(b'{"alg":"RS256","typ":"\xff"}')


def _spellings(forge: Forge) -> Iterator[Case]:
    good = forge.good()
    header, payload, end = good.split(".")
    raw = base64.urlsafe_b64decode(end + "==")
    yield "A067 no signature", f"{header}.{payload}."
    yield "A067 no signature part", f"{header}.{payload}"
    yield "A067 one bit flipped", f"{header}.{payload}.{b64(raw[:-1] + bytes([raw[-1] ^ 1]))}"
    yield "A067 last four cut", good[:-4]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    yield "A067 unused bits set", good[:-1] + alphabet[alphabet.index(good[-1]) ^ 1]
    yield "A067 padding appended", f"{good}=="
    yield "A067 signature repeated", f"{good}{end}"
    yield "A067 zeros for a signature", f"{header}.{payload}.{b64(bytes(256))}"
    yield "A067 payload exchanged", f"{header}.{b64(dumps({**forge.claims, 'sub': '2'}))}.{end}"
    yield "A068 standard alphabet", f"{header}.{payload}.{end[:-1]}+"
    yield "A068 slash", f"{header}.{payload}.{end[:-1]}/"
    for name, blank in [("blank", " "), ("tab", "\t"), ("newline", "\n"), ("NUL", "\0"), ("carriage return", "\r\n")]:
        yield f"A068 {name} inside", f"{header}.{payload[:9]}{blank}{payload[9:]}.{end}"
        yield f"A068 {name} at the end", f"{good}{blank}"
        yield f"A068 {name} at the start", f"{blank}{good}"
    yield "A068 percent-encoded", good.replace(".", "%2E")
    yield "A068 fullwidth letters", good.translate({ord(c): ord(c) + 0xFEE0 for c in "eyJhbG"})
    for count, text in [(1, header), (4, f"{good}.{end}"), (5, f"{header}.{payload}.{end}.{header}.AA")]:
        yield f"A069 {count} parts", text
    yield "A069 JSON serialisation", json.dumps({"protected": header, "payload": payload, "signature": end})
    yield "A069 empty", ""
    yield "A069 dots", ".."
    yield "A081 over 8 KB", forge.with_claims(padding="x" * 8_192)


def _payloads(forge: Forge) -> Iterator[Case]:
    for name, payload in [
        ("list", [forge.claims]),
        ("string", "claims"),
        ("number", 5),
        ("null", b"null"),
        ("empty", b""),
        ("not JSON", b"{"),
        ("not UTF-8", b'{"sub":"\xff\xfe"}'),
        ("UTF-16", json.dumps(forge.claims).encode("utf-16")),
        ("deep", b"[" * 1_500 + b"]" * 1_500),
        ("an empty object", {}),
        ("followed by more", dumps(forge.claims) + b"{}"),
        ("with a byte order mark", b"\xef\xbb\xbf" + dumps(forge.claims)),
    ]:
        yield f"A070 payload {name}", forge.sign(payload=payload)


def _times(forge: Forge) -> Iterator[Case]:
    yield "A071 no exp", forge.without("exp")
    for literal in ("null", '"9999999999"', "true", "1.5", f"{forge.now + 60}.5", "[9999999999]", "NaN", "Infinity"):
        yield f"A071 exp {literal}", forge.raw_claim("exp", literal)
    for name, literal in [
        ("1e400", "1e400"),
        ("1e10", "1e10"),
        ("400 digits", "9" * 400),
        ("5000 digits", "9" * 5_000),
    ]:
        yield f"A071 exp {name}", forge.raw_claim("exp", literal)
    for exp in (-1, 0, forge.now, forge.now - 1, 2**53):
        yield f"A071 exp {exp}", forge.with_claims(exp=exp)
    yield "A072 iat in an hour", forge.with_claims(iat=forge.now + 3_600)
    yield "A072 iat beyond the leeway", forge.with_claims(iat=forge.now + 61)
    yield "A072 nbf in an hour", forge.with_claims(nbf=forge.now + 3_600)
    yield "A072 no iat", forge.without("iat")
    for name in ("iat", "nbf"):
        for literal in ('"5"', "NaN", "1.5", "true", "null", "-1"):
            yield f"A072 {name} {literal}", forge.raw_claim(name, literal)


def _issuers(forge: Forge) -> Iterator[Case]:
    base = forge.claims["iss"]
    for value in (
        "https://evil.example",
        base[:-1],
        base + ".evil.example",
        base.upper(),
        base + "/",
        [base],
        None,
        "",
    ):
        yield f"A073 iss {value!r}", forge.with_claims(iss=value)
        yield f"A073 aud {value!r}", forge.with_claims(aud=value)
    yield "A073 aud with ours in a list", forge.with_claims(aud=["https://evil.example", base])
    yield "A073 aud of refresh tokens", forge.with_claims(aud=f"{base}/api/v1/auth/token")
    yield "A073 aud empty list", forge.with_claims(aud=[])
    yield "A073 no iss", forge.without("iss")
    yield "A073 no aud", forge.without("aud")
    staging = "https://staging.profiles.test"
    yield "A076 another deployment", forge.with_claims(iss=staging, aud=staging)


def _identities(forge: Forge) -> Iterator[Case]:
    value: Any
    for value in (1, None, True, [], {}, ""):
        yield f"A074 sub {value!r}", forge.with_claims(sub=value)
    yield "A074 sub is not the client", forge.with_claims(sub="svcid_2_1_x")
    yield "A074 no sub", forge.without("sub")
    yield "A074 no client_id", forge.without("client_id")
    yield "A074 a user's scope for a key", forge.with_claims(scope="user")
    for sub in ("0", "-1", "1.0", " 1", "01", "+1", "٣", "1e3", "9" * 19, "9" * 20, "1\n"):
        yield f"A074 user {sub!r}", forge.with_claims(scope="user", sub=sub, client_id="dashboard")
    for client in ("svcid_1_1_a\0", "svcid_1_1_%", "x", "svcid_1_1_a' OR '1'='1"):
        yield f"A074 client {client!r}", forge.with_claims(sub=client, client_id=client)
    for scope in ("admin", "", None, ["service"], "SERVICE"):
        yield f"A074 scope {scope!r}", forge.with_claims(scope=scope)
    for permissions in (None, "business.read", {"business.read": True}, [1], [["business.read"]], 5):
        yield f"A074 permissions {permissions!r}", forge.with_claims(permissions=permissions)
    yield "A074 no permissions", forge.without("permissions")
    for epoch in (None, "0", 0.0, True, -1, 2**53):
        yield f"A074 epoch {epoch!r}", forge.with_claims(epoch=epoch)
    yield "A074 no jti", forge.without("jti")
    yield from odd_claims(forge)


def odd_claims(forge: Forge) -> Iterator[Case]:
    """Claims that the service would never have issued, under its own signature."""
    good = forge.claims["jti"]
    texts: tuple[str, ...] = (
        "",
        "x",
        good + "A",
        good[:-1] + "B",
        good[:-1] + "=",
        good[:-1] + "\0",
        good[:-1] + "\ud800",
        "é" * 22,
    )
    texts += ("A" * 300, "A" * 4_000, f"{good}\n", "' OR '1'='1", f" {good}"[:22])
    others: tuple[Any, ...] = (None, 5, 0.5, True, [], [good], {}, {"a": good}, -1, 2**63, 10**30)
    for name in ("jti", "fam"):
        for value in (*texts, *others):
            yield f"A074 {name} {str(value)[:30]!a}", forge.with_claims(**{name: value})
    for value in ("111", "locations/", "locations/1\0", "locations/\ud800", "locations/" + "1" * 65, *others):
        yield f"A074 location {str(value)[:30]!a}", forge.with_claims(location=value)
    for value in ("business.delete", "business.read\0", "\ud800"):
        yield f"A074 permission {value!a}", forge.with_claims(permissions=[value])
    for name in ("business_id", "gen", "auth_time"):
        for value in ("1", None, True, 1.0, -1, 2**53, 10**30, [1], {}):
            yield f"A074 {name} {value!r}", forge.with_claims(**{name: value})
        yield f"A074 no {name}", forge.without(name)
    yield "A074 a life of more than a year", forge.with_claims(exp=forge.claims["iat"] + 367 * 86_400)
    yield "A074 an end before the start", forge.with_claims(exp=forge.claims["iat"] - 1)


Confused = tuple[str, TokenType, str]


def confused(access: Forge, refresh: Forge) -> Iterator[Confused]:
    """(what is confused, the type that the token is read as, token): each algorithm, key and type for the other one"""
    assert isinstance(access.key, RsaKey)
    for mine, other in ((access, refresh), (refresh, access)):
        for name, token in [*_swapped(mine, other), *_headers_with_keys(mine)]:
            yield f"{mine.typ}: {name}", mine.typ, token
        yield f"{mine.typ} read as {other.typ}", other.typ, mine.good()
        yield f"{mine.typ} with the other typ, read as that", other.typ, mine.with_header(typ=other.typ)
    forms = public_forms(access.key) | {"private PEM": pem_of(access.key, None).encode()}
    for forge in (access, refresh):
        for form, secret in forms.items():
            for kid in (access.key.kid, refresh.key.kid):
                token = forge.sign({"alg": "HS256", "typ": forge.typ, "kid": kid}, secret=secret)
                yield f"{forge.typ}: HS256 keyed with the RSA key as {form}, kid {kid[:4]}", forge.typ, token
    yield from _of_the_secret(refresh)


def _swapped(mine: Forge, other: Forge) -> Iterator[Case]:
    """Tokens of `mine` with the algorithm, kid, signature, type or claims of `other`."""
    theirs = secret_of(other.key)
    for alg, kid, signed in itertools.product((mine, other), (mine, other), (mine, other)):
        header = {"alg": alg.key.alg, "typ": mine.typ, "kid": kid.key.kid}
        if not alg is kid is signed is mine:
            name = f"alg of {alg.typ}, kid of {kid.typ}, signed by {signed.typ}"
            yield name, mine.sign(header, secret=secret_of(signed.key))
            yield f"{name}, claims of {other.typ}", mine.sign(header, other.claims, secret_of(signed.key))
    for typ in (other.typ, "JWT", mine.typ.upper(), f"application/{mine.typ}", "", None):
        yield f"typ {typ}", mine.with_header(typ=typ)
    yield "the other's whole header", mine.sign(other.header)
    yield "the other's whole header and signature", mine.sign(other.header, secret=theirs)
    yield "the other's claims", mine.sign(payload=other.claims)
    yield "the other's audience", mine.with_claims(aud=other.claims["aud"])
    for algorithm in ("none", "None", "NONE", "nOnE", "", None):
        for signature in ("", "AA", mine.good().rpartition(".")[2]):
            yield f"alg {algorithm}", f"{mine.unsigned({**mine.header, 'alg': algorithm})}.{signature}"
    for wrong in ("", None, [mine.key.kid], "../../dev/null", f"{mine.key.kid}\0", other.key.kid.swapcase()):
        yield f"kid {wrong!r}", mine.with_header(kid=wrong)


def _headers_with_keys(mine: Forge) -> Iterator[Case]:
    """Keys of the attacker, or of our own, in the header, signed by the attacker and by us."""
    url, attacker = "https://evil.example/keys.json", b"a secret of the attacker, 32 bytes"
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    oct_key, rsa_key = {"kty": "oct", "k": b64(attacker)}, public_jwk(other.public_key())
    for name, value in [
        ("jwk", oct_key),
        ("jwk", rsa_key),
        ("jku", url),
        ("x5u", url),
        ("x5c", ["MIIB"]),
        ("x5t", "AA"),
    ]:
        header = {**mine.header, name: value}
        for alg, secret in (("HS256", attacker), ("RS256", other), (mine.key.alg, None)):
            yield f"{name} {value}, {alg}", mine.sign({**header, "alg": alg}, secret=secret)
            yield f"{name} {value}, {alg}, no kid", mine.sign({"alg": alg, "typ": mine.typ, name: value}, secret=secret)


def _of_the_secret(refresh: Forge) -> Iterator[Confused]:
    """Other algorithms with the HMAC secret, and other forms of the secret."""
    assert isinstance(refresh.key, HmacKey)
    secret = refresh.key.secret
    for alg in ("HS384", "HS512", "hs256", "RS256", "PS256", "ES256", "EdDSA"):
        for digest in ("sha256", "sha384", "sha512"):
            signing_input = refresh.unsigned({**refresh.header, "alg": alg})
            yield f"alg {alg}, {digest}", "rt+jwt", f"{signing_input}.{signature(signing_input, secret, digest)}"
    other_forms = {
        "base64url": b64(secret).encode(),
        "hexadecimal": secret.hex().encode(),
        "kid": refresh.key.kid.encode(),
        "PEM": pem_of(refresh.key, None).encode(),
        "JWK": dumps({"kty": "oct", "k": b64(secret)}),
        "sealing key": refresh.key.sealing,
        "one byte less": secret[:-1],
        "nothing": b"",
    }
    for form, guess in other_forms.items():
        yield f"keyed with the {form}", "rt+jwt", refresh.hmac(guess)
    for text in COMMON_SECRETS:
        yield f"keyed with {text!r}", "rt+jwt", refresh.hmac(text.encode())
