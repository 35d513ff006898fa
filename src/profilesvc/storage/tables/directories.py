"""The tables of no tenant.

A directory is asked before the owner is known, or is unique across owners: on a distributed database one of its columns
selects its node. It has no foreign keys, because the rows of an owner may be on another node. A reference is small, and
every node has a copy.
"""

from sqlalchemy import BigInteger, CheckConstraint, Text
from sqlmodel import Field

from profilesvc.storage.tables.columns import Table, instant, reference

# Each with the column that selects its node.
DIRECTORIES = {
    "emails": "email",
    "identities": "subject",  # not the issuer, which is the same for all users
    "location_owners": "name",
    "key_domains": "domain",
    "exchanges": "digest",
    "leases": "name",
    "notifications": "message_id",
    "changed_locations": "location_name",
}
REFERENCES = frozenset({"signing_keys", "census", "check_values", "sweep_marks"})


class EmailRow(Table, table=True):
    """The e-mail address of a user, in lower case."""

    __tablename__ = "emails"

    email: str = Field(max_length=320, primary_key=True)
    owner_id: int = reference()


class LocationOwnerRow(Table, table=True):
    """The owner of a location."""

    __tablename__ = "location_owners"

    name: str = Field(max_length=80, primary_key=True)
    owner_id: int = reference()


class KeyDomainRow(Table, table=True):
    """For preflights: a domain from which a key accepts requests until it expires, "" for every domain."""

    __tablename__ = "key_domains"

    domain: str = Field(max_length=253, primary_key=True)
    until: int = instant(primary_key=True, index=True)
    owner_id: int = reference(primary_key=True)
    key_id: int = reference(primary_key=True)


class IdentityRow(Table, table=True):
    """A user's subject at an external identity provider, never the e-mail address, which can change."""

    __tablename__ = "identities"

    issuer: str = Field(max_length=255, primary_key=True)
    subject: str = Field(max_length=255, primary_key=True)
    owner_id: int = reference(index=True)
    created_at: int = instant()


class ExchangeRow(Table, table=True):
    """The digest of an ID token that was exchanged, of a state or of a connect link. Each can be used only once."""

    __tablename__ = "exchanges"

    digest: str = Field(max_length=64, primary_key=True)
    expires_at: int = instant(index=True)


class SigningKeyRow(Table, table=True):
    """A signing key, published before `active_from`, active until the next key of its algorithm is, then retired.

    A key that is removed ends the tokens that it signed. Every request looks here.
    """

    __tablename__ = "signing_keys"
    __table_args__ = (CheckConstraint("(private_pem IS NULL) = (removed_at IS NOT NULL)", name="removed_whole"),)

    kid: str = Field(max_length=64, primary_key=True)
    private_pem: str | None = Field(sa_type=Text)
    created_at: int = instant()
    active_from: int = instant()
    removed_at: int | None = instant()
    alg: str = Field(max_length=8, sa_column_kwargs={"server_default": "RS256"})


class CensusRow(Table, table=True):
    """A count for the operator's metrics: how many keys or sites have a state, and when that was counted."""

    __tablename__ = "census"

    name: str = Field(max_length=64, primary_key=True)
    state: str = Field(max_length=32, primary_key=True)
    amount: int = Field(sa_type=BigInteger)
    counted_at: int = instant()


class SweepMarkRow(Table, table=True):
    """A note of the sweep of sites, such as when it last ended (`operations/notify/sweep.py`)."""

    __tablename__ = "sweep_marks"

    name: str = Field(max_length=32, primary_key=True)
    at: int = instant()


class CheckValueRow(Table, table=True):
    """A value that shows whether a secret of the settings is the one of this database (`services/pepper.py`)."""

    __tablename__ = "check_values"

    name: str = Field(max_length=16, primary_key=True)
    value: str = Field(max_length=64)


class NotificationRow(Table, table=True):
    """A message of the provider's change feed that was received. It is handled once."""

    __tablename__ = "notifications"

    message_id: str = Field(max_length=64, primary_key=True)
    received_at: int = instant(index=True)


class ChangedLocationRow(Table, table=True):
    """A location that a notification has named, until it is read again (`operations/feed/feed.py`)."""

    __tablename__ = "changed_locations"
    __table_args__ = (CheckConstraint("what IN ('profile', 'reviews')", name="what"),)

    location_name: str = Field(max_length=80, primary_key=True)
    what: str = Field(max_length=16, primary_key=True)
    owner_id: int = reference()
    due_at: int = instant(index=True)
    times: int = Field(sa_type=BigInteger)  # notifications, so that one during the reading is not lost


class LeaseRow(Table, table=True):
    """A lease by name and slot (`database/leases.py`): its holder, from when until when by the database's clock."""

    __tablename__ = "leases"

    name: str = Field(max_length=300, primary_key=True)
    slot: int = Field(primary_key=True)
    holder: str = Field(max_length=32)
    asked_at: int = instant()
    until: int = instant(index=True)
