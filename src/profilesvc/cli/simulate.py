"""`profilesvc simulate plugin`: a program that behaves as the site plugin does, and says what it does."""

import contextlib
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from profilesvc.cli.stopping import until_stopped

app = typer.Typer(name="simulate", help="Programs that stand in for others.", no_args_is_help=True)
Result = TypeVar("Result")
REPORT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
_AGENT = "WordPress/6.8; https://{site}"


@app.callback()
def simulate() -> None:
    """Keeps `plugin` a command of its own name."""


@app.command()
def plugin(
    client_id: Annotated[str, typer.Option(prompt="Client id", help="Asked for when it is left out.")],
    client_secret: Annotated[
        str, typer.Option(prompt="Client secret", hide_input=True, help="Asked for when it is left out.")
    ],
    url: Annotated[str, typer.Option(help="Where the service is.")] = "http://127.0.0.1:8000",
    site: Annotated[str, typer.Option(help="The domain of the site that it runs on.")] = "",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between heartbeats.")] = 3600,
    refresh_every: Annotated[float, typer.Option(min=0.1, help="Seconds between refreshes of the token.")] = 86_400,
) -> None:
    """Check the credentials, get a token, send heartbeats, sync, refresh; until Ctrl-C or until the key ends."""
    from profilesvc.client import ProfileError

    with until_stopped():
        simulated = Plugin(url, (client_id.strip(), client_secret.strip()), site)
        try:
            with contextlib.closing(simulated):
                simulated.run(every, refresh_every)
        except Stopped as stopped:
            typer.echo(f"stopped: {stopped}")
            raise typer.Exit(1) from None
        except ProfileError as error:
            typer.echo(f"stopped: {error}")
            raise typer.Exit(1) from None


class Stopped(Exception):
    """The plugin can do nothing more; the message says why, for the owner of the site."""


class Plugin:
    """One site plugin; `say` is told each action in a line, `pause` waits for so many seconds."""

    def __init__(
        self,
        url: str,
        credentials: tuple[str, str],
        site: str = "",
        say: Callable[[str], None] = typer.echo,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        from profilesvc.client import ProfileClient

        self._url, self._credentials, self._site = url, credentials, site
        self._say, self._pause = say, pause
        self._nobody = ProfileClient.anonymous(url)
        self._me: Any = None
        self._token: Any = None

    def run(self, every: float, refresh_every: float, beats: int | None = None) -> None:
        """Go on for so many heartbeats, or for ever. Stopped; ProfileError for what no plugin expects."""
        location = self._told(self._validate)
        self._told(self._grant)
        self._told(lambda: self._sync(location))
        since = 0.0
        while beats is None or beats > 0:
            self._working(self._heartbeat)
            beats = None if beats is None else beats - 1
            self._pause(every)
            since += every
            if since >= refresh_every:
                self._working(self._refresh)
                since = 0.0

    def close(self) -> None:
        """Close the connections."""
        for client in (self._nobody, self._me):
            if client is not None:
                client.close()

    def _told(self, action: Callable[[], Result]) -> Result:
        """An action whose refusals end the plugin."""
        from profilesvc.client import InvalidToken, KeyDeactivated

        try:
            return action()
        except KeyDeactivated as error:
            why = error.deactivation_reason.replace("_", " ")
            raise Stopped(f"the key was deactivated ({why}); see {error.upgrade_url}") from None
        except InvalidToken:
            raise Stopped("the key was revoked, or its secret replaced; paste new credentials") from None

    def _working(self, action: Callable[[], None]) -> None:
        """An action that waits for a service that is away, and gets a new token once when its own has ended."""
        from profilesvc.client import InvalidToken, RateLimited, ServiceUnavailable, TransportFailed

        def attempt() -> None:
            try:
                action()
            except InvalidToken as error:
                self._say(f"token: refused ({error.reason}), asking for a new one")
                self._grant()
                action()

        try:
            self._told(attempt)
        except (TransportFailed, ServiceUnavailable, RateLimited) as error:
            self._say(f"waiting: {error}")

    def _validate(self) -> str:
        checked: Any = self._nobody.validate_credentials(*self._credentials, self._site or None)
        if not checked.valid:
            raise Stopped(f"the credentials are refused ({checked.reason.replace('_', ' ')})")
        can = ", ".join(name for name, included in checked.capabilities.model_dump().items() if included)
        self._say(f"validate: {checked.location.name} ({checked.location.id}), plan {checked.plan_display_name}: {can}")
        return str(checked.location.id)

    def _grant(self) -> None:
        from profilesvc.client import operations

        self._use(self._nobody.run(operations.client_credentials(*self._credentials)))
        self._say(f"token: granted, good for {self._token.expires_in} seconds")

    def _refresh(self) -> None:
        from profilesvc.client import operations

        self._use(self._nobody.run(operations.refresh(self._token.refresh_token)))
        self._say("refresh: a new pair of tokens")

    def _use(self, token: Any) -> None:
        import httpx

        from profilesvc.client import ProfileClient

        if self._me is not None:
            self._me.close()
        transport = httpx.HTTPTransport()
        if self._site:
            transport = _named(transport, _AGENT.format(site=self._site))
        self._token, self._me = token, ProfileClient.user(self._url, token.access_token, transport=transport)

    def _heartbeat(self) -> None:
        received = self._me.heartbeat(**REPORT)
        self._say(f"heartbeat: received, the next one is expected in {received.next_heartbeat_in} seconds")

    def _sync(self, location: str) -> None:
        """Send what the site knows of its profile; a site whose sync is off goes on all the same."""
        from profilesvc.client import LocationNotVerified, PlanRestriction, ProviderFailed, RateLimited, SyncDisabled

        found = self._me.location(location).model_dump(exclude_none=True)
        profile = {name: found[name] for name in ("title", "phoneNumbers") if name in found}
        try:
            done = self._me.sync(location, profile)
            self._say(f"sync: {done.status}, {len(done.fieldsUpdated)} fields changed at the provider")
        except (LocationNotVerified, PlanRestriction, ProviderFailed, RateLimited, SyncDisabled) as error:
            self._say(f"sync: not now: {error.message}")


def _named(transport: Any, agent: str) -> Any:
    """The transport, sending the User-Agent of a site."""
    send = transport.handle_request

    def handle_request(request: Any) -> Any:
        request.headers["User-Agent"] = agent
        return send(request)

    transport.handle_request = handle_request
    return transport
