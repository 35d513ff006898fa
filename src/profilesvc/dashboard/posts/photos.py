"""Photos that owners upload, at addresses that the provider can fetch without signing in."""

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.quart_fast import SharedBody
from profilesvc.api.request import Upload
from profilesvc.dashboard.visits import Visit, counted_by_address
from profilesvc.domain.photos import LARGEST
from profilesvc.services.drafts import photos

_MB = 1024 * 1024
# A phone's photo may be too large, and the other fields are kept. A post may be for all sites of a large plan.
FORM = TEXTS._replace(fields=700, upload=Upload(32 * _MB, LARGEST))
_HEADERS = {"Cache-Control": "public, max-age=86400, immutable", "Content-Disposition": "inline"}


blueprint = Blueprint("photos", __name__)


@blueprint.get("/photos/<name>")
async def photo(name: str) -> Response:
    content = await photos.read(await counted_by_address(), name)
    response = Response(b"", 200, _HEADERS, content_type=content.media_type)
    response.response = SharedBody(content.content, content)
    response.headers["Content-Length"] = str(len(content.content))
    return response


async def with_upload(visit: Visit) -> "MultiDict[str, str]":
    """Return the form; an uploaded photo is stored, and its URL replaces the one of the form.

    Raises:
        ServiceError: VALIDATION_ERROR; CONFLICT for too many photos.
    """
    form: MultiDict[str, str] = MultiDict(await request.form)
    contents = list[bytes]()
    for name, file in (await request.files).items(multi=True):
        if name == "photo_file" and file.filename:
            contents.append(file.read())
        file.close()
    if contents:
        form["photo"] = await photos.store(visit.services, visit.caller, contents[0], form.get("once", ""))
    return form
