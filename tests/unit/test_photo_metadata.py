"""Photos are stored without what they say about the person who took them, and look the same."""

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from profilesvc.domain.photos import media_type, without_metadata

SECRETS = (
    b"GPS-Kamakura",
    b"Camera of Priya",
    b"http://ns.adobe.com",
    b"Photoshop 3.0",
    b"Comment of Priya",
    b"Motion",
)
GPS_IFD, GPS_AREA, ORIENTATION, MAKE = 0x8825, 0x001C, 0x0112, 0x010F


def picture() -> Image.Image:
    made = Image.new("RGB", (300, 260))
    made.putdata([(x * 7 % 256, y * 5 % 256, (x * y) % 256) for y in range(260) for x in range(300)])
    return made


def exif(orientation: int = 6) -> bytes:
    made = Image.Exif()
    made[ORIENTATION], made[MAKE] = orientation, "Camera of Priya"
    made.get_ifd(GPS_IFD)[GPS_AREA] = b"GPS-Kamakura"
    return made.tobytes()


def segment(marker: int, data: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(more: bytes = b"", after: bytes = b"", **options: Any) -> bytes:
    file = io.BytesIO()
    picture().save(file, "JPEG", exif=exif(), comment=b"Comment of Priya", quality=95, **options)
    content = file.getvalue()
    return content[:2] + more + content[2:] + after


def png(**options: Any) -> bytes:
    file, text = io.BytesIO(), PngImagePlugin.PngInfo()
    text.add_text("Comment", "Comment of Priya")
    text.add_itxt("XML:com.adobe.xmp", "http://ns.adobe.com", zip=False)
    picture().save(file, "PNG", exif=exif(), pnginfo=text, **options)
    return file.getvalue()


XMP = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0 GPS-Kamakura")
PHOTOS = {
    "exif": jpeg(),
    "xmp": jpeg(XMP),
    "iptc": jpeg(segment(0xED, b"Photoshop 3.0\0 GPS-Kamakura")),
    "preview of another format": jpeg(segment(0xE2, b"FPXR\0 GPS-Kamakura")),
    "thumbnail": jpeg(segment(0xE0, b"JFXX\0 GPS-Kamakura")),
    "thumbnail of JFIF": jpeg(segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\2\2GPS-Kamakura")),
    "filled marker": jpeg(b"\xff\xff\xff" + XMP[1:]),
    "a film after the end": jpeg(after=b"Motion GPS-Kamakura" * 100),
    "progressive": jpeg(XMP, progressive=True),
    "restart markers": jpeg(XMP, restart_marker_blocks=5),
    "colours": jpeg(icc_profile=b"\0" * 300),
    "png": png(),
    "png after the end": png() + b"Motion GPS-Kamakura",
    "png with data in its end": png()[:-12] + struct.pack(">I", 12) + b"IENDGPS-Kamakura\0\0\0\0",
    "png with colours": png(icc_profile=b"\0" * 300),
}


@pytest.mark.parametrize("name", PHOTOS)
def test_a_photo_has_no_metadata_and_looks_the_same(name: str) -> None:
    before, after = PHOTOS[name], without_metadata(PHOTOS[name])
    assert any(secret in before for secret in SECRETS)
    assert [secret for secret in SECRETS if secret in after] == []
    shown, cleaned = Image.open(io.BytesIO(before)), Image.open(io.BytesIO(after))
    assert cleaned.tobytes() == shown.tobytes()
    assert dict(cleaned.getexif()) == {ORIENTATION: 6}
    assert cleaned.info.get("icc_profile") == shown.info.get("icc_profile")
    assert media_type(after) == ("image/png" if name.startswith("png") else "image/jpeg")
    assert without_metadata(after) == after


@pytest.mark.parametrize("orientation", range(10))
def test_an_orientation_is_kept_if_it_turns_the_photo(orientation: int) -> None:
    file = io.BytesIO()
    picture().save(file, "JPEG", exif=exif(orientation))
    cleaned = Image.open(io.BytesIO(without_metadata(file.getvalue())))
    assert dict(cleaned.getexif()) == ({ORIENTATION: orientation} if 2 <= orientation <= 8 else {})


@pytest.mark.parametrize(
    "tiff",
    [
        b"",
        b"II*\0",
        b"XX*\0\x08\0\0\0",
        b"MM\0*\xff\xff\xff\xff",
        b"MM\0*\0\0\0\x08\xff\xff",
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0",
        b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x04\0\0\0\x01\0\0\0\x06",
    ],
)
def test_malformed_metadata_is_dropped(tiff: bytes) -> None:
    made = jpeg()
    sent = made[:2] + segment(0xE1, b"Exif\0\0" + tiff) + made[2:]
    assert dict(Image.open(io.BytesIO(without_metadata(sent))).getexif()) == {ORIENTATION: 6}


@pytest.mark.parametrize("marker", [0x01, 0x02, 0xBF, 0xC8, 0xF0, 0xFD])
def test_a_segment_that_no_viewer_needs_is_dropped(marker: int) -> None:
    added = segment(marker, b"GPS-Kamakura") if marker != 0x01 else bytes([0xFF, marker])
    assert without_metadata(jpeg(added)) == without_metadata(jpeg())


def test_a_photo_without_an_end_is_completed() -> None:
    content = jpeg(XMP)[:-2]
    assert without_metadata(content).endswith(b"\xff\xd9")
    assert b"GPS-Kamakura" not in without_metadata(content)


def _png_of(*chunks: tuple[bytes, bytes]) -> bytes:
    made = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0",
        b"\xff\xd8\xff\xe0\x00\x01" + bytes(100),
        b"\xff\xd8\xff\xe0\xff\xff" + bytes(100),
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * 2_000,
        b"\xff\xd8" + b"\xff\xd0" * 2_000,
        b"\x89PNG\r\n\x1a\n",
        _png_of((b"IHDR", bytes(13))),
        _png_of((b"IHDR", bytes(13)), (b"IEND", b""))[:-5],
        b"\x89PNG\r\n\x1a\n" + b"\xff\xff\xff\xffIDAT",
        _png_of(*[(b"IDAT", b"")] * 20_000),
    ],
)
def test_a_file_without_a_whole_photo_is_rejected(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a complete image"):
        without_metadata(content)
