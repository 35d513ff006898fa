"""The verification state of a location, derived from the provider's resources (docs/decisions.md#d-73)."""

from typing import Literal

from profilesvc.contract.json import JsonObject

Flag = Literal["hasGoogleUpdated", "hasPendingEdits", "hasVoiceOfMerchant"]


def derive(voice_of_merchant: JsonObject, verifications: list[JsonObject]) -> tuple[bool, str]:
    """Return `isVerified` and `verificationState` for a VoiceOfMerchantState and the verifications, oldest first.

    The provider omits false values, and the presence of a message has a meaning even if the message is empty.
    """
    if voice_of_merchant.get("hasVoiceOfMerchant"):
        return True, "VERIFIED"
    if voice_of_merchant.get("complyWithGuidelines") is not None:
        return False, "SUSPENDED"
    if voice_of_merchant.get("resolveOwnershipConflict") is not None:
        return False, "DUPLICATE"
    pending = (voice_of_merchant.get("verify") or {}).get("hasPendingVerification")
    latest = verifications[-1].get("state") if verifications else None
    if voice_of_merchant.get("waitForVoiceOfMerchant") is not None or pending or latest == "PENDING":
        return False, "VERIFICATION_REQUESTED"
    return False, "UNVERIFIED"


def state_of(is_verified: bool, stored: str | None) -> str:
    """Return `verificationState` for a profile, which shows only `isVerified`: the stored one, if it fits."""
    if is_verified:
        return "VERIFIED"
    return "UNVERIFIED" if stored in {None, "VERIFIED"} else stored


def has_flag(profile: JsonObject, name: Flag) -> bool:
    """Return whether the metadata of a profile has a flag: consumers see other values, or it is verified."""
    metadata = profile.get("metadata")
    return isinstance(metadata, dict) and metadata.get(name) is True
