"""Verifications v1: the voice of merchant, the list, and the steps of a verification: options, verify, complete."""

import json
from collections.abc import Iterator

from quart import Blueprint

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.verification import (
    CompleteVerificationRequest,
    FetchVerificationOptionsRequest,
    VerifyLocationRequest,
)
from profilesvc.domain.time import iso
from profilesvc.emulator.errors import bad_request, failed_precondition, not_found
from profilesvc.emulator.locations import find_location, set_voice_of_merchant
from profilesvc.emulator.rules import CUSTOMERS_ONLY, host_of
from profilesvc.emulator.state import emulator, now, switches
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import EmulatorLocationRow
from profilesvc.emulator.wire import page, pruned, read_message, read_query

verification = Blueprint("verification", __name__, url_prefix="/v1/locations")
_GRANTED = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
_POSTAL_DAYS = 14


@verification.get("/<name:location>/VoiceOfMerchantState")
async def get_voice_of_merchant(location: str) -> JsonObject:
    """Return whether the merchant controls the listing and, if not, the required action."""
    read_query()
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    state: JsonObject = pruned(json.loads(row.voice_of_merchant))
    return state


@verification.get("/<name:location>/verifications")
async def list_verifications(location: str) -> JsonObject:
    """Return the verifications, oldest first."""
    query = read_query("pageSize", "pageToken")
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    items = sorted(json.loads(row.verifications), key=_key)
    chunk, more = page(items, _key, query, (100, 100))
    return {**({"verifications": chunk} if chunk else {}), **more}


def _key(item: JsonObject) -> list[str]:
    return [item.get("createTime", ""), item.get("name", "")]


@verification.post("/<name:location>:fetchVerificationOptions")
async def fetch_options(location: str) -> JsonObject:
    """Return the methods by which the location can be verified; none if it is verified."""
    read_query()
    body = await read_message(FetchVerificationOptionsRequest, "request")
    if not body.get("languageCode"):
        raise bad_request("language_code", "Field is required")
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    _check_context(row, body)
    options = list(_options(row))
    return {"options": options} if options else {}


def _check_context(row: EmulatorLocationRow, body: JsonObject) -> None:
    if "context" in body and json.loads(row.document).get("serviceArea", {}).get("businessType") != CUSTOMERS_ONLY:
        raise bad_request("context", "Field must not be set for this location")


def _options(row: EmulatorLocationRow) -> Iterator[JsonObject]:
    """Return the methods that the profile's phone, website domain and address allow."""
    document = json.loads(row.document)
    if json.loads(row.voice_of_merchant).get("hasVoiceOfMerchant"):
        return
    if switches().offer_auto:
        yield {"verificationMethod": "AUTO"}
    if phone := document.get("phoneNumbers", {}).get("primaryPhone"):
        yield {"verificationMethod": "PHONE_CALL", "phoneNumber": phone}
        yield {"verificationMethod": "SMS", "phoneNumber": phone}
    if domain := host_of(document.get("websiteUri", "")):
        data = {"domain": domain, "user": "info", "isUserNameEditable": True}
        yield {"verificationMethod": "EMAIL", "emailData": data}
    if address := document.get("storefrontAddress"):
        letter = {"business": document["title"], "address": address, "expectedDeliveryDaysRegion": _POSTAL_DAYS}
        yield {"verificationMethod": "ADDRESS", "addressData": letter}


@verification.post("/<name:location>:verify")
async def verify(location: str) -> JsonObject:
    """Start a verification by an offered method. AUTO completes it immediately."""
    read_query()
    body = await read_message(VerifyLocationRequest, "request")
    if not body.get("method"):
        raise bad_request("method", "Field is required")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        _check_context(row, body)
        _check_offered(row, body)
        verifications = json.loads(row.verifications)
        completed = body["method"] == "AUTO"
        started = {
            "name": f"{row.name}/verifications/{len(verifications) + 1}",
            "method": body["method"],
            "state": "COMPLETED" if completed else "PENDING",
            "createTime": iso(now()),
        }
        row.verifications = dump([*verifications, started])
        set_voice_of_merchant(row, _GRANTED if completed else {"verify": {"hasPendingVerification": True}})
    return {"verification": started}


def _check_offered(row: EmulatorLocationRow, body: JsonObject) -> None:
    offered = {option["verificationMethod"]: option for option in _options(row)}
    if body["method"] not in offered:
        raise failed_precondition("The verification method is not available for this location.")
    option = offered[body["method"]]
    if "phoneNumber" in option and body.get("phoneNumber") != option["phoneNumber"]:
        raise bad_request("phone_number", "Must be one of the offered numbers")
    domain = option.get("emailData", {}).get("domain")
    if domain and body.get("emailAddress", "").rpartition("@")[2] != domain:
        raise bad_request("email_address", "Must be one of the offered addresses")


@verification.post("/<name:location>/verifications/<name:attempt>:complete")
async def complete(location: str, attempt: str) -> JsonObject:
    """Complete a pending verification by the PIN of the switches. The error for a wrong PIN is a guess."""
    read_query()
    pin = (await read_message(CompleteVerificationRequest, "request")).get("pin")
    if not pin:
        raise bad_request("pin", "Field is required")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        verifications = json.loads(row.verifications)
        current = next((item for item in verifications if item["name"] == f"{row.name}/verifications/{attempt}"), None)
        if current is None:
            raise not_found()
        if current["state"] != "PENDING":
            raise failed_precondition("The verification is not pending.")
        if pin != switches().pin:
            raise bad_request("pin", "Invalid PIN")
        current["state"] = "COMPLETED"
        row.verifications = dump(verifications)
        set_voice_of_merchant(row, _GRANTED)
    return {"verification": current}
