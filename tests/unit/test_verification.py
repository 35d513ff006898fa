"""D-73: the table from the provider's answers to isVerified and verificationState."""

from typing import Any

import pytest

from profilesvc.domain.verification import derive, state_of

PENDING, COMPLETED = {"state": "PENDING"}, {"state": "COMPLETED"}


@pytest.mark.parametrize(
    ("voice", "verifications", "state"),
    [
        ({"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}, [], "VERIFIED"),
        ({"hasVoiceOfMerchant": True}, [PENDING], "VERIFIED"),
        ({"complyWithGuidelines": {"recommendationReason": "BUSINESS_LOCATION_SUSPENDED"}}, [PENDING], "SUSPENDED"),
        ({"complyWithGuidelines": {}}, [], "SUSPENDED"),
        ({"resolveOwnershipConflict": {}}, [PENDING], "DUPLICATE"),
        ({"waitForVoiceOfMerchant": {}}, [COMPLETED], "VERIFICATION_REQUESTED"),
        ({"verify": {"hasPendingVerification": True}}, [], "VERIFICATION_REQUESTED"),
        ({"verify": {}}, [COMPLETED, PENDING], "VERIFICATION_REQUESTED"),
        ({"verify": {}}, [PENDING, COMPLETED], "UNVERIFIED"),
        ({"verify": {}}, [{"state": "FAILED"}], "UNVERIFIED"),
        ({"hasBusinessAuthority": True}, [], "UNVERIFIED"),
        ({}, [{}], "UNVERIFIED"),
    ],
)
def test_first_match_wins(voice: dict[str, Any], verifications: list[dict[str, Any]], state: str) -> None:
    assert derive(voice, verifications) == (state == "VERIFIED", state)


@pytest.mark.parametrize(
    ("is_verified", "stored", "state"),
    [
        (True, None, "VERIFIED"),
        (True, "SUSPENDED", "VERIFIED"),
        (False, "SUSPENDED", "SUSPENDED"),
        (False, "VERIFIED", "UNVERIFIED"),
        (False, None, "UNVERIFIED"),
    ],
)
def test_stored_state_stays_while_it_fits(is_verified: bool, stored: str | None, state: str) -> None:
    assert state_of(is_verified, stored) == state
