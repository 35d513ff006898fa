"""FastAPI + SQLModel as their author's template has it: `def` handlers, session and caller as dependencies."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

import jwt
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import OAuth2PasswordBearer
from sqlmodel import Session, create_engine, select

from benchmarks.peers import security
from benchmarks.peers.database import durable, sync_url
from benchmarks.peers.tables import (
    ApiKey,
    Contact,
    Grant,
    HeartbeatIn,
    HeartbeatReceived,
    Post,
    PostsPublic,
    Status,
    Token,
    User,
    now,
)

engine = create_engine(sync_url())
durable(engine)
app = FastAPI()
reusable_oauth2 = OAuth2PasswordBearer(tokenUrl="/api/v1/auth/token")


def get_db() -> Iterator[Session]:
    with Session(engine) as session:
        yield session


SessionDep = Annotated[Session, Depends(get_db)]
TokenDep = Annotated[str, Depends(reusable_oauth2)]


def get_claims(token: TokenDep) -> dict[str, Any]:
    try:
        return security.verified(token)
    except jwt.InvalidTokenError as error:
        raise HTTPException(status_code=401, detail="Could not validate credentials") from error


def get_current_key(session: SessionDep, claims: Annotated[dict[str, Any], Depends(get_claims)]) -> ApiKey:
    key = session.exec(select(ApiKey).where(ApiKey.client_id == claims["sub"])).first()
    if key is None or not key.is_active or key.epoch != claims["epoch"]:
        raise HTTPException(status_code=401, detail="Could not validate credentials")
    return key


def get_current_user(session: SessionDep, claims: Annotated[dict[str, Any], Depends(get_claims)]) -> User:
    user = session.get(User, int(claims["sub"]))
    if user is None or user.epoch != claims["epoch"]:
        raise HTTPException(status_code=401, detail="Could not validate credentials")
    return user


CurrentKey = Annotated[ApiKey, Depends(get_current_key)]
CurrentUser = Annotated[User, Depends(get_current_user)]


@app.get("/api/v1/posts", response_model=PostsPublic)
def read_posts(session: SessionDep, key: CurrentKey, locationId: str, pageSize: int = 50) -> Any:
    if key.location != locationId:
        raise HTTPException(status_code=403, detail="Not enough permissions")
    statement = (
        select(Post)
        .where(Post.location == locationId)
        .order_by(Post.create_time.desc())  # type: ignore[attr-defined]
        .limit(pageSize + 1)
    )
    posts = session.exec(statement).all()
    return PostsPublic(data=posts[:pageSize], next_page_token="more" if len(posts) > pageSize else "")  # type: ignore[arg-type]


@app.get("/api/v1/api-keys/{client_id}/status", response_model=Status)
def read_status(session: SessionDep, user: CurrentUser, client_id: str) -> Any:
    key = session.exec(select(ApiKey).where(ApiKey.client_id == client_id)).first()
    if key is None or key.user_id != user.id:
        raise HTTPException(status_code=404, detail="API key not found")
    contact = session.get(Contact, key.id)
    if contact is None:
        return Status(
            connection_status="offline", last_heartbeat_at=None, plugin_version=None, wp_version=None, php_version=None
        )
    seen = contact.last_heartbeat_at.replace(tzinfo=now().tzinfo)
    state = "online" if now() - seen < timedelta(seconds=security.ONLINE_SECONDS) else "idle"
    return Status.model_validate(contact, update={"connection_status": state})


@app.post("/api/v1/api-keys/heartbeat", response_model=HeartbeatReceived)
def heartbeat(session: SessionDep, key: CurrentKey, body: HeartbeatIn) -> Any:
    assert key.id is not None
    contact = session.get(Contact, key.id) or Contact(key_id=key.id, last_heartbeat_at=now())
    contact.sqlmodel_update({**body.model_dump(exclude_unset=True), "last_heartbeat_at": now()})
    session.add(contact)
    session.commit()
    return HeartbeatReceived(received=True, next_heartbeat_in=3600)


@app.post("/api/v1/auth/token", response_model=Token)
def token(session: SessionDep, body: Grant) -> Any:
    key = session.exec(select(ApiKey).where(ApiKey.client_id == body.client_id)).first()
    if key is None or not key.is_active or not security.matches(body.client_secret, key.secret_digest):
        raise HTTPException(status_code=401, detail="Invalid client credentials")
    return Token(
        token_type="Bearer",
        access_token=security.issue(key.client_id, key.epoch, security.ACCESS_SECONDS),
        expires_in=security.ACCESS_SECONDS,
        refresh_token=security.issue(key.client_id, key.epoch, security.REFRESH_SECONDS),
        permissions=key.permissions.split(),
    )
