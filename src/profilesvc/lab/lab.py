"""The lab: the service for a notebook, embedded or deployed, with a client for each caller."""

import atexit
import difflib
import ssl
from functools import partial
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

import httpx

from profilesvc.client import SyncOptions
from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import SystemClock, iso
from profilesvc.lab.clients import Clients, fields_of, frozen_time
from profilesvc.lab.deployed.attached import Attached, location_of, target_of
from profilesvc.lab.deployed.safeguard import NeedsControl
from profilesvc.lab.embedded import Embedded
from profilesvc.lab.operator import EMAILS, OperatorControl
from profilesvc.lab.provider import ProviderControl
from profilesvc.lab.views.plots import Plots
from profilesvc.lab.views.record import Call, LabClosed, Note, Recording, code_of
from profilesvc.lab.views.traffic import Traffic
from profilesvc.server.loopback import exempt_loopback
from profilesvc.settings import LabSettings, Settings, load


class LabClient(httpx.Client):
    """An httpx client with a name in its repr, because the default repr differs from run to run."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        self.name = name

    def __repr__(self) -> str:
        return f"<client of {self.name}>"


def _sentence(what: str) -> str:
    return f"Skipped here: this needs control of {what}, which a deployed service does not allow."


class Lab(Plots):
    """The service of a notebook. `open_lab` opens it; `close` or the end of the process closes it."""

    def __init__(self, target: LabSettings, embedded: Embedded | None) -> None:
        self._embedded, self._target = embedded, target
        self._calls: list[Call] = []
        self._provider_calls: list[JsonObject] = []
        self._opened: list[httpx.BaseTransport] = []
        self._attached: Attached | None = None
        self._closed = self.in_block = False
        self.url = target_of(target) if embedded is None else embedded.url
        # Only TLS needs the certificates, which take longer to load than a call.
        secure = self.url.startswith("https")
        self._tls = httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if embedded is None:
            self._attached = Attached(target)
        self.provider = ProviderControl(self._control, self._all_provider_calls)
        self.operator = OperatorControl(lambda: self._controlled("the operator's commands"), self._all_provider_calls)
        clock = None if embedded is None else embedded.clock
        time: SyncOptions = {} if clock is None else frozen_time(clock.now, clock.advance)
        self._traffic = Traffic()
        self.client = Clients(self.url, self._noted_transport, self.user_token, time)
        self.anonymous = self.connect("anonymous")
        atexit.register(self.close)

    def __repr__(self) -> str:
        return "<lab: embedded service>" if self.embedded else "<lab: deployed service>"

    # State.

    @property
    def embedded(self) -> bool:
        """Return whether the service is embedded, so that the notebook controls its clock and provider."""
        return self._embedded is not None

    @property
    def location(self) -> str:
        """The location of the notebooks: Harbour Coffee, Pier, or the configured one of a deployed service."""
        return "locations/111" if self.embedded else location_of(self._target)

    @property
    def business_id(self) -> int:
        """The id of the location's business."""
        return 10 if self._attached is None else self._attached.business_id

    @property
    def time(self) -> str:
        """The service's time. It is frozen in the embedded service."""
        return iso(SystemClock().now() if self._embedded is None else self._embedded.clock.now())

    @property
    def dashboard(self) -> str:
        """The address of the dashboard. In the embedded service, anyone signs in without a password."""
        return f"{self.url}/dashboard" if self._embedded is None else self._controlled("the dashboard").dashboard()

    @property
    def logs(self) -> list[str]:
        """The lines that the embedded server logged."""
        return [] if self._embedded is None else self._embedded.logs

    @property
    def waited(self) -> float:
        """The seconds spent waiting for the rate limits of a deployed service."""
        return 0.0 if self._attached is None else self._attached.waited

    # Clients.

    def connect(self, name: str, token: str | None = None) -> LabClient:
        """Return a client of the service with this name, and with the token if there is one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return LabClient(name, base_url=self.url, headers=headers, transport=self.transport(name), timeout=30)

    def transport(self, name: str, *notes: Note) -> httpx.BaseTransport:
        """Return connections whose calls are recorded under a name, and passed to `notes`. The lab closes them.

        Raises:
            LabClosed: The lab is closed.
        """
        self._require_open()
        plain: httpx.BaseTransport = httpx.HTTPTransport(verify=self._tls)
        if self._attached is not None:
            plain = self._attached.transport(plain)
        recording = Recording(plain, partial(self._record, name), *notes)
        self._opened.append(recording)
        return recording

    def _noted_transport(self, name: str) -> httpx.BaseTransport:
        return self.transport(name, self._traffic.note)

    def _require_open(self) -> None:
        if self._closed:
            raise LabClosed

    def user_token(self, name: str) -> str:
        """Return a user token of `alice`, `bob` or `carol`. On a deployed service, Alice has the configured token."""
        self._require_open()
        if self._embedded is not None:
            return self._embedded.user_token(EMAILS.get(name, name))
        if name != "alice":
            raise NeedsControl(_sentence("a second user"))
        return self._target.user_token.get_secret_value()

    def id_token(self, name: str, nonce: str | None = None, audience: str | None = None) -> str:
        """Return an ID token of the bundled identity provider for `alice`, `bob` or `carol`.

        `audience` is the application of the login, by default this service's dashboard.
        """
        return self._controlled("the identity provider").id_token(EMAILS.get(name, name), nonce, audience)

    def user(self, name: str) -> LabClient:
        """Return a client with the user's token."""
        return self.connect(name.capitalize(), self.user_token(name))

    def service(self, key: object, permissions: list[str] | None = None) -> LabClient:
        """Return a client with a token of a key. `key` is the response to its creation, as a dict or a model."""
        fields = fields_of(key)
        grant = {"grant_type": "client_credentials", "permissions": permissions or []}
        grant |= {name: fields[name] for name in ("client_id", "client_secret")}
        name = str(fields.get("name", "service"))
        response = self.connect(name).post("/api/v1/auth/token", json=grant)
        if response.is_error:
            raise ValueError(f"no token for {fields['client_id']}: {code_of(response)}")
        return self.connect(name, response.json()["data"]["access_token"])

    # Control of the embedded service.

    def _controlled(self, what: str) -> Embedded:
        self._require_open()
        if self._embedded is None:
            raise NeedsControl(_sentence(what))
        return self._embedded

    def advance(self, **duration: float) -> str:
        """Advance the clock (`hours=3`) and return the new time."""
        return iso(self._controlled("the clock").clock.advance(**duration))

    def fault(self, kind: str, **fields: Any) -> None:
        """Make the next calls to the provider fail; see ProviderControl.fault."""
        self.provider.fault(kind, **fields)

    def _control(self, method: str, path: str, body: object) -> Any:
        return self._controlled("the provider").control(method, path, body)

    # Recorded calls.

    def _record(self, caller: str, response: httpx.Response) -> None:
        before, request = len(self._provider_calls), response.request
        if self._embedded is not None:
            self._embedded.settle()
        calls = self._all_provider_calls()[before:]
        lines = tuple(f"{call['method']} {call['path']} {call['status']}" for call in calls)
        path = request.url.raw_path.decode().partition("?")[0]
        self._calls.append(Call(caller, request.method, path, response.status_code, code_of(response), lines))

    def _all_provider_calls(self) -> list[JsonObject]:
        """Return all calls to the provider, including those of operator's commands."""
        if self._embedded is not None:
            self._provider_calls += self._embedded.provider_calls()
        return list(self._provider_calls)

    def calls(self) -> list[Call]:
        """Return all calls, oldest first."""
        return list(self._calls)

    def summary(self) -> dict[str, list[str]]:
        """Return the calls and error codes, which `make notebooks-update` stores with each notebook."""
        return {
            "calls": sorted({call.line for call in self._calls}),
            "codes": sorted({call.code for call in self._calls if call.code}),
        }

    def close(self) -> None:
        """Stop the embedded service, or undo the changes to a deployed one. Repeating it has no effect.

        Raises:
            RuntimeError: Changes to a deployed service are left; the message names them.
        """
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._traffic.close()
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


def open_lab(
    *, posts_a_month: int | None = None, separate_provider: bool = False, keep_open: bool = False, **settings: object
) -> Lab:
    """Start the service inside this process, or use the deployed one at PROFILESVC_LAB__TARGET.

    `posts_a_month` lowers the quota of all plans. With `separate_provider` the emulator is a separate server and no
    location is imported yet, as in a new deployment. Other arguments are settings (`limits={"enabled": False}`). All of
    them affect only the embedded service. An earlier lab is closed, so that a notebook can run again from its first
    cell, unless `keep_open` is set or that lab is in its own `with` block.

    Raises:
        TypeError: An argument is not a setting.
    """
    _reject_unknown(settings)
    exempt_loopback()
    target = load().lab
    earlier = None if keep_open else _latest.get(not target.target)
    if earlier is not None and not earlier.in_block:
        earlier.close()
    lab = Lab(target, None if target.target else Embedded(posts_a_month, separate_provider, settings))
    if not keep_open:
        _latest[lab.embedded] = lab
    return lab


# The last lab of each kind. The first cell of a notebook closes it when it runs again.
_latest: WeakValueDictionary[bool, Lab] = WeakValueDictionary()


def _reject_unknown(settings: JsonObject) -> None:
    """Reject an argument or a field of a group that is not a setting, because it would have no effect."""
    fields = Settings.model_fields
    for name, value in settings.items():
        _require_setting(name, [*fields, "posts_a_month", "separate_provider", "keep_open"])
        group = getattr(type(fields[name].default), "model_fields", None)
        if group is not None and isinstance(value, dict):
            for nested in value:
                _require_setting(f"{name}.{nested}", [f"{name}.{field}" for field in group])


def _require_setting(name: str, settings: list[str]) -> None:
    if name not in settings:
        (similar,) = difflib.get_close_matches(name, settings, n=1, cutoff=0)
        raise TypeError(f"open_lab() has no setting {name!r}. Did you mean {similar!r}?")
