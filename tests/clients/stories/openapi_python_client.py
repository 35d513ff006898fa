"""The whole story by the client that openapi-python-client generates."""

import os

from generated import AuthenticatedClient, Client
from generated.api.connection import get_connection_status, send_heartbeat, validate_credentials
from generated.api.keys import create_key, list_keys, revoke_key
from generated.api.locations import get_location, list_locations
from generated.api.posts import change_post, create_post, delete_post, list_posts
from generated.api.sync import compare_profile, list_sync_history, sync_profile
from generated.api.tokens import issue_token
from generated.models import (
    ClientCredentialsGrant,
    ClientCredentialsGrantGrantType,
    CredentialCheck,
    Failure,
    GetConnectionStatusHistory,
    Heartbeat,
    KeyCreate,
    LocalPost,
    Location,
    PhoneNumbers,
    RefreshGrant,
    RefreshGrantGrantType,
    SyncProfileValidateOnly,
)

BASE_URL, LOCATION = os.environ["BASE_URL"], "locations/111"


def data(answer):
    assert answer is not None
    assert not isinstance(answer, Failure), answer
    return answer.data


nobody = Client(BASE_URL, raise_on_unexpected_status=True)
user = AuthenticatedClient(BASE_URL, token=os.environ["USER_TOKEN"], raise_on_unexpected_status=True)

new = KeyCreate(name="Story", business_id=10, assigned_location_id=LOCATION)
key = data(create_key.sync(client=user, body=new))
pair = {"client_id": key.client_id, "client_secret": key.client_secret}
grant = ClientCredentialsGrant(grant_type=ClientCredentialsGrantGrantType.CLIENT_CREDENTIALS, **pair)
token = data(issue_token.sync(client=nobody, body=grant))
refresh = RefreshGrant(grant_type=RefreshGrantGrantType.REFRESH_TOKEN, refresh_token=token.refresh_token)
token = data(issue_token.sync(client=nobody, body=refresh))
assert token.permissions == ["business.read", "business.write"]
site = AuthenticatedClient(BASE_URL, token=token.access_token, raise_on_unexpected_status=True)

checked = data(validate_credentials.sync(client=nobody, body=CredentialCheck(**pair)))
assert checked.valid is True and checked.location.id == LOCATION and checked.capabilities.sync
wrong = data(validate_credentials.sync(client=nobody, body=CredentialCheck(key.client_id, "wrong")))
assert wrong.valid is False and wrong.reason == "invalid_credentials"
beat = data(send_heartbeat.sync(client=site, body=Heartbeat(plugin_version="2.4.1", detected_plugins=["seo"])))
assert beat.received is True and beat.next_heartbeat_in == 3600

status = data(get_connection_status.sync(key.client_id, client=user))
assert (status.connection_status, status.plugin_version, status.wp_version) == ("online", "2.4.1", None)
assert not status.history
status = data(get_connection_status.sync(key.client_id, client=user, history=GetConnectionStatusHistory.TRUE))
assert status.history[-1].state == "online" and status.history[-1].from_

post = data(create_post.sync(client=site, location_id=LOCATION, body=LocalPost(summary="Hello")))
assert post.state == "PROCESSING"
ident = post.name.rpartition("/")[2]
post = data(change_post.sync(ident, client=site, location_id=LOCATION, body=LocalPost(summary="Hello again")))
assert post.summary == "Hello again"
listed = data(list_posts.sync(client=site, location_id=LOCATION, page_size=2))
assert listed.local_posts[0].name == post.name and listed.next_page_token
assert data(delete_post.sync(ident, client=site, location_id=LOCATION)).deleted is True

assert data(list_locations.sync(client=user)).pagination.total_count > 1
assert data(get_location.sync("111", client=site)).location_state.is_verified is True
compared = data(compare_profile.sync("111", client=site))
assert compared.provider["title"]

phone = Location(phone_numbers=PhoneNumbers(primary_phone="+44 20 7946 0999"))
preview = data(sync_profile.sync("111", client=site, body=phone, validate_only=SyncProfileValidateOnly.TRUE))
assert preview.validate_only is True and preview.fields_updated == ["phoneNumbers.primaryPhone"]
assert not preview.sync_id
result = data(sync_profile.sync("111", client=site, body=phone, x_idempotency_key="story"))
again = data(sync_profile.sync("111", client=site, body=phone, x_idempotency_key="story"))
assert result.fields_updated == ["phoneNumbers.primaryPhone"] and result.sync_id == again.sync_id
assert not result.validate_only
assert data(list_sync_history.sync("111", client=site)).history[0].sync_id == result.sync_id

refused = list_keys.sync(client=site)
assert isinstance(refused, Failure) and refused.error.code == "AUTH_INSUFFICIENT_PERMISSIONS"
assert key.client_id in [entry.client_id for entry in data(list_keys.sync(client=user)).credentials]
assert data(revoke_key.sync(key.client_id, client=user)).revoked is True
gone = list_posts.sync(client=site, location_id=LOCATION)
assert isinstance(gone, Failure) and gone.error.code == "AUTH_INVALID_TOKEN"
