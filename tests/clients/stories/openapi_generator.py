"""The whole story by the client that openapi-generator generates for Python."""

import os

from openapi_client import (
    ApiClient,
    ApiException,
    ClientCredentialsGrant,
    Configuration,
    ConnectionApi,
    CredentialCheck,
    Heartbeat,
    KeyCreate,
    KeysApi,
    LocalPost,
    Location,
    LocationsApi,
    PhoneNumbers,
    PostsApi,
    RefreshGrant,
    SyncApi,
    TokenRequest,
    TokensApi,
)

LOCATION = "locations/111"


def client(token=None):
    return ApiClient(Configuration(host=os.environ["BASE_URL"], access_token=token))


nobody, user = client(), client(os.environ["USER_TOKEN"])
keys = KeysApi(user)

key = keys.create_key(KeyCreate(name="Story", business_id=10, assigned_location_id=LOCATION)).data
pair = {"client_id": key.client_id, "client_secret": key.client_secret}
grant = ClientCredentialsGrant(grant_type="client_credentials", **pair)
token = TokensApi(nobody).issue_token(TokenRequest(grant)).data
refresh = RefreshGrant(grant_type="refresh_token", refresh_token=token.refresh_token)
token = TokensApi(nobody).issue_token(TokenRequest(refresh)).data
site = client(token.access_token)

checked = ConnectionApi(nobody).validate_credentials(CredentialCheck(**pair)).data
assert checked.valid is True and checked.location.id == LOCATION and checked.capabilities.sync
wrong = ConnectionApi(nobody).validate_credentials(CredentialCheck(client_id=key.client_id, client_secret="wrong")).data
assert wrong.valid is False and wrong.reason == "invalid_credentials"
beat = ConnectionApi(site).send_heartbeat(Heartbeat(plugin_version="2.4.1", detected_plugins=["seo"])).data
assert beat.received is True and beat.next_heartbeat_in == 3600

status = ConnectionApi(user).get_connection_status(key.client_id).data
assert (status.connection_status, status.plugin_version, status.wp_version) == ("online", "2.4.1", None)
assert status.history is None
status = ConnectionApi(user).get_connection_status(key.client_id, history="true").data
assert status.history[-1].state == "online" and status.history[-1].var_from

posts = PostsApi(site)
post = posts.create_post(LOCATION, LocalPost(summary="Hello")).data
assert post.state == "PROCESSING"
ident = post.name.rpartition("/")[2]
post = posts.change_post(ident, LOCATION, LocalPost(summary="Hello again")).data
assert post.summary == "Hello again"
listed = posts.list_posts(LOCATION, page_size=2).data
assert listed.local_posts[0].name == post.name and listed.next_page_token
assert posts.delete_post(ident, LOCATION).data.deleted is True

assert LocationsApi(user).list_locations().data.pagination.total_count > 1
assert LocationsApi(site).get_location("111").data.location_state.is_verified is True
sync = SyncApi(site)
assert sync.compare_profile("111").data.provider["title"]

phone = Location(phone_numbers=PhoneNumbers(primary_phone="+44 20 7946 0999"))
preview = sync.sync_profile("111", phone, validate_only="true").data
assert preview.validate_only is True and preview.fields_updated == ["phoneNumbers.primaryPhone"]
assert preview.sync_id is None
result = sync.sync_profile("111", phone, x_idempotency_key="story").data
again = sync.sync_profile("111", phone, x_idempotency_key="story").data
assert result.fields_updated == ["phoneNumbers.primaryPhone"] and result.sync_id == again.sync_id
assert result.validate_only is None
assert sync.list_sync_history("111").data.history[0].sync_id == result.sync_id

try:
    KeysApi(site).list_keys()
    raise AssertionError("a service token lists keys")
except ApiException as error:
    assert error.data.error.code == "AUTH_INSUFFICIENT_PERMISSIONS"
assert key.client_id in [entry.client_id for entry in keys.list_keys().data.credentials]
assert keys.revoke_key(key.client_id).data.revoked is True
try:
    posts.list_posts(LOCATION)
    raise AssertionError("a revoked key lists posts")
except ApiException as error:
    assert error.data.error.code == "AUTH_INVALID_TOKEN"
