"""The client of the provider: its operations as HTTP requests, to the real provider or to the emulator."""

import re
from urllib.parse import quote

from profilesvc.contract.common import LOCATION_ID
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.provider.port import ConsentHost, Login, ProviderError, QuotaStanding, Verification
from profilesvc.provider.transport import IMPORT, LIST, READ, WRITE, Api, Params, Request, Transport, objects_of

READ_MASK = ",".join(Location.model_fields)
_ACCOUNT = re.compile(r"accounts/[A-Za-z0-9_-]{1,64}", re.ASCII)
_LOCATION = re.compile(f"locations/{LOCATION_ID.pattern}", re.ASCII)
_INFORMATION: Api = "information"
_VERIFICATIONS: Api = "verifications"


class RemoteProvider:
    """`Provider` over HTTP. It owns the transport and closes it."""

    def __init__(self, transport: Transport, consent: ConsentHost | None = None) -> None:
        self._transport = transport
        self.consent: ConsentHost = consent or transport.consent()

    def signed_in(self, login: Login) -> "RemoteProvider":
        return RemoteProvider(self._transport.signed_in(login), self.consent)

    def for_owner(self, owner_id: int) -> "RemoteProvider":
        return RemoteProvider(self._transport.for_owner(owner_id), self.consent)

    async def quota(self) -> list[QuotaStanding]:
        return await self._transport.quota.standing()

    async def accounts(self) -> list[JsonObject]:
        request = Request("accounts", "accounts", "GET", "/v1/accounts", IMPORT, {"pageSize": "20"})
        return _named(await self._transport.pages(request, "accounts"), _ACCOUNT)

    async def locations(self, account: str) -> list[JsonObject]:
        params = {"readMask": READ_MASK, "pageSize": "100"}
        request = Request("locations", _INFORMATION, "GET", f"/v1/{quote(account)}/locations", IMPORT, params)
        return _named(await self._transport.pages(request, "locations"), _LOCATION)

    async def location(self, name: str) -> JsonObject:
        request = Request("location", _INFORMATION, "GET", f"/v1/{quote(name)}", params={"readMask": READ_MASK})
        return await self._transport.call(request)

    async def google_updated(self, name: str) -> JsonObject:
        path, params = f"/v1/{quote(name)}:getGoogleUpdated", {"readMask": READ_MASK}
        return await self._transport.call(Request("google_updated", _INFORMATION, "GET", path, params=params))

    async def categories(self, region: str, language: str, start: str) -> list[JsonObject]:
        params = {"regionCode": region, "languageCode": language, "view": "BASIC", "filter": f"displayName={start}"}
        request = Request("categories", _INFORMATION, "GET", "/v1/categories", params=params)
        return objects_of((await self._transport.call(request)).get("categories", []))

    async def categories_of(self, names: list[str], region: str, language: str) -> list[JsonObject]:
        params: Params = {"names": names, "regionCode": region, "languageCode": language, "view": "FULL"}
        request = Request("categories_of", _INFORMATION, "GET", "/v1/categories:batchGet", params=params)
        return objects_of((await self._transport.call(request)).get("categories", []))

    async def patch_location(self, name: str, body: JsonObject, update_mask: list[str]) -> JsonObject:
        params = {"updateMask": ",".join(update_mask)}
        request = Request("patch_location", _INFORMATION, "PATCH", f"/v1/{quote(name)}", WRITE, params, body, name)
        return await self._transport.call(request)

    async def validate_location(self, name: str, body: JsonObject, update_mask: list[str]) -> None:
        """Ask whether a patch would be accepted. The response is empty or the location, and says nothing more."""
        params = {"updateMask": ",".join(update_mask), "validateOnly": "true"}
        path = f"/v1/{quote(name)}"
        await self._transport.call(Request("validate_location", _INFORMATION, "PATCH", path, READ, params, body))

    async def verification(self, name: str) -> Verification:
        base, params = f"/v1/{quote(name)}", {"pageSize": "100"}
        voice = Request("verification", _VERIFICATIONS, "GET", f"{base}/VoiceOfMerchantState")
        listing = Request("verification", _VERIFICATIONS, "GET", f"{base}/verifications", LIST, params)
        state = await self._transport.call(voice)
        return Verification(state, await self._transport.pages(listing, "verifications"))

    async def posts(self, account: str, location: str) -> list[JsonObject]:
        request = Request("posts", "posts", "GET", _path(account, location, "localPosts"), LIST, {"pageSize": "100"})
        return await self._transport.pages(request, "localPosts")

    async def create_post(self, account: str, location: str, body: JsonObject) -> JsonObject:
        path = _path(account, location, "localPosts")
        return await self._transport.call(Request("create_post", "posts", "POST", path, WRITE, {}, body, location))

    async def patch_post(
        self, account: str, location: str, post_id: str, body: JsonObject, update_mask: list[str]
    ) -> JsonObject:
        path, params = _path(account, location, "localPosts", post_id), {"updateMask": ",".join(update_mask)}
        return await self._transport.call(Request("patch_post", "posts", "PATCH", path, WRITE, params, body, location))

    async def delete_post(self, account: str, location: str, post_id: str) -> None:
        path = _path(account, location, "localPosts", post_id)
        await self._transport.call(Request("delete_post", "posts", "DELETE", path, WRITE, edits=location))

    async def reviews(
        self, account: str, location: str, *, page_size: int = 50, page_token: str = "", order_by: str = ""
    ) -> JsonObject:
        query = {"pageSize": str(page_size), "pageToken": page_token, "orderBy": order_by}
        path, params = _path(account, location, "reviews"), {name: value for name, value in query.items() if value}
        return await self._transport.call(Request("reviews", "posts", "GET", path, params=params))

    async def review(self, account: str, location: str, review_id: str) -> JsonObject:
        path = _path(account, location, "reviews", review_id)
        return await self._transport.call(Request("review", "posts", "GET", path))

    async def reply(self, account: str, location: str, review_id: str, comment: str) -> JsonObject:
        path, body = f"{_path(account, location, 'reviews', review_id)}/reply", {"comment": comment}
        return await self._transport.call(Request("reply", "posts", "PUT", path, WRITE, body=body))

    async def delete_reply(self, account: str, location: str, review_id: str) -> None:
        path = f"{_path(account, location, 'reviews', review_id)}/reply"
        await self._transport.call(Request("delete_reply", "posts", "DELETE", path, WRITE))

    async def notification_setting(self, account: str) -> JsonObject:
        path = f"/v1/{quote(account)}/notificationSetting"
        return await self._transport.call(Request("notification_setting", "notifications", "GET", path))

    async def set_notifications(self, account: str, topic: str, types: list[str]) -> JsonObject:
        name, params = f"{account}/notificationSetting", {"updateMask": "pubsubTopic,notificationTypes"}
        path, body = f"/v1/{quote(name)}", {"name": name, "pubsubTopic": topic, "notificationTypes": types}
        request = Request("set_notifications", "notifications", "PATCH", path, WRITE, params, body)
        return await self._transport.call(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


def _named(items: list[JsonObject], pattern: re.Pattern[str]) -> list[JsonObject]:
    """Return items whose names are resource names.

    Raises:
        ProviderError: One has another name or none.
    """
    if not all(isinstance(name := item.get("name"), str) and pattern.fullmatch(name) for item in items):
        raise ProviderError("unavailable", retryable=True, provider_message="response has an invalid name")
    return items


def _path(account: str, location: str, collection: str, ident: str | None = None) -> str:
    """Return a v4 path, which must contain the account."""
    parent = f"/v4/{quote(account)}/{quote(location)}/{collection}"
    return parent if ident is None else f"{parent}/{quote(ident, safe='')}"
