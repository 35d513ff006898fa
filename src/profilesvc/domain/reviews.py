"""The rule for a reply to a review."""

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.domain.errors import invalid_many
from profilesvc.domain.messages import parse, without_read_only


def check_reply(body: JsonObject) -> str:
    """Return the comment to send.

    Read-only fields are ignored, so that a reply can be sent back as it was read.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    reply, problems = parse(ReviewReply, without_read_only(ReviewReply, body))
    comment: str = reply.get("comment") or ""
    if not comment.strip() and not any(field == "comment" for _, field, _ in problems):
        problems.append(("body", "comment", "is required and must not be blank"))
    if problems:
        raise invalid_many(problems)
    return comment
