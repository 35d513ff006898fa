"""`profilesvc simulate plugin`: a program that behaves as the site plugin does, and says what it does."""

import contextlib
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from profilesvc.cli._process.stopping import until_stopped

app = typer.Typer(name="simulate", help="Simulate programs that use the service.", no_args_is_help=True)
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
    """Check the credentials, get a token, sync, send heartbeats, refresh; until Ctrl-C or until the key is revoked.

    While the key is deactivated it asks again at each heartbeat, and goes on once the key is active.
    """
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
    """One site plugin; `say` gets a line for each action, `pause` waits for that many seconds."""

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
        self._held = ""  # why the key is deactivated, as it was last said

    def run(self, every: float, refresh_every: float, beats: int | None = None) -> None:
        """Go on for this many heartbeats, or forever.

        Raises:
            Stopped: the credentials are refused for good.
            ProfileError: a failure that no plugin expects.
        """
        location = self._when_active(self._validate, every)
        self._when_active(self._grant, every)
        self._when_active(lambda: self._sync(location), every)
        since = 0.0
        while beats is None or beats > 0:
            self._working(self._heartbeat)
            beats = None if beats is None else beats - 1
            self._pause(every)
            since += every
            if since >= refresh_every and self._working(self._refresh):
                since = 0.0

    def close(self) -> None:
        """Close the connections."""
        for client in (self._nobody, self._me):
            if client is not None:
                client.close()

    def _when_active(self, action: Callable[[], Result], every: float) -> Result:
        """Run a step of the start; while the key is deactivated, ask again at each heartbeat's time."""
        from profilesvc.client import KeyDeactivated

        while True:
            try:
                return self._with_good_credentials(action)
            except KeyDeactivated as error:
                self._hold(error)
                self._pause(every)

    def _with_good_credentials(self, action: Callable[[], Result]) -> Result:
        """Run an action; refused credentials end the plugin."""
        from profilesvc.client import InvalidToken

        try:
            return action()
        except InvalidToken:
            raise Stopped("the key was revoked, or its secret replaced; paste new credentials") from None

    def _working(self, action: Callable[[], None]) -> bool:
        """Run an action, with a new token if the old one is refused; False if it has to be done later.

        Later is when the service is back, or when the key is active again: it is never asked in a loop.
        """
        from profilesvc.client import InvalidToken, KeyDeactivated, RateLimited, ServiceUnavailable, TransportFailed

        def attempt() -> None:
            try:
                action()
            except InvalidToken as error:
                self._say(f"token: refused ({error.reason}), asking for a new one")
                self._grant()
                action()

        try:
            self._with_good_credentials(attempt)
        except KeyDeactivated as error:
            self._hold(error)
            return False
        except (TransportFailed, ServiceUnavailable, RateLimited) as error:
            self._say(f"waiting: {error}")
            return False
        return True

    def _hold(self, error: Any) -> None:
        """Say why the key is deactivated, once for each reason."""
        why = error.deactivation_reason.replace("_", " ")
        if why != self._held:
            self._held = why
            self._say(f"paused: the key is deactivated ({why}); see {error.upgrade_url}")

    def _done(self, line: str) -> None:
        """Say what succeeded, and before it that the key is active again."""
        if self._held:
            self._held = ""
            self._say("resumed: the key is active again")
        self._say(line)

    def _validate(self) -> str:
        checked: Any = self._nobody.validate_credentials(*self._credentials, self._site or None)
        if not checked.valid:
            raise Stopped(f"the credentials are refused ({checked.reason.replace('_', ' ')})")
        can = ", ".join(name for name, included in checked.capabilities.model_dump().items() if included)
        self._done(
            f"validate: {checked.location.name} ({checked.location.id}), plan {checked.plan_display_name}: {can}"
        )
        return str(checked.location.id)

    def _grant(self) -> None:
        from profilesvc.client import operations

        self._use(self._nobody.run(operations.client_credentials(*self._credentials)))
        self._done(f"token: granted, good for {self._token.expires_in} seconds")

    def _refresh(self) -> None:
        from profilesvc.client import operations

        self._use(self._nobody.run(operations.refresh(self._token.refresh_token)))
        self._done("refresh: a new pair of tokens")

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
        self._done(f"heartbeat: received, the next one is expected in {received.next_heartbeat_in} seconds")

    def _sync(self, location: str) -> None:
        """Send what the site knows of its profile; a site whose sync is off goes on all the same."""
        from profilesvc.client import LocationNotVerified, PlanRestriction, ProviderFailed, RateLimited, SyncDisabled

        found = self._me.location(location).model_dump(exclude_none=True)
        profile = {name: found[name] for name in ("title", "phoneNumbers") if name in found}
        try:
            done = self._me.sync(location, profile)
            self._done(f"sync: {done.status}, {len(done.fieldsUpdated)} fields changed at the provider")
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
