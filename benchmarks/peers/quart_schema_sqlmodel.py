"""Quart + quart-schema + SQLModel, idiomatic: validated in and out, entities by an async session."""

from datetime import timedelta
from typing import Any

import jwt
from pydantic import BaseModel
from quart import Quart, abort, request
from quart_schema import QuartSchema, validate_querystring, validate_request, validate_response
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from benchmarks.peers import security
from benchmarks.peers.database import URL, durable
from benchmarks.peers.tables import (
    ApiKey,
    Contact,
    Grant,
    HeartbeatIn,
    HeartbeatReceived,
    Post,
    PostPublic,
    PostsPublic,
    Status,
    Token,
    User,
    now,
)

engine = create_async_engine(URL)
durable(engine.sync_engine)
app = Quart(__name__)
QuartSchema(app, conversion_preference="pydantic", openapi_path=None)


class PostsQuery(BaseModel):
    locationId: str
    pageSize: int = 50


def claims_of_request() -> dict[str, Any]:
    if request.authorization is None or request.authorization.type != "bearer":
        abort(401)
    try:
        return security.verified(request.authorization.token or "")
    except jwt.InvalidTokenError:
        abort(401)


async def current_key(session: AsyncSession) -> ApiKey:
    claims = claims_of_request()
    key = (await session.exec(select(ApiKey).where(ApiKey.client_id == claims["sub"]))).first()
    if key is None or not key.is_active or key.epoch != claims["epoch"]:
        abort(401)
    return key


async def current_user(session: AsyncSession) -> User:
    claims = claims_of_request()
    user = await session.get(User, int(claims["sub"]))
    if user is None or user.epoch != claims["epoch"]:
        abort(401)
    return user


@app.get("/api/v1/posts")
@validate_querystring(PostsQuery)
@validate_response(PostsPublic)
async def read_posts(query_args: PostsQuery) -> PostsPublic:
    async with AsyncSession(engine) as session:
        key = await current_key(session)
        if key.location != query_args.locationId:
            abort(403)
        statement = (
            select(Post)
            .where(Post.location == query_args.locationId)
            .order_by(Post.create_time.desc())  # type: ignore[attr-defined]
            .limit(query_args.pageSize + 1)
        )
        posts = (await session.exec(statement)).all()
        data = [PostPublic.model_validate(post) for post in posts[: query_args.pageSize]]
        return PostsPublic(data=data, next_page_token="more" if len(posts) > query_args.pageSize else "")


@app.get("/api/v1/api-keys/<client_id>/status")
@validate_response(Status)
async def read_status(client_id: str) -> Status:
    async with AsyncSession(engine) as session:
        user = await current_user(session)
        key = (await session.exec(select(ApiKey).where(ApiKey.client_id == client_id))).first()
        if key is None or key.user_id != user.id:
            abort(404)
        contact = await session.get(Contact, key.id)
        if contact is None:
            return Status(
                connection_status="offline",
                last_heartbeat_at=None,
                plugin_version=None,
                wp_version=None,
                php_version=None,
            )
        seen = contact.last_heartbeat_at.replace(tzinfo=now().tzinfo)
        state = "online" if now() - seen < timedelta(seconds=security.ONLINE_SECONDS) else "idle"
        return Status.model_validate(contact, update={"connection_status": state})


@app.post("/api/v1/api-keys/heartbeat")
@validate_request(HeartbeatIn)
@validate_response(HeartbeatReceived)
async def heartbeat(data: HeartbeatIn) -> HeartbeatReceived:
    async with AsyncSession(engine) as session:
        key = await current_key(session)
        assert key.id is not None
        contact = await session.get(Contact, key.id) or Contact(key_id=key.id, last_heartbeat_at=now())
        contact.sqlmodel_update({**data.model_dump(exclude_unset=True), "last_heartbeat_at": now()})
        session.add(contact)
        await session.commit()
    return HeartbeatReceived(received=True, next_heartbeat_in=3600)


@app.post("/api/v1/auth/token")
@validate_request(Grant)
@validate_response(Token)
async def token(data: Grant) -> Token:
    async with AsyncSession(engine) as session:
        key = (await session.exec(select(ApiKey).where(ApiKey.client_id == data.client_id))).first()
    if key is None or not key.is_active or not security.matches(data.client_secret, key.secret_digest):
        abort(401)
    return Token(
        token_type="Bearer",
        access_token=security.issue(key.client_id, key.epoch, security.ACCESS_SECONDS),
        expires_in=security.ACCESS_SECONDS,
        refresh_token=security.issue(key.client_id, key.epoch, security.REFRESH_SECONDS),
        permissions=key.permissions.split(),
    )
