"""The type of JSON documents."""

from typing import Any

JsonObject = dict[str, Any]
"""A JSON object, such as a document in the provider's format. Its values have any of JSON's types."""
