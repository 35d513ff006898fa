"""Forms of pages. Their size, the number of their fields and their token are checked before they are parsed.

Quart's parser has no limit for fields, and its cost grows with the number of parts: a form of 1 MB cost 1 s.
"""

import io
import re
from collections.abc import Callable
from typing import NamedTuple, cast
from urllib.parse import parse_qsl, unquote_plus

from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser
from quart import Request
from quart.datastructures import FileStorage
from werkzeug.datastructures import MultiDict
from werkzeug.http import parse_options_header

from profilesvc.api.request import KB, AwaitedBody, Upload
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE
from profilesvc.domain.errors import ServiceError, invalid

Check = Callable[[str], None]  # of the form's token; raises what the response is
TOKEN = "csrf"  # noqa: S105  the name of the first field of a form
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_TOKEN = re.compile(rb"(?:\A|&)csrf=([^&]{0,2000})(?=&|\Z)")
_HEAD_LINE, _HEAD_LINES = KB, 4  # of a part: browsers send two lines, with a name of at most 255 characters


class FormRule(NamedTuple):
    """The limits of a form: bytes and number of its fields, and a file if `upload` is set.

    `secrets` names fields that are never kept for a user whose session has ended.
    """

    largest: int
    fields: int
    upload: Upload | None = None
    secrets: frozenset[str] = frozenset()


BUTTONS = FormRule(4 * KB, 20)  # forms of buttons and boxes to tick
TEXTS = FormRule(64 * KB, 200)
LOGIN = FormRule(16 * KB, 40)  # of the development issuer, whose parameters are longer


def fields_of(raw: bytes, rule: FormRule, check: Check | None = None) -> "MultiDict[str, str]":
    """Return the fields of a URL-encoded form, after its number of fields and its token are checked.

    Raises:
        ServiceError: PAYLOAD_TOO_LARGE; what `check` raises.
    """
    if raw.count(b"&") >= rule.fields:
        raise _too_many(rule)
    if check is not None:
        match = _TOKEN.search(raw)
        check("" if match is None else unquote_plus(match[1].decode("latin1")))
    return MultiDict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))


async def read(incoming: Request, rule: FormRule, check: Check | None = None) -> None:
    """Read the form of a request, which is then its `form` and `files`.

    Raises:
        ServiceError: PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, VALIDATION_ERROR, REQUEST_TIMEOUT,
            SERVICE_UNAVAILABLE; what `check` raises.
    """
    body, form = cast(AwaitedBody, incoming.body), MultiDict[str, str]()
    files = MultiDict[str, FileStorage]()
    media_type, options = parse_options_header(incoming.headers.get("Content-Type"))
    if media_type == _MULTIPART and rule.upload is not None:
        parts = Parts(options.get("boundary", ""), rule, check)
        await body.feed(rule.upload, rule.largest, parts.feed)
        form, files = parts.finished()
    elif media_type == _URLENCODED or not media_type:
        form = fields_of(await body.read(rule.largest), rule, check)
    else:
        raise ServiceError(UNSUPPORTED_MEDIA_TYPE, f"Send the form as {_URLENCODED}.")
    incoming._form, incoming._files = form, files


class Parts:
    """A form with files that is parsed while it arrives. Only the start of a file that is too large is kept."""

    def __init__(self, boundary: str, rule: FormRule, check: Check | None) -> None:
        self._rule, self._check = rule, check
        self._size = 0
        self._form, self._files = MultiDict[str, str](), MultiDict[str, FileStorage]()
        self._part: MultipartSegment | None = None
        self._content = bytearray()
        limits = {"max_header_size": _HEAD_LINE, "max_header_count": _HEAD_LINES, "max_segment_count": rule.fields}
        try:
            self._parser = PushMultipartParser(boundary.encode(), **limits)
        except MultipartError:
            raise _malformed() from None

    def feed(self, piece: bytes) -> None:
        try:
            for event in self._parser.parse(piece) if piece and not self._parser.closed else ():
                if isinstance(event, MultipartSegment):
                    if self._check is not None and event.name != TOKEN:
                        self._check("")
                    self._part, self._content = event, bytearray()
                elif event is None:
                    self._end()
                else:
                    self._add(event)
        except ParserLimitReached:
            raise _too_many(self._rule) from None
        except MultipartError:
            raise _malformed() from None

    def finished(self) -> "tuple[MultiDict[str, str], MultiDict[str, FileStorage]]":
        """Return the fields and the files.

        Raises:
            ServiceError: VALIDATION_ERROR if the end of the form is missing.
        """
        try:
            self._parser.close()
        except MultipartError:
            raise _malformed() from None
        if self._check is not None:  # a form without fields
            self._check("")
        return self._form, self._files

    def _add(self, data: bytes) -> None:
        assert self._part is not None, "a part has started"
        if self._part.filename is not None:
            assert self._rule.upload is not None, "only such forms are parsed here"
            self._content += data[: max(self._rule.upload.file + 1 - len(self._content), 0)]
            return
        self._size += len(data)
        if self._size > self._rule.largest:
            message = f"The fields of the form must not exceed {self._rule.largest // KB} KB."
            raise ServiceError(PAYLOAD_TOO_LARGE, message)
        self._content += data

    def _end(self) -> None:
        part, content = self._part, self._content
        assert part is not None, "a part has started"
        if part.filename is None:
            text = content.decode("utf-8", "replace")
            if self._check is not None:
                self._check(text)
                self._check = None  # the token is valid
            self._form.add(part.name, text)
        elif part.filename:
            self._files.add(part.name, FileStorage(io.BytesIO(content), part.filename, part.name))


def _too_many(rule: FormRule) -> ServiceError:
    return ServiceError(PAYLOAD_TOO_LARGE, f"The form must not have more than {rule.fields} fields.")


def _malformed() -> ServiceError:
    return invalid("body", "", "must be a complete form as browsers send it")
