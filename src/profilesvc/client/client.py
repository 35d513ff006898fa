"""The client for threads, which runs the operations with httpx.Client."""

import time
from collections.abc import Callable
from typing import Self, TypeVar, Unpack

import httpx

from profilesvc.client import alerts, operations, profiles, provider_connections, webhooks
from profilesvc.client.auth import Authenticated, BearerAuth, ServiceAuth
from profilesvc.client.errors import ProfileError
from profilesvc.client.methods import call, each
from profilesvc.client.operation import Operation
from profilesvc.client.retries import Retries, Tries
from profilesvc.client.sending import HEADERS, TIMEOUT, Options, request_of, secure_url, transport_errors

T = TypeVar("T")


class SyncOptions(Options, total=False):
    """The options of both clients, a transport (for proxies, certificates, tests) and a function that waits."""

    transport: httpx.BaseTransport
    sleep: Callable[[float], object]


class ProfileClient(Authenticated):
    """A client of the service, safe to share between threads. Close it, or use it as a context manager."""

    _http: httpx.Client

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, **options: Unpack[SyncOptions]) -> None:
        self._http = httpx.Client(
            base_url=secure_url(base_url),
            headers=HEADERS,
            timeout=options.get("timeout", TIMEOUT),
            transport=options.get("transport"),
        )
        self._auth = auth
        self._retries = options.get("retries", Retries())
        self._clock = options.get("clock", time.monotonic)
        self._sleep = options.get("sleep", time.sleep)

    @classmethod
    def service(
        cls,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        **options: Unpack[SyncOptions],
    ) -> Self:
        """Create a client of a site or integration with an API key; `permissions` requests fewer than the key has."""
        clock = options.get("clock", time.monotonic)
        return cls(base_url, ServiceAuth(base_url, client_id, client_secret, permissions, clock), **options)

    @classmethod
    def user(cls, base_url: str, token: str, **options: Unpack[SyncOptions]) -> Self:
        """Create a client of a dashboard user with a user token."""
        return cls(base_url, BearerAuth(token), **options)

    @classmethod
    def signed_in(cls, base_url: str, id_token: str, nonce: str | None = None, **options: Unpack[SyncOptions]) -> Self:
        """Create a client of a user who has just signed in at the identity provider.

        Raises:
            InvalidToken: The service rejected the ID token.
            InsufficientPermissions: The login may not use the service.
        """
        client = cls(base_url, None, **options)
        try:
            client._auth = BearerAuth(client.exchange_id_token(id_token, nonce).access_token)
        except BaseException:
            client.close()
            raise
        return client

    @classmethod
    def anonymous(cls, base_url: str, **options: Unpack[SyncOptions]) -> Self:
        """Create a client without credentials, for validate_credentials and exchange_id_token only."""
        return cls(base_url, None, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, operation: Operation[T]) -> T:
        """Run an operation with its retries. The methods below call it."""
        tries = Tries(self._retries, operation, self._clock)
        while True:
            try:
                with transport_errors(operation):
                    auth = self._auth if operation.bearer else None
                    response = self._http.send(request_of(self._http, operation), auth=auth)
                return operation.read(response)
            except ProfileError as error:
                removed = tries.removed_before(error)
                if removed is not None:
                    return removed
                pause = tries.pause(error)
            self._sleep(pause)

    create_key = call(operations.create_key)
    list_keys = call(operations.list_keys)
    revoke_key = call(operations.revoke_key)
    get_key = call(operations.get_key)
    change_key = call(operations.change_key)
    end_previous_secret = call(operations.end_previous_secret)
    roll_key = call(operations.roll_key)
    deactivate_key = call(operations.deactivate_key)
    reactivate_key = call(operations.reactivate_key)
    list_key_audit = call(operations.list_key_audit)
    iter_key_audit = each(operations.iter_key_audit)
    key_requests = call(operations.key_requests)
    iter_key_requests = each(operations.iter_key_requests)
    list_events = call(operations.list_events)
    iter_events = each(operations.iter_events)
    list_audit = call(operations.list_audit)
    start_provider_connection = call(provider_connections.start_provider_connection)
    create_provider_connection_link = call(provider_connections.create_provider_connection_link)
    list_provider_connections = call(provider_connections.list_provider_connections)
    provider_connection = call(provider_connections.provider_connection)
    import_provider_locations = call(provider_connections.import_provider_locations)
    export_provider_connection = call(provider_connections.export_provider_connection)
    delete_provider_connection = call(provider_connections.delete_provider_connection)
    create_alert = call(alerts.create_alert)
    list_alerts = call(alerts.list_alerts)
    alert = call(alerts.alert)
    change_alert = call(alerts.change_alert)
    delete_alert = call(alerts.delete_alert)
    test_alert = call(alerts.test_alert)
    key_alerts = call(alerts.key_alerts)
    change_key_alerts = call(alerts.change_key_alerts)
    create_webhook = call(webhooks.create_webhook)
    list_webhooks = call(webhooks.list_webhooks)
    webhook = call(webhooks.webhook)
    change_webhook = call(webhooks.change_webhook)
    delete_webhook = call(webhooks.delete_webhook)
    roll_webhook = call(webhooks.roll_webhook)
    test_webhook = call(webhooks.test_webhook)
    deliveries = call(webhooks.deliveries)
    resend_delivery = call(webhooks.resend_delivery)
    recover_webhook = call(webhooks.recover_webhook)
    connection_status = call(operations.connection_status)
    businesses = call(operations.businesses)
    heartbeat = call(operations.heartbeat)
    validate_credentials = call(operations.validate_credentials)
    exchange_id_token = call(operations.exchange_id_token)
    list_posts = call(profiles.list_posts)
    iter_posts = each(profiles.iter_posts)
    create_post = call(profiles.create_post)
    update_post = call(profiles.update_post)
    delete_post = call(profiles.delete_post)
    list_reviews = call(profiles.list_reviews)
    iter_reviews = each(profiles.iter_reviews)
    review = call(profiles.review)
    reply = call(profiles.reply)
    delete_reply = call(profiles.delete_reply)
    list_locations = call(profiles.list_locations)
    iter_locations = each(profiles.iter_locations)
    location = call(profiles.location)
    set_sync = call(profiles.set_sync)
    refresh_verification = call(profiles.refresh_verification)
    google_updated = call(profiles.google_updated)
    accept_google_update = call(profiles.accept_google_update)
    reject_google_update = call(profiles.reject_google_update)
    compare = call(profiles.compare)
    sync = call(profiles.sync)
    preview_sync = call(profiles.preview_sync)
    sync_history = call(profiles.sync_history)
    iter_sync_history = each(profiles.iter_sync_history)
