"""The client for asyncio, which runs the operations with httpx.AsyncClient."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar, Unpack

import httpx

from profilesvc.client import alerts, operations, profiles, provider_connections, webhooks
from profilesvc.client.auth import Authenticated, BearerAuth, ServiceAuth
from profilesvc.client.errors import ProfileError
from profilesvc.client.methods import async_call, async_each
from profilesvc.client.operation import Operation
from profilesvc.client.retries import Retries, Tries
from profilesvc.client.sending import HEADERS, TIMEOUT, Options, request_of, secure_url, transport_errors

T = TypeVar("T")


class AsyncOptions(Options, total=False):
    """The options of both clients, a transport (for proxies, certificates, tests) and a function that waits."""

    transport: httpx.AsyncBaseTransport
    sleep: Callable[[float], Awaitable[object]]


class AsyncProfileClient(Authenticated):
    """A client of the service for the tasks of one event loop. Close it, or use it with `async with`."""

    _http: httpx.AsyncClient

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, **options: Unpack[AsyncOptions]) -> None:
        self._http = httpx.AsyncClient(
            base_url=secure_url(base_url),
            headers=HEADERS,
            timeout=options.get("timeout", TIMEOUT),
            transport=options.get("transport"),
        )
        self._auth = auth
        self._retries = options.get("retries", Retries())
        self._clock = options.get("clock", time.monotonic)
        self._sleep = options.get("sleep", asyncio.sleep)

    @classmethod
    def service(
        cls,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        **options: Unpack[AsyncOptions],
    ) -> Self:
        """Create a client of a site or integration with an API key; `permissions` requests fewer than the key has."""
        clock = options.get("clock", time.monotonic)
        return cls(base_url, ServiceAuth(base_url, client_id, client_secret, permissions, clock), **options)

    @classmethod
    def user(cls, base_url: str, token: str, **options: Unpack[AsyncOptions]) -> Self:
        """Create a client of a dashboard user with a user token."""
        return cls(base_url, BearerAuth(token), **options)

    @classmethod
    async def signed_in(
        cls, base_url: str, id_token: str, nonce: str | None = None, **options: Unpack[AsyncOptions]
    ) -> Self:
        """Create a client of a user who has just signed in at the identity provider.

        Raises:
            InvalidToken: The service rejected the ID token.
            InsufficientPermissions: The login may not use the service.
        """
        client = cls(base_url, None, **options)
        try:
            client._auth = BearerAuth((await client.exchange_id_token(id_token, nonce)).access_token)
        except BaseException:
            await client.aclose()
            raise
        return client

    @classmethod
    def anonymous(cls, base_url: str, **options: Unpack[AsyncOptions]) -> Self:
        """Create a client without credentials, for validate_credentials and exchange_id_token only."""
        return cls(base_url, None, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation with its retries. The methods below call it."""
        tries = Tries(self._retries, operation, self._clock)
        while True:
            try:
                with transport_errors(operation):
                    auth = self._auth if operation.bearer else None
                    response = await self._http.send(request_of(self._http, operation), auth=auth)
                return operation.read(response)
            except ProfileError as error:
                removed = tries.removed_before(error)
                if removed is not None:
                    return removed
                pause = tries.pause(error)
            await self._sleep(pause)

    create_key = async_call(operations.create_key)
    list_keys = async_call(operations.list_keys)
    revoke_key = async_call(operations.revoke_key)
    get_key = async_call(operations.get_key)
    change_key = async_call(operations.change_key)
    end_previous_secret = async_call(operations.end_previous_secret)
    roll_key = async_call(operations.roll_key)
    deactivate_key = async_call(operations.deactivate_key)
    reactivate_key = async_call(operations.reactivate_key)
    list_key_audit = async_call(operations.list_key_audit)
    iter_key_audit = async_each(operations.iter_key_audit)
    key_requests = async_call(operations.key_requests)
    iter_key_requests = async_each(operations.iter_key_requests)
    list_events = async_call(operations.list_events)
    iter_events = async_each(operations.iter_events)
    list_audit = async_call(operations.list_audit)
    start_provider_connection = async_call(provider_connections.start_provider_connection)
    create_provider_connection_link = async_call(provider_connections.create_provider_connection_link)
    list_provider_connections = async_call(provider_connections.list_provider_connections)
    provider_connection = async_call(provider_connections.provider_connection)
    import_provider_locations = async_call(provider_connections.import_provider_locations)
    export_provider_connection = async_call(provider_connections.export_provider_connection)
    delete_provider_connection = async_call(provider_connections.delete_provider_connection)
    create_alert = async_call(alerts.create_alert)
    list_alerts = async_call(alerts.list_alerts)
    alert = async_call(alerts.alert)
    change_alert = async_call(alerts.change_alert)
    delete_alert = async_call(alerts.delete_alert)
    test_alert = async_call(alerts.test_alert)
    key_alerts = async_call(alerts.key_alerts)
    change_key_alerts = async_call(alerts.change_key_alerts)
    create_webhook = async_call(webhooks.create_webhook)
    list_webhooks = async_call(webhooks.list_webhooks)
    webhook = async_call(webhooks.webhook)
    change_webhook = async_call(webhooks.change_webhook)
    delete_webhook = async_call(webhooks.delete_webhook)
    roll_webhook = async_call(webhooks.roll_webhook)
    test_webhook = async_call(webhooks.test_webhook)
    deliveries = async_call(webhooks.deliveries)
    resend_delivery = async_call(webhooks.resend_delivery)
    recover_webhook = async_call(webhooks.recover_webhook)
    connection_status = async_call(operations.connection_status)
    businesses = async_call(operations.businesses)
    heartbeat = async_call(operations.heartbeat)
    validate_credentials = async_call(operations.validate_credentials)
    exchange_id_token = async_call(operations.exchange_id_token)
    list_posts = async_call(profiles.list_posts)
    iter_posts = async_each(profiles.iter_posts)
    create_post = async_call(profiles.create_post)
    update_post = async_call(profiles.update_post)
    delete_post = async_call(profiles.delete_post)
    list_reviews = async_call(profiles.list_reviews)
    iter_reviews = async_each(profiles.iter_reviews)
    review = async_call(profiles.review)
    reply = async_call(profiles.reply)
    delete_reply = async_call(profiles.delete_reply)
    list_locations = async_call(profiles.list_locations)
    iter_locations = async_each(profiles.iter_locations)
    location = async_call(profiles.location)
    set_sync = async_call(profiles.set_sync)
    refresh_verification = async_call(profiles.refresh_verification)
    google_updated = async_call(profiles.google_updated)
    accept_google_update = async_call(profiles.accept_google_update)
    reject_google_update = async_call(profiles.reject_google_update)
    compare = async_call(profiles.compare)
    sync = async_call(profiles.sync)
    preview_sync = async_call(profiles.preview_sync)
    sync_history = async_call(profiles.sync_history)
    iter_sync_history = async_each(profiles.iter_sync_history)
