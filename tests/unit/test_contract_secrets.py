"""A model with a secret does not show it in a log or a traceback."""

import pytest
from pydantic import BaseModel

from profilesvc.contract.connection import CredentialCheck
from profilesvc.contract.keys import KeyCreated
from profilesvc.contract.tokens import ClientCredentialsGrant, RefreshGrant, Token, TokenRequest

SECRETS = {"client_secret", "access_token", "refresh_token"}


@pytest.mark.parametrize("model", [KeyCreated, Token, ClientCredentialsGrant, RefreshGrant, CredentialCheck])
def test_models_do_not_show_their_secrets(model: type[BaseModel]) -> None:
    found = SECRETS & set(model.model_fields)
    assert found
    assert not any(model.model_fields[name].repr for name in found)


def test_a_grant_is_shown_without_its_secret() -> None:
    request = {"grant_type": "client_credentials", "client_id": "svcid_1", "client_secret": "hidden"}
    assert "hidden" not in repr(TokenRequest.model_validate(request))
