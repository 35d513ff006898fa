"""Secrets that are given as a file: `PROFILESVC_SECRET_PEPPER_FILE=/run/secrets/pepper` and so on."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

SUFFIX = "_FILE"
_MAX_BYTES = 65_536
_WITH_PASSWORD = ("database_url", "database_replica_url")  # plain strings, because most of them have no password


def is_secret(name: str, field: FieldInfo) -> bool:
    """Return whether a setting can be given as a file."""
    return field.annotation is SecretStr or name in _WITH_PASSWORD


def variables(model: type[BaseModel], before: str, *, secret: bool = False) -> Iterator[str]:
    """Return the variables of all settings, or of the secrets. `before` is the start of their names."""
    for name, field in model.model_fields.items():
        variable = f"{before}{(field.alias or name).upper()}"
        if isinstance(field.default, BaseModel):
            yield from variables(type(field.default), f"{variable}__", secret=secret)
        elif not secret or is_secret(name, field):
            yield variable


def read_secrets(sources: Sequence[EnvSettingsSource], secrets: Iterable[str]) -> None:
    """Replace each variable of a file by the variable of the secret, with the content of that file.

    Raises:
        ValueError: A file cannot be used, or the secret is also given without a file.
    """
    for variable in secrets:
        key = f"{variable}{SUFFIX}".lower()
        origin = next((source for source in sources if key in source.env_vars), None)
        if origin is None:
            continue
        if any(_has(source.env_vars, variable.lower()) for source in sources):
            raise ValueError(f"{variable} and {variable}{SUFFIX} are both set: remove one of them")
        content = _content(f"{variable}{SUFFIX}", origin.env_vars[key] or "")
        for source in sources:  # an empty variable of the environment would win over a file that `.env` names
            hidden = (key, variable.lower())
            source.env_vars = {name: value for name, value in source.env_vars.items() if name not in hidden}
        origin.env_vars = {**origin.env_vars, variable.lower(): content}


def _has(variables: Mapping[str, str | None], key: str) -> bool:
    """Return whether a secret has a value, in its own variable or in the JSON object of its group."""
    group, _, name = key.rpartition("__")
    try:
        fields = json.loads(variables.get(group) or "{}") if group else {}
    except ValueError:  # the group is reported by its own name
        fields = {}
    return bool(variables.get(key)) or (isinstance(fields, dict) and bool(fields.get(name)))


def _content(variable: str, path: str) -> str:
    """Return the text of a file without the line break at its end. No message repeats the text."""
    if not path:
        raise ValueError(f"{variable} must be the path of a file")
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{variable}: cannot read {path}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise ValueError(f"{variable}: {path} is larger than {_MAX_BYTES // 1024} KB")
    try:
        text = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{variable}: {path} is not UTF-8 text") from None
    if not text.strip():
        raise ValueError(f"{variable}: {path} is empty")
    return text
