"""`profilesvc simulate`: a program that behaves like the site plugin and prints each step."""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from profilesvc.cli import show
from profilesvc.cli._process.stopping import until_stopped
from profilesvc.cli.receiver import receiver
from profilesvc.domain.problems import counted

if TYPE_CHECKING:
    import httpx

    from profilesvc.client import KeyDeactivated
    from profilesvc.contract.tokens import Token

app = typer.Typer(name="simulate", help="Simulate programs that use the service.", no_args_is_help=True)
Result = TypeVar("Result")
REPORT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
_AGENT = "WordPress/6.8; https://{site}"


app.command()(receiver)


def _url(value: str) -> str:
    from profilesvc.cli.doctor.outside import is_url

    if not is_url(value):
        raise typer.BadParameter("must be a URL such as https://host or http://127.0.0.1:8000")
    return value


@app.command()
def plugin(
    client_id: Annotated[str, typer.Option(prompt="Client id", help="Prompted for if missing.")],
    client_secret: Annotated[
        str, typer.Option(prompt="Client secret", hide_input=True, help="Prompted for if missing.")
    ],
    url: Annotated[str, typer.Option(help="Base URL of the service.", callback=_url)] = "http://127.0.0.1:8000",
    site: Annotated[str, typer.Option(help="Domain of the site on which the plugin runs.")] = "",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between heartbeats.")] = 3600,
    refresh_every: Annotated[float, typer.Option(min=0.1, help="Seconds between refreshes of the token.")] = 86_400,
) -> None:
    """Check the credentials, get a token, sync, send heartbeats and refresh, until Ctrl-C or until the key is revoked.

    While the key is deactivated, retry at each heartbeat and continue once the key is active.
    """
    from profilesvc.client import ProfileError

    with until_stopped():
        simulated = Plugin(url, (client_id.strip(), client_secret.strip()), site)
        try:
            with contextlib.closing(simulated):
                simulated.run(every, refresh_every)
        except (Stopped, ProfileError) as error:
            show.say(f"stopped: {error}")
            raise typer.Exit(1) from None


class Stopped(Exception):
    """The end of the simulation; the message is the reason, for the owner of the site."""


class Plugin:
    """A simulated site plugin. `say` gets a line for each action, and `pause` waits for that many seconds."""

    def __init__(
        self,
        url: str,
        credentials: tuple[str, str],
        site: str = "",
        say: Callable[[str], None] = show.say,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        from profilesvc.client import ProfileClient

        self._url, self._credentials = url, credentials
        self._site = site
        self._say, self._pause = say, pause
        self._anonymous = ProfileClient.anonymous(url)
        self._client: Any = None
        self._token: Any = None
        self._deactivation = ""  # the reason that was last printed

    def run(self, every: float, refresh_every: float, beats: int | None = None) -> None:
        """Run for this many heartbeats, or forever.

        Raises:
            Stopped: The credentials are permanently invalid.
            ProfileError: An unexpected failure.
        """
        location = self._when_active(self._validate, every)
        self._when_active(self._grant, every)
        self._when_active(lambda: self._sync(location), every)
        since = 0.0
        while beats is None or beats > 0:
            self._succeeds(self._heartbeat)
            beats = None if beats is None else beats - 1
            self._pause(every)
            since += every
            if since >= refresh_every and self._succeeds(self._refresh):
                since = 0.0

    def close(self) -> None:
        """Close the connections."""
        for client in (self._anonymous, self._client):
            if client is not None:
                client.close()

    def _when_active(self, action: Callable[[], Result], every: float) -> Result:
        """Run a first step. While the key is deactivated, retry it at the time of each heartbeat."""
        from profilesvc.client import KeyDeactivated

        while True:
            try:
                return self._unless_revoked(action)
            except KeyDeactivated as error:
                self._report_deactivation(error)
                self._pause(every)

    def _unless_revoked(self, action: Callable[[], Result]) -> Result:
        """Run an action. Rejected credentials end the simulation."""
        from profilesvc.client import InvalidToken

        try:
            return action()
        except InvalidToken:
            raise Stopped("the key was revoked or its secret was replaced; enter new credentials") from None

    def _succeeds(self, action: Callable[[], None]) -> bool:
        """Run an action, with a new token if the old one is rejected.

        Return False if the service is not available or the key is deactivated. The next heartbeat is the next attempt.
        """
        from profilesvc.client import InvalidToken, KeyDeactivated, RateLimited, ServiceUnavailable, TransportFailed

        def send() -> None:
            try:
                action()
            except InvalidToken as error:
                self._say(f"token: rejected ({error.reason}), requesting a new one")
                self._grant()
                action()

        try:
            self._unless_revoked(send)
        except KeyDeactivated as error:
            self._report_deactivation(error)
            return False
        except (TransportFailed, ServiceUnavailable, RateLimited) as error:
            self._say(f"waiting: {error}")
            return False
        return True

    def _report_deactivation(self, error: "KeyDeactivated") -> None:
        """Print why the key is deactivated, once per reason."""
        reason = error.deactivation_reason.replace("_", " ")
        if reason != self._deactivation:
            self._deactivation = reason
            self._say(f"paused: the key is deactivated ({reason}); see {error.upgrade_url}")

    def _done(self, line: str) -> None:
        """Print a success, and before it that the key is active again."""
        if self._deactivation:
            self._deactivation = ""
            self._say("resumed: the key is active again")
        self._say(line)

    def _validate(self) -> str:
        checked = self._anonymous.validate_credentials(*self._credentials, self._site or None)
        if not checked.valid:
            raise Stopped(f"the credentials are rejected ({checked.reason.replace('_', ' ')})")
        features = ", ".join(name for name, included in checked.capabilities.model_dump().items() if included)
        self._done(
            f"validate: {checked.location.name} ({checked.location.id}), plan {checked.plan_display_name}: {features}"
        )
        return str(checked.location.id)

    def _grant(self) -> None:
        from profilesvc.client import operations

        self._use(self._anonymous.run(operations.client_credentials(*self._credentials)))
        self._done(f"token: granted, valid for {self._token.expires_in} seconds")

    def _refresh(self) -> None:
        from profilesvc.client import operations

        self._use(self._anonymous.run(operations.refresh(self._token.refresh_token)))
        self._done("refresh: a new pair of tokens")

    def _use(self, token: "Token") -> None:
        import httpx

        from profilesvc.client import ProfileClient

        if self._client is not None:
            self._client.close()
        transport = httpx.HTTPTransport()
        if self._site:
            transport = _with_agent(transport, _AGENT.format(site=self._site))
        self._token, self._client = token, ProfileClient.user(self._url, token.access_token, transport=transport)

    def _heartbeat(self) -> None:
        received = self._client.heartbeat(**REPORT)
        self._done(f"heartbeat: received, the next one is expected in {received.next_heartbeat_in} seconds")

    def _sync(self, location: str) -> None:
        """Send the site's profile. If the provider or the settings reject it, the simulation continues."""
        from profilesvc.client import LocationNotVerified, PlanRestriction, ProviderFailed, RateLimited, SyncDisabled

        current = self._client.location(location).model_dump(exclude_none=True)
        profile = {name: current[name] for name in ("title", "phoneNumbers") if name in current}
        try:
            done = self._client.sync(location, profile)
            self._done(f"sync: {done.status}, {counted(len(done.fieldsUpdated), 'field')} changed at the provider")
        except (LocationNotVerified, PlanRestriction, ProviderFailed, RateLimited, SyncDisabled) as error:
            self._say(f"sync: skipped: {error.message}")


def _with_agent(transport: "httpx.HTTPTransport", agent: str) -> "httpx.HTTPTransport":
    """Make a transport send the User-Agent of a site."""
    send = transport.handle_request

    def handle_request(request: "httpx.Request") -> "httpx.Response":
        request.headers["User-Agent"] = agent
        return send(request)

    transport.handle_request = handle_request  # type: ignore[method-assign]
    return transport
