"""Create the peers' database from a description on stdin, and print tokens for them. It runs as its own process."""

import json
import sys
from datetime import datetime

from sqlmodel import Session, SQLModel, create_engine

from benchmarks.peers import security
from benchmarks.peers.database import durable, sync_url
from benchmarks.peers.tables import ApiKey, Post, User


def main() -> None:
    """Read {client_id, client_secret, location, posts} and print {key_token, user_token}."""
    description = json.load(sys.stdin)
    engine = create_engine(sync_url())
    durable(engine)
    SQLModel.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(User(id=1, email="alice@example.com", plan="business", epoch=0))
        session.commit()
        session.add(
            ApiKey(
                client_id=description["client_id"],
                user_id=1,
                secret_digest=security.digest(description["client_secret"]),
                location=description["location"],
                permissions="business.read business.write",
                epoch=0,
            )
        )
        session.add_all(_post(description["location"], post) for post in description["posts"])
        session.commit()
    print(
        json.dumps(
            {
                "key_token": security.issue(description["client_id"], 0, security.ACCESS_SECONDS),
                "user_token": security.issue("1", 0, security.ACCESS_SECONDS),
            }
        )
    )


def _post(location: str, post: dict[str, str]) -> Post:
    return Post(
        location=location,
        name=post["name"],
        language_code=post["languageCode"],
        summary=post["summary"],
        action_type=post["callToAction"]["actionType"],  # type: ignore[index]
        action_url=post["callToAction"]["url"],  # type: ignore[index]
        state=post["state"],
        topic_type=post["topicType"],
        search_url=post["searchUrl"],
        create_time=datetime.fromisoformat(post["createTime"]),
        update_time=datetime.fromisoformat(post["updateTime"]),
    )


if __name__ == "__main__":
    main()
