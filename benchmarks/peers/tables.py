"""The tables of the peers as SQLModel entities, and the models of responses of FastAPI and Quart."""

from datetime import UTC, datetime

from sqlalchemy import DateTime
from sqlmodel import Field, Index, SQLModel


def now() -> datetime:
    return datetime.now(UTC)


class User(SQLModel, table=True):
    __tablename__ = "users"
    id: int | None = Field(default=None, primary_key=True)
    email: str = Field(unique=True, index=True, max_length=255)
    plan: str
    epoch: int


class ApiKey(SQLModel, table=True):
    __tablename__ = "api_keys"
    id: int | None = Field(default=None, primary_key=True)
    client_id: str = Field(unique=True, index=True)
    user_id: int = Field(foreign_key="users.id")
    secret_digest: str
    location: str
    permissions: str
    epoch: int
    is_active: bool = True


class PostBase(SQLModel):
    name: str
    language_code: str
    summary: str
    action_type: str
    action_url: str
    state: str
    topic_type: str
    search_url: str
    create_time: datetime = Field(sa_type=DateTime(timezone=True))
    update_time: datetime = Field(sa_type=DateTime(timezone=True))


class Post(PostBase, table=True):
    __tablename__ = "posts"
    __table_args__ = (Index("posts_by_location", "location", "create_time"),)
    id: int | None = Field(default=None, primary_key=True)
    location: str


class PostPublic(PostBase):
    pass


class PostsPublic(SQLModel):
    data: list[PostPublic]
    next_page_token: str


class HeartbeatIn(SQLModel):
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None


class Contact(SQLModel, table=True):
    __tablename__ = "contacts"
    key_id: int = Field(primary_key=True, foreign_key="api_keys.id")
    last_heartbeat_at: datetime = Field(sa_type=DateTime(timezone=True))
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None


class Status(SQLModel):
    connection_status: str
    last_heartbeat_at: datetime | None
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None


class HeartbeatReceived(SQLModel):
    received: bool
    next_heartbeat_in: int


class Grant(SQLModel):
    grant_type: str
    client_id: str
    client_secret: str


class Token(SQLModel):
    token_type: str
    access_token: str
    expires_in: int
    refresh_token: str
    permissions: list[str]
