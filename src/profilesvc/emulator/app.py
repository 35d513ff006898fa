"""The provider as a Quart app: one origin for all its APIs, and the steps of every call."""

from collections.abc import AsyncGenerator
from pathlib import Path

from quart import Quart, Response, ResponseReturnValue, g, request
from quart.json import loads
from sqlmodel import col, select
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter

from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.time import Clock, iso
from profilesvc.emulator.access import ControlAccess
from profilesvc.emulator.accounts import accounts
from profilesvc.emulator.attributes import attributes
from profilesvc.emulator.categories import categories
from profilesvc.emulator.consent import consent, digest_of, require_scope
from profilesvc.emulator.control import control
from profilesvc.emulator.errors import ApiError
from profilesvc.emulator.locations import locations
from profilesvc.emulator.notifications import notifications
from profilesvc.emulator.posts import posts
from profilesvc.emulator.reviews import reviews
from profilesvc.emulator.seeding import fill
from profilesvc.emulator.state import Emulator, Login, Switches, count_request, emulator, now
from profilesvc.emulator.store import Store
from profilesvc.emulator.tables import EmulatorLoginRow, EmulatorStateRow, EmulatorTokenRow
from profilesvc.emulator.verification import verification
from profilesvc.server.routing import MatchedRule

_NO_DATA: JsonObject = {"accounts": [], "locations": []}
_NOT_ROUTED = "<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title><p>The requested URL was not found."


class _NameConverter(BaseConverter):
    """An id in a path. `:` starts a custom verb."""

    regex = r"[^/:]+"


class _App(Quart):
    url_rule_class = MatchedRule


def create_emulator(
    path: Path, *, clock: Clock, entropy: Entropy, world: JsonObject | None, access: ControlAccess | None = None
) -> Quart:
    """Return the emulator over the database file at `path`. A new file is filled with the demo data `world`.

    `access` protects the control API of an emulator that is served on a socket; inside a process it needs none.
    The lifespan opens the file, so run the app by a server or inside `async with app.test_app()`.
    """
    app = _App(__name__)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.converters["name"] = _NameConverter
    app.url_map.merge_slashes = False
    shared = Emulator(Store(path), clock, entropy, world or _NO_DATA, access)
    app.extensions["emulator"] = shared

    @app.while_serving
    async def lifespan() -> AsyncGenerator[None, None]:
        await shared.store.open(lambda session: fill(session, shared.world, shared.clock.now()))
        yield
        await shared.stop()
        await shared.store.close()

    app.before_request(_check)
    app.after_request(_record)
    app.register_error_handler(ApiError, _api_error)
    app.register_error_handler(HTTPException, _not_routed)
    app.register_error_handler(Exception, _internal_error)
    apis = (accounts, notifications, locations, attributes, categories, verification, posts, reviews)
    for blueprint in (consent, *apis, control):
        app.register_blueprint(blueprint)
    return app


async def _check() -> Response | None:
    """Apply a fault, then check the bearer token and the quota."""
    if request.url_rule is None or request.blueprint == "control":
        return None
    shared = emulator()
    fault = g.fault = shared.faults.take(request.method, request.path)
    if fault is not None and not fault.after and (response := await fault.response()):
        return response
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    async with shared.store.read() as session:
        statement = (
            select(
                EmulatorStateRow.document, EmulatorTokenRow.expires, EmulatorTokenRow.scope, EmulatorLoginRow.accounts
            )
            .select_from(EmulatorStateRow)
            .outerjoin(EmulatorTokenRow, col(EmulatorTokenRow.digest) == digest_of(token))
            .outerjoin(EmulatorLoginRow, col(EmulatorLoginRow.subject) == EmulatorTokenRow.subject)
        )
        document, expires, scope, accounts_seen = (await session.exec(statement)).one()
    g.switches = Switches.model_validate_json(document)
    g.now = shared.clock.now() + g.switches.clock_offset_ms
    if request.blueprint != "consent":
        if scheme.lower() != "bearer" or (expires or 0) <= now():
            raise ApiError(401, "Request had invalid authentication credentials.")
        g.login = Login(scope, None if accounts_seen is None else tuple(loads(accounts_seen)))
        require_scope()
        await count_request()
    return None


async def _record(response: Response) -> Response:
    """Record the call without its credentials. Replace the response if a fault applies to it."""
    if request.blueprint == "control":
        return response
    fault = g.get("fault")
    if fault is not None and fault.after and (faulty := await fault.response()):
        response = faulty
    shared = emulator()
    call: JsonObject = {"time": iso(shared.clock.now()), "method": request.method, "path": request.path}
    query = {} if request.blueprint == "consent" else request.args.to_dict()
    call |= {"query": query, "body": await _recorded_body(), "status": response.status_code}
    shared.calls.append(call)
    return response


async def _recorded_body() -> object:
    if request.blueprint == "consent":
        return None
    try:
        return loads(await request.get_data() or b"null")
    except (ValueError, RecursionError):
        return None


async def _api_error(error: ApiError) -> ResponseReturnValue:
    return error.body(), error.http_status


async def _not_routed(_error: HTTPException) -> ResponseReturnValue:
    """Return the 404 of the provider's front end: a wrong version, a missing account, a wrong method."""
    return Response(_NOT_ROUTED, 404, {"Content-Type": "text/html; charset=UTF-8"})


async def _internal_error(_error: Exception) -> ResponseReturnValue:
    return ApiError(500, "Internal error encountered.").body(), 500
