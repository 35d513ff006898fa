"""Settings of the rate limits."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr
from pydantic_settings import NoDecode

from profilesvc.domain.rates import Rate, Window

_Rate = Annotated[Rate, NoDecode]  # the value is a plain string, not JSON


def _counters_url(value: SecretStr) -> SecretStr:
    if not re.match(r"memory://\Z|(redis|valkey)s?(\+cluster)?://|unix://", value.get_secret_value()):
        raise ValueError(
            "must be memory:// or start with redis://, rediss://, valkey://, valkeys://, one of these with +cluster "
            "(redis+cluster://), or unix://"
        )
    return value


class LimitSettings(BaseModel):
    """The settings of rate limits: the place of the counters, and the rate of each bucket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """Whether requests are counted. `false` also omits the RateLimit headers."""
    storage_url: Annotated[SecretStr, AfterValidator(_counters_url)] = SecretStr("memory://")
    """`memory://` counts in each process; `redis://…`, `rediss://…` and `valkey://…` count for all processes.
    `redis+cluster://HOST:PORT,HOST:PORT` counts in a cluster."""
    tokens_per_address: _Rate = Window.of("600/minute burst 200")
    """Requests to public endpoints and pages, per IPv4 address or IPv6 /64."""
    tokens_per_client: _Rate = Window.of("120/minute burst 60")
    """Token requests and credential checks, per client id and address."""
    wrong_secrets: _Rate = Window.of("10/15 minutes")
    """Wrong secrets, per client id and address. The right secret is always accepted."""
    heartbeats_per_key: _Rate = Window.of("30/minute")
    """Heartbeats of an API key."""
    reads_per_key: _Rate = Window.of("300/minute")
    """Reads with an API key. A plan can allow more (`reads = "1200/minute"`)."""
    reads_per_user: _Rate = Window.of("600/minute")
    """Reads with a user token."""
    writes_per_key: _Rate = Window.of("120/minute")
    """Changes with an API key."""
    writes_per_user: _Rate = Window.of("240/minute")
    """Changes with a user token."""
    syncs_per_location: _Rate = Window.of("10/minute")
    """Syncs of a location that run, which is the provider's limit. A repeated response does not count."""
    verifications_per_location: _Rate = Window.of("30/hour")
    """Refreshes of a location's verification."""
    creations_per_user: _Rate = Window.of("300/hour")
    """New API keys of a user."""
    mails_per_user: _Rate = Window.of("30/hour")
    """Confirmations and test messages that a user requests."""
    links_per_address: _Rate = Window.of("5/day")
    """Confirmations that a user sends to one address, which may be a stranger's."""
    calls_per_user: _Rate = Window.of("60/minute")
    """Tests of webhooks, repeated and recovered deliveries, and lookups of new URLs that a user requests."""

    @property
    def shared(self) -> bool:
        """Return whether all processes share their counters."""
        return self.storage_url.get_secret_value() != "memory://"
