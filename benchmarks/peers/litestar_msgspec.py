"""Litestar + SQLAlchemy 2 + msgspec: async handlers, a session by dependency injection, structs in and out."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import msgspec
from litestar import Litestar, Request, get, post
from litestar.di import Provide
from litestar.exceptions import NotAuthorizedException, NotFoundException, PermissionDeniedException
from sqlalchemy import DateTime, ForeignKey, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from benchmarks.peers import security
from benchmarks.peers.database import URL, durable

engine = create_async_engine(URL)
durable(engine.sync_engine)
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    type_annotation_map = {datetime: DateTime(timezone=True)}  # noqa: RUF012


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    plan: Mapped[str]
    epoch: Mapped[int]


class ApiKey(Base):
    __tablename__ = "api_keys"
    id: Mapped[int] = mapped_column(primary_key=True)
    client_id: Mapped[str]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    secret_digest: Mapped[str]
    location: Mapped[str]
    permissions: Mapped[str]
    epoch: Mapped[int]
    is_active: Mapped[bool]


class Post(Base):
    __tablename__ = "posts"
    id: Mapped[int] = mapped_column(primary_key=True)
    location: Mapped[str]
    name: Mapped[str]
    language_code: Mapped[str]
    summary: Mapped[str]
    action_type: Mapped[str]
    action_url: Mapped[str]
    state: Mapped[str]
    topic_type: Mapped[str]
    search_url: Mapped[str]
    create_time: Mapped[datetime]
    update_time: Mapped[datetime]


class Contact(Base):
    __tablename__ = "contacts"
    key_id: Mapped[int] = mapped_column(ForeignKey("api_keys.id"), primary_key=True)
    last_heartbeat_at: Mapped[datetime]
    plugin_version: Mapped[str | None]
    wp_version: Mapped[str | None]
    php_version: Mapped[str | None]


class PostOut(msgspec.Struct):
    name: str
    language_code: str
    summary: str
    action_type: str
    action_url: str
    state: str
    topic_type: str
    search_url: str
    create_time: datetime
    update_time: datetime


class PostsOut(msgspec.Struct):
    data: list[PostOut]
    next_page_token: str


class StatusOut(msgspec.Struct):
    connection_status: str
    last_heartbeat_at: datetime | None = None
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None


class HeartbeatIn(msgspec.Struct):
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None


class HeartbeatOut(msgspec.Struct):
    received: bool
    next_heartbeat_in: int


class Grant(msgspec.Struct):
    grant_type: str
    client_id: str
    client_secret: str


class TokenOut(msgspec.Struct):
    token_type: str
    access_token: str
    expires_in: int
    refresh_token: str
    permissions: list[str]


async def provide_session() -> AsyncGenerator[AsyncSession, None]:
    async with sessions() as session:
        yield session


def claims_of(request: Request[Any, Any, Any]) -> dict[str, Any]:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise jwt.InvalidTokenError
        return security.verified(token)
    except jwt.InvalidTokenError as error:
        raise NotAuthorizedException from error


async def provide_key(request: Request[Any, Any, Any], session: AsyncSession) -> ApiKey:
    claims = claims_of(request)
    key = await session.scalar(select(ApiKey).where(ApiKey.client_id == claims["sub"]))
    if key is None or not key.is_active or key.epoch != claims["epoch"]:
        raise NotAuthorizedException
    return key


async def provide_user(request: Request[Any, Any, Any], session: AsyncSession) -> User:
    claims = claims_of(request)
    user = await session.get(User, int(claims["sub"]))
    if user is None or user.epoch != claims["epoch"]:
        raise NotAuthorizedException
    return user


@get("/api/v1/posts", dependencies={"key": Provide(provide_key)})
async def read_posts(session: AsyncSession, key: ApiKey, locationId: str, pageSize: int = 50) -> PostsOut:
    if key.location != locationId:
        raise PermissionDeniedException
    statement = select(Post).where(Post.location == locationId).order_by(Post.create_time.desc()).limit(pageSize + 1)
    posts = (await session.scalars(statement)).all()
    data = [msgspec.convert(post, PostOut, from_attributes=True) for post in posts[:pageSize]]
    return PostsOut(data, "more" if len(posts) > pageSize else "")


@get("/api/v1/api-keys/{client_id:str}/status", dependencies={"user": Provide(provide_user)})
async def read_status(session: AsyncSession, user: User, client_id: str) -> StatusOut:
    key = await session.scalar(select(ApiKey).where(ApiKey.client_id == client_id))
    if key is None or key.user_id != user.id:
        raise NotFoundException
    contact = await session.get(Contact, key.id)
    if contact is None:
        return StatusOut("offline")
    seen = contact.last_heartbeat_at.replace(tzinfo=UTC)
    is_online = datetime.now(UTC) - seen < timedelta(seconds=security.ONLINE_SECONDS)
    return StatusOut(
        "online" if is_online else "idle", seen, contact.plugin_version, contact.wp_version, contact.php_version
    )


@post("/api/v1/api-keys/heartbeat", dependencies={"key": Provide(provide_key)}, status_code=200)
async def heartbeat(session: AsyncSession, key: ApiKey, data: HeartbeatIn) -> HeartbeatOut:
    contact = await session.get(Contact, key.id)
    if contact is None:
        contact = Contact(key_id=key.id)
        session.add(contact)
    contact.last_heartbeat_at = datetime.now(UTC)
    for name, value in msgspec.structs.asdict(data).items():
        if value is not None:
            setattr(contact, name, value)
    await session.commit()
    return HeartbeatOut(True, 3600)


@post("/api/v1/auth/token", status_code=200)
async def token(session: AsyncSession, data: Grant) -> TokenOut:
    key = await session.scalar(select(ApiKey).where(ApiKey.client_id == data.client_id))
    if key is None or not key.is_active or not security.matches(data.client_secret, key.secret_digest):
        raise NotAuthorizedException
    return TokenOut(
        "Bearer",
        security.issue(key.client_id, key.epoch, security.ACCESS_SECONDS),
        security.ACCESS_SECONDS,
        security.issue(key.client_id, key.epoch, security.REFRESH_SECONDS),
        key.permissions.split(),
    )


app = Litestar(
    [read_posts, read_status, heartbeat, token],
    dependencies={"session": Provide(provide_session)},
    openapi_config=None,
)
