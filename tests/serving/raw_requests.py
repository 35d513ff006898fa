"""Requests as bytes that no client library would send, each with what it may be answered (A083 to A096)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import orjson

CLOSED = 0
REFUSED = frozenset({CLOSED, 400})
SERVED = frozenset({200, 201, 409})
ANSWERED = frozenset(range(200, 500))
NOWHERE = frozenset({CLOSED, 400, 404, 405})


@dataclass(frozen=True)
class Route:
    """A route with everything a good request needs."""

    method: str
    path: str
    token: str | None
    body: bytes | None
    max_body: int = 256 * 1024

    @property
    def target(self) -> bytes:
        """Path and query as on the wire."""
        return self.path.encode()


def message(
    route: Route,
    *,
    line: bytes | None = None,
    host: bytes = b"Host: profiles.test\r\n",
    media: bytes = b"Content-Type: application/json\r\n",
    auth: bytes | None = None,
    framing: bytes | None = None,
    extra: bytes = b"",
    body: bytes | None = None,
) -> bytes:
    """A good request with some of its parts replaced; each part is whole header lines."""
    body = (route.body or b"") if body is None else body
    line = line if line is not None else b"%s %s HTTP/1.1\r\n" % (route.method.encode(), route.target)
    if auth is None:
        auth = b"" if route.token is None else f"Authorization: Bearer {route.token}\r\n".encode()
    framing = framing if framing is not None else b"Content-Length: %d\r\n" % len(body)
    return line + host + auth + media + framing + extra + b"\r\n" + body


def chunked(body: bytes) -> bytes:
    """The body as one chunk and the end."""
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"


def _body(route: Route) -> bytes:
    return route.body or b"{}"


@dataclass(frozen=True)
class Case:
    """A request, the statuses it may be answered with (0: closed without one), and how many answers it gets."""

    name: str
    make: Callable[[Route], bytes]
    allowed: frozenset[int]
    answers: int = 1
    bodies: bool = False  # only for routes that read a body
    bearers: bool = False  # only for routes that read a bearer token

    def applies(self, route: Route) -> bool:
        """Whether the rule of the case holds for the route."""
        return not (self.bodies and route.body is None) and not (self.bearers and route.token is None)


def _framing(name: str, framing: bytes, allowed: frozenset[int] = REFUSED) -> Case:
    return Case(name, lambda route: message(route, framing=framing), allowed)


def _coding(name: str, coding: bytes, allowed: frozenset[int] = REFUSED) -> Case:
    framing = b"Transfer-Encoding: " + coding + b"\r\n"
    return Case(name, lambda route: message(route, framing=framing, body=chunked(_body(route))), allowed)


def _extra(name: str, extra: bytes, allowed: frozenset[int] = REFUSED) -> Case:
    return Case(name, lambda route: message(route, extra=extra), allowed)


def _chunks(name: str, write: Callable[[bytes], bytes], allowed: frozenset[int] = REFUSED) -> Case:
    framing = b"Transfer-Encoding: chunked\r\n"
    return Case(name, lambda route: message(route, framing=framing, body=write(_body(route))), allowed)


def _sized(name: str, size: Callable[[int], bytes], allowed: frozenset[int] = REFUSED) -> Case:
    """A chunked body whose first size is written in another way; `size` takes the number."""
    return _chunks(f"chunk size {name}", lambda body: size(len(body)) + b"\r\n%s\r\n0\r\n\r\n" % body, allowed)


def _line(name: str, write: Callable[[bytes, bytes], bytes], allowed: frozenset[int] = REFUSED) -> Case:
    """Another request line; `write` takes method and target."""
    return Case(name, lambda route: message(route, line=write(route.method.encode(), route.target)), allowed)


def _target(name: str, change: Callable[[bytes, bytes], bytes], allowed: frozenset[int] = NOWHERE) -> Case:
    """Another target; `change` takes the path and the query with its question mark."""

    def make(route: Route) -> bytes:
        path, mark, query = route.target.partition(b"?")
        return message(route, line=b"%s %s HTTP/1.1\r\n" % (route.method.encode(), change(path, mark + query)))

    return Case(name, make, allowed)


def _method(method: bytes, allowed: frozenset[int]) -> Case:
    return _line(f"method {method!r}", lambda _, target: method + b" " + target + b" HTTP/1.1\r\n", allowed)


def _version(version: bytes, allowed: frozenset[int] = REFUSED) -> Case:
    return _line(f"version {version!r}", lambda method, target: method + b" " + target + b" " + version, allowed)


def _host(name: str, host: bytes, allowed: frozenset[int]) -> Case:
    return Case(f"host {name}", lambda route: message(route, host=host), allowed)


def _auth(name: str, auth: Callable[[str], bytes], allowed: frozenset[int] = frozenset({401})) -> Case:
    return Case(f"bearer {name}", lambda route: message(route, auth=auth(route.token or "")), allowed, bearers=True)


def _content(name: str, body: bytes, allowed: frozenset[int] = frozenset({400}), media: bytes | None = None) -> Case:
    media = b"Content-Type: application/json\r\n" if media is None else media
    return Case(f"body {name}", lambda route: message(route, media=media, body=body), allowed, bodies=True)


def _bytes(name: str, data: bytes, allowed: frozenset[int] = REFUSED) -> Case:
    return Case(name, lambda _: data, allowed)


FRAMING = [
    Case(
        "length and coding",
        lambda r: message(
            r, framing=b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(_body(r)), body=chunked(_body(r))
        ),
        REFUSED,
    ),
    Case(
        "coding and length",
        lambda r: message(
            r, framing=b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % len(_body(r)), body=chunked(_body(r))
        ),
        REFUSED,
    ),
    Case("length twice, same", lambda r: message(r, framing=2 * (b"Content-Length: %d\r\n" % len(_body(r)))), REFUSED),
    Case("length twice, other", lambda r: message(r, extra=b"Content-Length: 1\r\n"), REFUSED),
    Case("length as a list", lambda r: message(r, framing=b"Content-Length: %d, 9\r\n" % len(_body(r))), REFUSED),
    Case("length, blank before colon", lambda r: message(r, framing=b"Content-Length : 2\r\n"), REFUSED),
    Case("coding, blank before colon", lambda r: message(r, framing=b"Transfer-Encoding : chunked\r\n"), REFUSED),
    Case("coding, tab before colon", lambda r: message(r, framing=b"Transfer-Encoding\t: chunked\r\n"), REFUSED),
    *(
        _framing(f"length {value!r}", b"Content-Length: " + value + b"\r\n")
        for value in (
            *(b"-1", b"+5", b"0x5", b"5_0", b"5 5", b"", b"1e1", b"5.0", b"\xef\xbc\x95", b"abc", b"5\x0b", b"\x005"),
            *(b"99999999999999999999", b"18446744073709551617", b"1" * 400),
        )
    ),
    *(
        _coding(f"coding {value!r}", value)
        for value in (
            *(b"gzip", b"identity", b"chunked, identity", b"x, chunked", b"gzip, chunked", b"chunked, chunked"),
            *(b"chunkedx", b"xchunked", b"chun ked", b'"chunked"', b"chunked;q=1", b"\x0bchunked", b"", b"cow"),
            *(
                b"chunked\r\nTransfer-Encoding: chunked",
                b"chunked\r\nTransfer-Encoding: x",
                b"chunked,",
                b"\xa0chunked",
            ),
        )
    ),
    _coding("coding in capitals", b"CHUNKED", SERVED),
    _coding("coding, blank after", b"chunked \t", SERVED | REFUSED),
    Case(
        "chunked by HTTP/1.0",
        lambda r: message(
            r,
            line=b"%s %s HTTP/1.0\r\n" % (r.method.encode(), r.target),
            framing=b"Transfer-Encoding: chunked\r\n",
            body=chunked(_body(r)),
        ),
        REFUSED,
    ),
]

CHUNKS = [
    _chunks("chunks", chunked, SERVED),
    _chunks("chunks of one byte", lambda b: b"".join(b"1\r\n%c\r\n" % c for c in b) + b"0\r\n\r\n", SERVED),
    _sized("with an extension", lambda n: b"%x;a=b" % n, SERVED),
    _sized("in capitals with zeros", lambda n: b"000%X" % n, SERVED),
    _sized("no number", lambda _: b"g"),
    _sized("missing", lambda _: b""),
    _sized("negative", lambda n: b"-%x" % n),
    _sized("signed", lambda n: b"+%x" % n),
    _sized("with 0x", lambda n: b"0x%x" % n),
    _sized("after a blank", lambda n: b" %x" % n),
    _sized("with underscore", lambda n: b"%x_" % n),
    _sized("too small", lambda n: b"%x" % (n - 1)),
    _sized("too large", lambda n: b"%x" % (n + 3)),
    _sized("beyond 64 bits", lambda n: b"1%016x" % n),
    _sized("400 digits", lambda _: b"f" * 400),
    _sized("with a bare LF after", lambda n: b"%x\nx" % n),
    _sized("with a NUL", lambda n: b"%x\x00" % n),
    _sized("with CR in its extension", lambda n: b"%x;a=\rb" % n),
    _sized("with LF in its extension", lambda n: b"%x;a=\nb" % n),
    _chunks("chunk without its line end", lambda b: b"%x\r\n%s0\r\n\r\n" % (len(b), b)),
    _chunks("chunks by LF only", lambda b: b"%x\n%s\n0\n\n" % (len(b), b)),
    _chunks("trailer that names a host", lambda b: chunked(b)[:-2] + b"Host: evil.example\r\n\r\n", SERVED),
    _chunks("trailer that gives a length", lambda b: chunked(b)[:-2] + b"Content-Length: 5\r\n\r\n", SERVED | REFUSED),
    _chunks("trailer with another caller", lambda b: chunked(b)[:-2] + b"Authorization: Bearer x\r\n\r\n", SERVED),
    _chunks("broken trailer", lambda b: chunked(b)[:-2] + b"no colon\r\n\r\n", REFUSED),
]

LINES = [
    Case("bare LF throughout", lambda r: message(r).replace(b"\r\n", b"\n"), REFUSED),
    Case("bare CR throughout", lambda r: message(r).replace(b"\r\n", b"\r") + b"\r\n\r\n", REFUSED),
    _extra("one bare LF", b"X-A: b\nX-C: d\r\n"),
    _extra("one bare CR", b"X-A: b\rX-C: d\r\n"),
    _extra("CR CR LF", b"X-A: b\r\r\n"),
    _extra("folded line", b"X-A: b\r\n c\r\n"),
    _extra("folded line by tab", b"X-A: b\r\n\tc\r\n"),
    _extra("folded length", b"Content-Length:\r\n 5\r\n"),
    Case("fold before the first header", lambda r: message(r, host=b" Host: x\r\nHost: profiles.test\r\n"), REFUSED),
    _extra("line without colon", b"nothing\r\n"),
    _extra("no name", b": value\r\n"),
    *(
        _extra(f"name {name!r}", name + b": value\r\n")
        for name in (b"X A", b"X\tA", b"X\x00A", b"X\x7fA", b"X(A)", b"X\xe9", b'"X"', b"X A ", b"X@A", b"X/A", b"X;")
    ),
    _extra("name with underscore", b"Content_Length: 5\r\nX_Forwarded_Host: evil.example\r\n", SERVED),
    *(
        _extra(f"value {value!r}", b"X-A: " + value + b"\r\n")
        for value in (b"a\x00b", b"a\x01b", b"a\x7fb", b"\x1b[2J")
    ),
    _extra("value of high bytes", b"X-A: \xff\xfe\xe9\r\n", SERVED),
    _extra("empty value", b"X-A:\r\n", SERVED),
    _extra("request id with a line in it", b"X-Request-Id: abcdefgh%0d%0aSet-Cookie: a=b\r\n", SERVED),
    _extra("media type twice", b"Content-Type: text/html\r\n", ANSWERED),
    _extra("cookie of nonsense", b'Cookie: session=\xff"; ;;=,\r\n', SERVED),
    _extra("range and conditions", b"Range: bytes=0-1\r\nIf-Match: *\r\nIf-None-Match: *\r\n", SERVED),
    _extra("idempotency key of high bytes", b"X-Idempotency-Key: \xff\r\n", SERVED | REFUSED),
]

REQUEST_LINES = [
    *(
        _version(version)
        for version in (b"HTTP/0.9\r\n", b"HTTP/1.2\r\n", b"HTTP/2.0\r\n", b"HTTP/3\r\n", b"HTTP/1\r\n")
    ),
    *(
        _version(version)
        for version in (b"http/1.1\r\n", b"HTTP/11\r\n", b"ICY/1.0\r\n", b"HTTP/1.1 x\r\n", b"HTTP/ 1.1\r\n")
    ),
    _version(b"HTTP/1.0\r\n", SERVED),
    _line("HTTP/0.9 without a version", lambda method, target: method + b" " + target + b"\r\n"),
    _line("two spaces", lambda method, target: method + b"  " + target + b" HTTP/1.1\r\n", SERVED | REFUSED),
    _line("blank in front", lambda method, target: b" " + method + b" " + target + b" HTTP/1.1\r\n"),
    _line(
        "empty lines in front", lambda method, target: b"\r\n\r\n" + method + b" " + target + b" HTTP/1.1\r\n", SERVED
    ),
    *(_method(method, frozenset({405})) for method in (b"TRACE", b"PROPFIND", b"MKCOL", b"LOCK", b"PURGE", b"QUERY")),
    *(
        _method(method, REFUSED | {405})
        for method in (b"post", b"patch", b"Post", b"FOO", b"GE T", b"P\x00ST", b"", b"PRI")
    ),
    _extra("method override", b"X-HTTP-Method-Override: DELETE\r\nX-Method-Override: GET\r\n", SERVED),
    _bytes("CONNECT", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n", REFUSED | {405, 404}),
    _bytes("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
    _bytes("HTTP/0.9", b"GET /healthz\r\n\r\n"),
    _bytes("TLS", b"\x16\x03\x01\x00\xf1\x01\x00\x00\xed\x03\x03" + bytes(200)),
    _bytes("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
    _bytes("PROXY line", b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n\r\n"),
    _bytes("an answer", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    _bytes("noise", bytes(range(256)) * 8),
    _bytes("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nHost: profiles.test\r\n\r\n", frozenset({204, 400, 404})),
]

TARGETS = [
    _target("absolute form, another host", lambda p, q: b"http://evil.example" + p + q, SERVED),
    _target("absolute form, user and port", lambda p, q: b"https://a:b@evil.example:1" + p + q, SERVED | REFUSED),
    _target("absolute form without a path", lambda p, q: b"http://evil.example"),
    _target("another scheme", lambda p, q: b"file://" + p + q, SERVED | NOWHERE),
    _target("two slashes in front", lambda p, q: b"/" + p + q),
    _target("two slashes within", lambda p, q: p.replace(b"/v1/", b"/v1//") + q),
    _target("slash behind", lambda p, q: p + b"/" + q),
    _target("capitals", lambda p, q: p.upper() + q),
    _target("parameter", lambda p, q: p + b";x=1" + q),
    _target("dots", lambda p, q: b"/api/v1/../v1/" + p.removeprefix(b"/api/v1/") + q),
    _target("dots, encoded", lambda p, q: b"/api/%2e%2e/api/v1/" + p.removeprefix(b"/api/v1/") + q),
    _target("dots behind", lambda p, q: p + b"/.." + q),
    _target("backslashes", lambda p, q: p.replace(b"/", b"\\") + q),
    _target("slashes, encoded", lambda p, q: b"/api%2fv1%2f" + p.removeprefix(b"/api/v1/") + q, SERVED | NOWHERE),
    _target("blank behind", lambda p, q: p + q + b" ", SERVED | NOWHERE),
    *(
        _target(f"path with {piece!r}", lambda p, q, piece=piece: p + piece + q)  # type: ignore[misc]
        for piece in (
            *(
                b"%00",
                b"%ff",
                b"%",
                b"%zz",
                b"%0d%0aX-A:%20b",
                b"%c0%ae",
                b"%ed%a0%80",
                b"%u0041",
                b"\xff",
                b"\xc3\xa9",
            ),
            *(b"%252e", b"%20", b"\t", b"\x00", b"%3f", b"%23", b"/%00/"),
        )
    ),
    _target("fragment", lambda p, q: p + q + b"#x", SERVED | NOWHERE),
    _target("path of 20 KB", lambda p, q: p + b"a" * 20_000 + q, NOWHERE | {431}),
    _target("path of 300 KB", lambda p, q: p + b"a" * 300_000 + q, NOWHERE | {431}),
    _target("query of 20 KB", lambda p, q: p + (q or b"?") + b"&x=" + b"a" * 20_000, SERVED | {400, 431}),
    _target("query of high bytes", lambda p, q: p + (q or b"?") + b"&x=\xff%ff%00%", SERVED | REFUSED),
    _target("query with 5,000 names", lambda p, q: p + (q or b"?") + b"&x=1" * 5_000, SERVED | {400, 431}),
    _target("query without names", lambda p, q: p + (q or b"?") + b"&&=&;=%3d", SERVED | {400}),
]

HOSTS = [
    _host("twice", b"Host: profiles.test\r\nHost: profiles.test\r\n", REFUSED),
    _host("and another", b"Host: profiles.test\r\nHost: evil.example\r\n", REFUSED),
    _host("missing", b"", REFUSED),
    *(
        _host(repr(value), b"Host: " + value + b"\r\n", SERVED | REFUSED)
        for value in (b"", b"evil.example", b"a b", b"[::1", b"a:b", b"a/b?c#d", b"\xff", b"a@b", b"a" * 2_000, b"a,b")
    ),
    _extra("forwarded", b"X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n", SERVED),
    _extra("rewritten", b"X-Original-URL: /healthz\r\nX-Rewrite-URL: /healthz\r\n", SERVED),
    _extra("forwarded nonsense", b"X-Forwarded-For: \xff, ,,::1\r\nX-Forwarded-Proto: gopher\r\n", SERVED),
]

BEARERS = [
    _auth("of 20 KB", lambda t: b"Authorization: Bearer " + b"a" * 20_000 + b"\r\n", frozenset({431})),
    _auth("of 9 KB", lambda t: b"Authorization: Bearer " + b"a" * 9_000 + b"\r\n"),
    _auth("of 9 KB, padded", lambda t: b"Authorization: Bearer " + t.encode() + b"=" * 9_000 + b"\r\n"),
    _auth("missing", lambda t: b""),
    _auth("empty", lambda t: b"Authorization:\r\n"),
    _auth("twice", lambda t: b"Authorization: Bearer %s\r\n" % t.encode() * 2),
    _auth("and another", lambda t: b"Authorization: Bearer %s\r\nAuthorization: Bearer x\r\n" % t.encode()),
    _auth("after two spaces", lambda t: b"Authorization: Bearer  %s\r\n" % t.encode()),
    _auth("after a tab", lambda t: b"Authorization: Bearer\t%s\r\n" % t.encode()),
    _auth("of high bytes", lambda t: b"Authorization: Bearer \xff\xfe\r\n"),
    _auth("in capitals", lambda t: b"AUTHORIZATION: BEARER %s\r\n" % t.encode(), SERVED),
    _auth("by Basic", lambda t: b"Authorization: Basic " + b"YTpi\r\n"),
    _auth("in other places", lambda t: b"Cookie: access_token=%s\r\nX-Access-Token: %s\r\n" % (t.encode(), t.encode())),
    _extra("headers of 64 KB", b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1_000) for n in range(64)), frozenset({431})),
    _extra("a header of 64 KB", b"X-A: " + b"a" * 64_000 + b"\r\n", frozenset({431})),
    _extra("a header of 600 KB", b"X-A: " + b"a" * 600_000 + b"\r\n", REFUSED | {431}),
    _extra("5,000 headers", b"A: b\r\n" * 5_000, frozenset({431})),
    _extra("101 headers", b"A: b\r\n" * 101, frozenset({431})),
    _extra("80 headers", b"A: b\r\n" * 80, SERVED),
    _extra("a name of 20 KB", b"X" * 20_000 + b": a\r\n", REFUSED | {431}),
]

_UNSUPPORTED = frozenset({415})
_JSON = b"Content-Type: application/json\r\n"
BODIES = [
    _content("of invalid UTF-8", b'{"name": "\xff"}'),
    _content("in UTF-16", '{"name": "x"}'.encode("utf-16")),
    _content("in latin-1", '{"name": "é"}'.encode("latin-1")),
    _content("with a byte order mark", b"\xef\xbb\xbf{}"),
    _content("of 30,000 arrays", b"[" * 30_000 + b"]" * 30_000),
    _content("of 30,000 objects", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    _content("33 deep", b'{"title":' + b"[" * 33 + b"]" * 33 + b"}"),
    *(_content(repr(text), b'{"title": %s}' % text) for text in (b"NaN", b"-Infinity", b"1e400", b"1" * 5_000)),
    _content("with a field twice", b'{"title": "a", "title": "b"}'),
    _content("with a surrogate", b'{"title": "\\ud800"}'),
    *(
        _content(repr(text), text)
        for text in (b"", b" ", b"{", b"[]", b"null", b'"x"', b"{}x", b"{'a': 1}", b"\x00", b"{,}")
    ),
    _content("in gzip", b"\x1f\x8b\x08\x00" + bytes(20)),
    _content("as a form", b"grant_type=password", _UNSUPPORTED, b"Content-Type: application/x-www-form-urlencoded\r\n"),
    _content("as text", b"{}", _UNSUPPORTED, b"Content-Type: text/plain\r\n"),
    _content("without a type", b"{}", _UNSUPPORTED, b""),
    _content("of a type of high bytes", b"{}", _UNSUPPORTED, b"Content-Type: \xff/json\r\n"),
    _content("in an unknown charset", b"{", _UNSUPPORTED, b"Content-Type: application/json; charset=x-\xff\r\n"),
    _content("in gzip, declared", b"{}", _UNSUPPORTED, _JSON + b"Content-Encoding: gzip\r\n"),
    _content("in two codings", b"{}", _UNSUPPORTED, _JSON + b"Content-Encoding: identity, br\r\n"),
    _content("in no coding", b"{", frozenset({400}), _JSON + b"Content-Encoding: identity\r\n"),
    _content("of two types", b"{}", frozenset({400}), _JSON + b"Content-Type: text/plain\r\n"),
    _content("of two types, the other first", b"{}", frozenset({400}), b"Content-Type: text/plain\r\n" + _JSON),
    _content("as multipart", b"--x\r\n\r\n--x--", _UNSUPPORTED, b"Content-Type: multipart/form-data; boundary=x\r\n"),
    Case("body one byte too large", lambda r: message(r, body=b" " * (r.max_body + 1)), frozenset({413}), bodies=True),
    Case(
        "17 MB announced",
        lambda r: message(r, framing=b"Content-Length: 17000000\r\n", body=b"{"),
        frozenset({413}),
        bodies=True,
    ),
    Case(
        "2^63 - 1 announced",
        lambda r: message(r, framing=b"Content-Length: 9223372036854775807\r\n", body=b"{"),
        frozenset({413}),
        bodies=True,
    ),
    replace(_chunks("chunks beyond the limit", lambda _: chunked(b" " * 300_000), frozenset({413})), bodies=True),
    replace(
        _chunks("chunks beyond 1 MB, no end", lambda _: b"100000\r\n%s\r\n" % (b" " * 0x100000) * 2),
        bodies=True,
        allowed=frozenset({413}),
    ),
]

CONNECTIONS = [
    _extra("expects 100", b"Expect: 100-continue\r\n", SERVED),
    _extra("expects something else", b"Expect: 200-ok\r\n", ANSWERED),
    _extra("wants to close", b"Connection: close\r\n", SERVED),
    _extra("names headers in Connection", b"Connection: keep-alive, Authorization, Host\r\n", SERVED),
    _extra("takes trailers", b"TE: trailers\r\n", SERVED),
    *(
        _extra(f"upgrade to {name}", b"Connection: Upgrade\r\nUpgrade: " + name.encode() + b"\r\n", REFUSED)
        for name in ("websocket", "h2c", "TLS/1.0", "x")
    ),
    Case("two at once", lambda r: message(r) * 2, SERVED, answers=2),
    Case("eight at once", lambda r: message(r) * 8, SERVED, answers=8),
    Case("body longer than its length", lambda r: message(r) + b"rest", SERVED, answers=1),
    Case("body longer, a line", lambda r: message(r) + b"{}\r\n\r\n", SERVED, answers=1),
    Case("good one, then noise", lambda r: message(r) + bytes(range(256)), SERVED, answers=1),
    Case("good one, then one without host", lambda r: message(r) + message(r, host=b""), SERVED, answers=2),
]


def _silent(name: str, make: Callable[[Route], bytes], bodies: bool = False) -> Case:
    return Case(name, make, frozenset({CLOSED, 408}), bodies=bodies)


SILENT: list[Case] = [
    _silent("nothing at all", lambda _: b""),
    _silent("empty lines", lambda _: b"\r\n" * 5),
    _silent("half a request line", lambda r: r.method.encode() + b" /api"),
    _silent("half a head", lambda r: message(r)[:60]),
    _silent("a head without its end", lambda r: message(r).partition(b"\r\n\r\n")[0] + b"\r\n"),
    _silent("three bytes of ten", lambda r: message(r, framing=b"Content-Length: 10\r\n", body=b"{  "), bodies=True),
    _silent("none of ten", lambda r: message(r, framing=b"Content-Length: 10\r\n", body=b""), bodies=True),
    _silent(
        "expects 100, sends nothing",
        lambda r: message(r, framing=b"Content-Length: 10\r\nExpect: 100-continue\r\n", body=b""),
        bodies=True,
    ),
    _silent(
        "chunks without end",
        lambda r: message(r, framing=b"Transfer-Encoding: chunked\r\n", body=b"1\r\n{\r\n"),
        bodies=True,
    ),
    _silent(
        "a chunk of 2^64 - 1",
        lambda r: message(r, framing=b"Transfer-Encoding: chunked\r\n", body=b"f" * 16 + b"\r\n{"),
        bodies=True,
    ),
    _silent(
        "half a chunk", lambda r: message(r, framing=b"Transfer-Encoding: chunked\r\n", body=b"5\r\n{"), bodies=True
    ),
]

CASES: list[Case] = [
    *(case for family in (FRAMING, CHUNKS, LINES, REQUEST_LINES, TARGETS) for case in family),
    *(case for family in (HOSTS, BEARERS, BODIES, CONNECTIONS) for case in family),
]


def routes(user: str, service: str, key: dict[str, str], post: str) -> Iterable[Route]:
    """Every POST and PATCH route with a good body."""
    where = "locationId=locations/111"
    credentials = {"client_id": key["client_id"], "client_secret": key["client_secret"]}
    key_body = {"name": "Raw", "business_id": 10, "assigned_location_id": "locations/112"}
    summary = orjson.dumps({"summary": "Raw"})
    yield Route("POST", "/api/v1/developer/credentials", user, orjson.dumps(key_body))
    grant = orjson.dumps({"grant_type": "client_credentials", **credentials})
    yield Route("POST", "/api/v1/auth/token", None, grant, 64 * 1024)
    yield Route("POST", "/api/v1/auth/validate-service-credentials", None, orjson.dumps(credentials), 64 * 1024)
    yield Route("POST", "/api/v1/api-keys/heartbeat", service, orjson.dumps({"wp_version": "6.5"}))
    yield Route("POST", f"/api/v1/posts?{where}", user, summary)
    yield Route("PATCH", f"/api/v1/posts/{post}?{where}", user, summary)
    yield Route("POST", "/api/v1/sync/111", service, orjson.dumps({"title": "Harbour Coffee"}))
    yield Route("PATCH", "/api/v1/external-business/locations/111/sync", user, b'{"syncEnabled": true}')
    yield Route("POST", "/api/v1/external-business/locations/111/refresh-verification", service, None)
