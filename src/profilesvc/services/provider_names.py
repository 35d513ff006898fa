"""Names of the provider's v4 resources: ours carry no account (D-74)."""

import re

_ACCOUNT = re.compile(r"\Aaccounts/[^/]+/")


def without_account(name: str) -> str:
    """`accounts/1/locations/2/reviews/3` to `locations/2/reviews/3`."""
    return _ACCOUNT.sub("", name)
