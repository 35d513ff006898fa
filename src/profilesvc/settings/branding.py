"""The operator's name and logo, checked at the start, so that a bad file is not found by the first visitor."""

import re
from pathlib import Path
from xml.etree import ElementTree

_LONGEST_NAME = 40
_LARGEST = 100_000
_PNG = b"\x89PNG\r\n\x1a\n"
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_ROOT = "{http://www.w3.org/2000/svg}svg"
_ACTIVE = re.compile(rb"<!DOCTYPE|<!ENTITY|<(?:\w+:)?(?:script|foreignObject)\b|\son\w+\s*=|javascript:", re.IGNORECASE)


def product_name(value: str) -> str:
    """Return the name if it fits in the header and in the header fields of a mail.

    Raises:
        ValueError: The name is empty, too long or not printable.
    """
    name = value.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"must have 1 to {_LONGEST_NAME} printable characters")
    return name


def type_of(file: Path) -> str:
    """Return the media type of a logo, by the end of its name."""
    return _TYPES.get(file.suffix.lower(), "")


def logo_file(file: Path | None) -> Path | None:
    """Return the file if it is a picture that pages may show.

    Raises:
        ValueError: The file cannot be read, is too large, is neither SVG nor PNG, or has scripts.
    """
    if file is None:
        return None
    if not type_of(file):
        raise ValueError(f"{file} must end with .svg or .png")
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise ValueError(f"{file} is larger than {_LARGEST // 1000} kB")
    if type_of(file) == "image/png":
        if not content.startswith(_PNG):
            raise ValueError(f"{file} is not a PNG file")
    elif problem := _svg_problem(content):
        raise ValueError(f"{file} {problem}")
    return file


def _svg_problem(content: bytes) -> str:
    """Return why an SVG file is not shown. One with a DTD is rejected before anything expands its entities."""
    if b"\0" in content:  # UTF-16, which browsers and parsers read, and in which nothing would be found
        return "must be in UTF-8"
    if _ACTIVE.search(content):
        return "has scripts, event handlers, foreign objects or a DTD; remove them"
    try:
        root = ElementTree.fromstring(content)  # noqa: S314  the operator's own file, without a DTD
    except ElementTree.ParseError:
        return "is not an SVG file"
    except (LookupError, ValueError):  # it declares an encoding that the parser does not have
        return "must be in UTF-8"
    return "" if root.tag == _ROOT else "is not an SVG file"
