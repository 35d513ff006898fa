"""The lab: the real service in reach of a notebook, embedded or deployed, with a client for each caller."""

import atexit
import difflib
import ssl
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

import httpx

from profilesvc.client import SyncOptions
from profilesvc.domain.world import iso
from profilesvc.lab.attached import Attached
from profilesvc.lab.clients import Clients, frozen_time, members_of
from profilesvc.lab.embedded import Embedded
from profilesvc.lab.guard import NeedsControl
from profilesvc.lab.operator import EMAILS, OperatorControl
from profilesvc.lab.provider import ProviderControl
from profilesvc.lab.record import Call, LabClosed, Recording, code_of
from profilesvc.server.loopback import spare_loopback
from profilesvc.settings import LabSettings, Settings, load

_TIMEOUT_SECONDS = 30


class LabClient(httpx.Client):
    """httpx's client, with a name for its repr, because an address in memory differs from run to run."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        self.name = name

    def __repr__(self) -> str:
        return f"<client of {self.name}>"


def _sentence(what: str) -> str:
    return f"Skipped here: this needs control of {what}, which a deployed service does not give."


class Lab:
    """What a notebook works with; `open_lab` makes it, `close` (or the end of the process) takes it away."""

    def __init__(self, target: LabSettings, embedded: Embedded | None) -> None:
        self._embedded, self._target = embedded, target
        self._calls: list[Call] = []
        self._provider_calls: list[dict[str, Any]] = []
        self._opened: list[httpx.BaseTransport] = []
        self._attached: Attached | None = None
        self._closed = self.in_block = False
        self.url = target.target.rstrip("/") if embedded is None else embedded.url
        # Reading the certificates takes longer than a call, and only TLS needs them.
        secure = self.url.startswith("https")
        self._tls = httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if embedded is None:
            self._attached = Attached(target)
        self.provider = ProviderControl(self._control, self._asked)
        self.operator = OperatorControl(lambda: self._controlled("the operator's commands"), self._asked)
        clock = None if embedded is None else embedded.clock
        time: SyncOptions = {} if clock is None else frozen_time(clock.now, clock.advance)
        self.client = Clients(self.url, self.transport, self.user_token, time)
        self.anonymous = self.connect("anonymous")
        atexit.register(self.close)

    def __repr__(self) -> str:
        return "<lab: embedded service>" if self.embedded else "<lab: deployed service>"

    # Where things are.

    @property
    def embedded(self) -> bool:
        """Whether clock and provider are ours to move."""
        return self._embedded is not None

    @property
    def location(self) -> str:
        """The location of the pages: Harbour Coffee, Pier; on a deployed service the one that was named."""
        return "locations/111" if self.embedded else f"locations/{self._target.location.removeprefix('locations/')}"

    @property
    def business_id(self) -> int:
        """The business that the location belongs to."""
        return 10 if self._attached is None else self._attached.business_id

    @property
    def time(self) -> str:
        """The service's time; frozen when it is embedded."""
        return iso(
            round(datetime.now(UTC).timestamp() * 1000) if self._embedded is None else self._embedded.clock.now()
        )

    @property
    def dashboard(self) -> str:
        """Where a browser finds the dashboard; in the embedded service sign in as anyone, without a password."""
        return f"{self.url}/dashboard" if self._embedded is None else self._controlled("the dashboard").dashboard()

    @property
    def logs(self) -> list[str]:
        """What the embedded server logged."""
        return [] if self._embedded is None else self._embedded.logs

    @property
    def waited(self) -> float:
        """Seconds spent waiting for the rate limits of a deployed service."""
        return 0.0 if self._attached is None else self._attached.waited

    # Who calls.

    def connect(self, name: str, token: str | None = None) -> LabClient:
        """A client of the service; with a token, a caller of that name."""
        return LabClient(
            name,
            base_url=self.url,
            headers={} if token is None else _bearer(token),
            transport=self.transport(name),
            timeout=_TIMEOUT_SECONDS,
        )

    def transport(self, name: str) -> httpx.BaseTransport:
        """Connections whose calls are recorded under a name; the lab closes them. LabClosed."""
        self._require_open()
        plain: httpx.BaseTransport = httpx.HTTPTransport(verify=self._tls)
        if self._attached is not None:
            plain = self._attached.transport(plain)
        made = Recording(plain, name, self._note)
        self._opened.append(made)
        return made

    def _require_open(self) -> None:
        if self._closed:
            raise LabClosed

    def user_token(self, name: str) -> str:
        """A user token of `alice`, `bob` or `carol`; on a deployed service Alice is the user of the given token."""
        self._require_open()
        if self._embedded is not None:
            return self._embedded.user_token(EMAILS.get(name, name))
        if name != "alice":
            raise NeedsControl(_sentence("a second user"))
        return self._target.user_token.get_secret_value()

    def id_token(self, name: str, nonce: str | None = None, audience: str | None = None) -> str:
        """What the bundled identity provider vouches with that `alice`, `bob` or `carol` has just signed in.

        `audience` is the application that the login was for, by default this service's dashboard.
        """
        return self._controlled("the identity provider").id_token(EMAILS.get(name, name), nonce, audience)

    def user(self, name: str) -> LabClient:
        """A client with the user's token."""
        return self.connect(name.capitalize(), self.user_token(name))

    def service(self, key: Any, permissions: list[str] | None = None) -> LabClient:
        """A client with a token granted to a key: what the creation answered, as a dict or as a model."""
        members = members_of(key)
        grant = {"grant_type": "client_credentials", "permissions": permissions or []}
        grant |= {name: members[name] for name in ("client_id", "client_secret")}
        name = str(members.get("name", "service"))
        answer = self.connect(name).post("/api/v1/auth/token", json=grant)
        if answer.is_error:
            raise ValueError(f"no token for {members['client_id']}: {code_of(answer)}")
        return self.connect(name, answer.json()["data"]["access_token"])

    # What only the embedded service lets a page do.

    def controls(self, what: str) -> bool:
        """For `if lab.controls("the clock"):` True when embedded; otherwise says in a sentence what is skipped."""
        if not self.embedded:
            print(_sentence(what))
        return self.embedded

    def _controlled(self, what: str) -> Embedded:
        self._require_open()
        if self._embedded is None:
            raise NeedsControl(_sentence(what))
        return self._embedded

    def advance(self, **duration: float) -> str:
        """Move the clock on (`hours=3`); returns the new time."""
        return iso(self._controlled("the clock").clock.advance(**duration))

    def fault(self, kind: str, **members: Any) -> None:
        """Let the next calls to the provider go wrong; see ProviderControl.fault."""
        self.provider.fault(kind, **members)

    def _control(self, method: str, path: str, body: object) -> Any:
        return self._controlled("the provider").control(method, path, body)

    # What was done.

    def _note(self, caller: str, request: httpx.Request, response: httpx.Response) -> None:
        before = len(self._provider_calls)
        if self._embedded is not None:
            self._embedded.settle()
        inner = self._asked()[before:]
        asked = tuple(f"{call['method']} {call['path']} {call['status']}" for call in inner)
        path = request.url.path
        self._calls.append(Call(caller, request.method, path, response.status_code, code_of(response), asked))

    def _asked(self) -> list[dict[str, Any]]:
        """The calls to the provider so far, also those of the operator's commands."""
        if self._embedded is not None:
            self._provider_calls += self._embedded.provider_calls()
        return list(self._provider_calls)

    def calls(self) -> list[Call]:
        """Every call so far, oldest first."""
        return list(self._calls)

    def summary(self) -> dict[str, list[str]]:
        """Which calls were made and which error codes were met; stored with each page by `make notebooks-update`."""
        return {
            "calls": sorted({call.line for call in self._calls}),
            "codes": sorted({call.code for call in self._calls if call.code}),
        }

    def close(self) -> None:
        """Take everything away; harmless when it is done. RuntimeError names what a deployed service kept."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        for opened in self._opened:
            opened.close()
        problems = [] if self._attached is None else self._attached.close()
        if self._embedded is not None:
            self._embedded.close()
        if problems:
            raise RuntimeError("; ".join(problems))

    def __enter__(self) -> Self:
        self.in_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def open_lab(
    *, posts_a_month: int | None = None, provider_elsewhere: bool = False, beside: bool = False, **settings: Any
) -> Lab:
    """Start the service inside this process, or reach the deployed one that PROFILESVC_LAB__TARGET names.

    `posts_a_month` lowers every plan's quota so that a page can reach it; with `provider_elsewhere` the emulator is a
    server of its own and no location is imported yet, as on a fresh deployment; other arguments are settings
    (`limits={"enabled": False}`). All are for the embedded service only. TypeError for an unknown one. A lab that is
    still open is closed first, so that a page can be run again from its first cell; not with `beside`, and not while
    that lab is in a `with` block of its own.
    """
    _refuse_unknown(settings)
    spare_loopback()
    target = load().lab
    if not beside:
        _close_earlier(embedded=not target.target)
    lab = Lab(target, None if target.target else Embedded(posts_a_month, provider_elsewhere, settings))
    if not beside:
        _latest[lab.embedded] = lab
    return lab


# The last lab of each kind, so that a first cell that is run again leaves no server behind.
_latest: WeakValueDictionary[bool, Lab] = WeakValueDictionary()


def _close_earlier(*, embedded: bool) -> None:
    earlier = _latest.get(embedded)
    if earlier is not None and not earlier.in_block:
        earlier.close()


def _refuse_unknown(settings: dict[str, Any]) -> None:
    """Raise TypeError for an argument, or a field of a group, that is not a setting and would have no effect."""
    fields = Settings.model_fields
    for name, value in settings.items():
        _require_known(name, [*fields, "posts_a_month", "provider_elsewhere", "beside"])
        members = getattr(type(fields[name].default), "model_fields", None)
        if members is not None and isinstance(value, dict):
            for member in value:
                _require_known(f"{name}.{member}", [f"{name}.{known}" for known in members])


def _require_known(name: str, known: list[str]) -> None:
    if name not in known:
        (nearest,) = difflib.get_close_matches(name, known, n=1, cutoff=0)
        raise TypeError(f"open_lab() has no setting {name!r}; did you mean {nearest!r}?")
