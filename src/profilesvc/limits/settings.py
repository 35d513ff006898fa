"""Settings of the rate limits."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr
from pydantic_settings import NoDecode

from profilesvc.domain.rates import Rate, Window

_Rate = Annotated[Rate, NoDecode]  # the value is a plain string, not JSON


def _counters_url(value: SecretStr) -> SecretStr:
    if not re.match(r"memory://\Z|rediss?://|valkeys?://|unix://", value.get_secret_value()):
        raise ValueError("must be memory:// or start with redis://, rediss://, valkey://, valkeys:// or unix://")
    return value


class LimitSettings(BaseModel):
    """Whether limits apply, where the counters are stored, and the rate of each bucket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    storage_url: Annotated[SecretStr, AfterValidator(_counters_url)] = SecretStr("memory://")
    tokens_per_address: _Rate = Window.of("600/minute burst 200")
    tokens_per_client: _Rate = Window.of("120/minute burst 60")
    wrong_secrets: _Rate = Window.of("10/15 minutes")
    heartbeats_per_key: _Rate = Window.of("30/minute")
    reads_per_key: _Rate = Window.of("300/minute")
    reads_per_user: _Rate = Window.of("600/minute")
    writes_per_key: _Rate = Window.of("120/minute")
    writes_per_user: _Rate = Window.of("240/minute")
    syncs_per_location: _Rate = Window.of("10/minute")
    verifications_per_location: _Rate = Window.of("30/hour")
    creations_per_user: _Rate = Window.of("300/hour")

    @property
    def shared(self) -> bool:
        """Whether all processes share their counters."""
        return self.storage_url.get_secret_value() != "memory://"
