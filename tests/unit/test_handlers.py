"""Handlers without an app, and declarations whose options are typed."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any, Unpack, get_type_hints

import pytest

from profilesvc.api.endpoint import Endpoint, Options, Routes
from profilesvc.api.oauth_endpoint import OAuthRoutes
from profilesvc.api.routes.tokens import issue_token
from profilesvc.api.routes.wellknown import find_server_metadata
from profilesvc.contract.tokens import TokenRequest
from profilesvc.domain.errors import ServiceError


def parts(**given: Any) -> Any:
    """Services with only the parts that a handler needs."""
    return SimpleNamespace(**given)


async def test_a_handler_is_called_without_an_app() -> None:
    services = parts(signer=SimpleNamespace(base_url="https://profiles.test"), identity=None)
    metadata = await find_server_metadata(services)
    assert metadata.token_endpoint == "https://profiles.test/oauth2/token"
    assert "urn:ietf:params:oauth:grant-type:token-exchange" not in metadata.grant_types_supported


async def test_a_handler_rejects_without_an_app() -> None:
    body = TokenRequest.model_validate(
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": "token",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        }
    )
    with pytest.raises(ServiceError, match="identity provider") as refusal:
        await issue_token(parts(identity=None), body, "")
    assert refusal.value.kind.code == "VALIDATION_ERROR"


def test_the_options_of_a_declaration_are_the_fields_of_an_endpoint() -> None:
    """mypy refuses a name that is not in Options, and so a misspelt one."""
    required = {"method", "path", "access", "handler", "data", "parameters"}
    assert set(get_type_hints(Options)) == {field.name for field in fields(Endpoint)} - required
    assert Routes.endpoint.__annotations__["options"] == Unpack[Options]
    assert not [hint for hint in OAuthRoutes.endpoint.__annotations__.values() if hint is Any]
