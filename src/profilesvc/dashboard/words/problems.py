"""The problems of forms in the reader's language: the label of the field, and the sentence of the service."""

import re
from functools import cache, lru_cache

from profilesvc.contract.errors import IDEMPOTENCY_KEY_REUSED
from profilesvc.dashboard.words import events as event_words
from profilesvc.domain.errors import ServiceError
from profilesvc.language.texts import N_, _, gettext

# Fields of the API, with the input of the form that shows their problems and its label.
INPUTS = {
    "name": ("name", N_("Name")),
    "email": ("email", N_("E-mail address")),
    "topicType": ("kind", N_("Kind of post")),
    "summary": ("summary", N_("Text")),
    "callToAction.actionType": ("action", N_("Button")),
    "callToAction.url": ("action_url", N_("Button link")),
    "event": ("title", N_("Title")),
    "event.title": ("title", N_("Title")),
    "event.schedule": ("start_date", N_("Start and end")),
    "event.schedule.startDate": ("start_date", N_("First day")),
    "event.schedule.startTime": ("start_time", N_("Start time")),
    "event.schedule.endDate": ("end_date", N_("Last day")),
    "event.schedule.endTime": ("end_time", N_("End time")),
    "offer.couponCode": ("coupon", N_("Coupon")),
    "offer.redeemOnlineUrl": ("redeem_url", N_("Link to redeem")),
    "offer.termsConditions": ("terms", N_("Terms")),
    "media": ("photo", N_("Photo")),
    "site": ("site", N_("Sites")),
    "due_at": ("publish_date", N_("Publish at")),
    "zone": ("zone", N_("Time zone")),
    "languageCode": ("language", N_("Language")),
    "comment": ("comment", N_("Your reply")),
    "primary_domain": ("primary_domain", N_("Domain of the site")),
    "allowed_domains": ("allowed_domains", N_("Additional domains")),
    "permissions": ("permissions", N_("Permissions")),
    "assigned_location_id": ("location", N_("Location")),
    "business_id": ("business_id", N_("Business")),
    "business_name": ("business_name", N_("New business")),
    "expires_at": ("expires_on", N_("Valid until")),
    "overlap_seconds": ("overlap_seconds", N_("Old secret")),
    "address": ("address", N_("Address")),
    "digest_at": ("digest_at", N_("Daily message at")),
    "time_zone": ("time_zone", N_("Time zone")),
    "muted_locations": ("muted", N_("Muted sites")),
    "reminders": ("reminders", N_("Reminders")),
    "quiet_time": ("quiet_from", N_("Quiet time")),
    "quiet_time.from": ("quiet_from", N_("Quiet from")),
    "quiet_time.to": ("quiet_to", N_("Quiet until")),
    "url": ("url", N_("URL")),
    "description": ("description", N_("Description")),
    "format": ("format", N_("Format")),
    "types": ("types", N_("Events")),
    "since": ("since", N_("Since")),
    "grace_seconds": ("grace", N_("Grace")),
    "snoozed_until": ("days", N_("Snooze")),
    "sure": ("sure", N_("Confirmation")),
    "updateMask": ("", N_("Change")),
}
_LABELS = {**dict(INPUTS.values()), **event_words.KINDS, "": N_("The form")}
# The sentences of the service that forms show often. The API returns them in English; all others stay English.
_SENTENCES = (
    N_("is required"),
    N_("must not be empty"),
    N_("must be a number"),
    N_("must be an integer"),
    N_("must be at least %(least)s"),
    N_("must be at most %(most)s"),
    N_("must have at least %(number)s character"),
    N_("must have at least %(number)s characters"),
    N_("must have at most %(number)s characters"),
    N_("must have 1 to %(number)s characters"),
    N_("must have at least %(number)s item"),
    N_("must have at least %(number)s items"),
    N_("must have at most %(number)s items"),
    N_("must not be longer than %(number)s characters"),
    N_("must not have more than %(number)s entries"),
    N_("must be in the future"),
    N_("must be an http or https address without user info"),
    N_("must be a phone number, such as %(example)s"),
    N_("must be the code of a country, such as JP for Japan"),
    N_("must be a currency of ISO 4217, such as USD"),
    N_("must not contain a link"),
    N_("must not contain angle brackets"),
    N_("must not start or end with a space"),
    N_("must not be more than one year ahead"),
    N_("is not for CALL, which uses the phone number of the profile"),
    N_("is for %(kinds)s posts only"),
    N_("must be in the next 180 days"),
    N_("must not be in the future"),
    N_("must be a date such as %(example)s"),
    N_("must be a month such as %(example)s"),
    N_("must be a number of hours from 0 to %(most)s"),
    N_("must name a domain such as example.com"),
    N_("must be a domain name, not an IP address"),
    N_("must be a registered domain, not a public suffix or a single word"),
    N_("must not contain an underscore, which no registered domain has"),
    N_("must not have a hyphen at the start or end of a label"),
    N_("must not contain the invisible character %(code)s"),
    N_("must be a plain domain, without user info, wildcards or escapes"),
    N_("must have a port from 1 to 65535"),
    N_("must not contain spaces or control characters"),
    N_("must be a JPEG or PNG image"),
    N_("must have 10 KB to 5 MB"),
    N_("must have at least %(number)s pixels on each side"),
    N_("must be a valid URL"),
    N_("must start with https://"),
    N_("must have a valid domain"),
    N_("must not lead to a private address"),
    N_("must be times such as 09:00-17:30, with commas between several"),
    N_("must have times from 00:00 to 24:00, and open before 24:00"),
    N_("must not have times that overlap"),
    N_("must have dates that exist, with their year"),
    N_("must be a date that exists"),
    N_("must close at 11:59 or earlier on the next day, less than 24 hours after it opens"),
    N_("is open for %(length)s hours. Correct the times, or confirm them at the end of the form"),
    N_("must have a line such as `2026-12-24 09:00-12:00` or `2026-12-25 closed` for each date"),
    N_("is not the name of a time zone, such as Europe/Berlin"),
    N_("is used by another of your alerts"),
    N_("is used by another of your webhooks"),
    N_("enter a day and a time"),
    N_("select at least one"),
    N_("select one of the times"),
    N_("select 1 to %(most)s sites"),
    N_("tick the box to confirm"),
    N_("is not offered for these categories"),
    N_("is not one of your locations"),
    N_("beyond the locations of the plan %(plan)s"),
    N_("already has %(number)s keys; revoke one first"),
    N_("must be a complete form as browsers send it"),
    N_("The access token is missing, invalid or expired. Request a new one."),
    N_("These credentials do not allow this operation."),
    N_("The monthly post limit is reached."),
    N_("Not found, or you do not have access to it."),
    N_("The request did not arrive in time. Send it again."),
    N_("The location is not verified. Verify it at the provider before you enable or run sync."),
    N_("Sync is switched off for this location. Switch it on first."),
    N_("The request conflicts with the current state."),
    N_("Too many requests. Retry after the time in Retry-After."),
    N_("Internal error. Report the request id if it happens again."),
    N_("The service is temporarily unavailable. Retry later."),
    N_("Page not found."),
    N_("This form is not from your session. Reload the page."),
    N_("Forms are accepted only from the pages of %(address)s. Open the dashboard at this address."),
    N_("The body must not exceed %(number)s KB."),
    N_("The fields of the form must not exceed %(number)s KB."),
    N_("The form must not have more than %(number)s fields."),
    N_("Another file of your account is being made. Try again when that download has ended."),
    N_("Too many files are being made. Try again in a minute."),
    N_("The template does not exist any more."),
    N_("This sign-in was not started in this browser. Start again."),
    N_("This sign-in was not started in this browser, or it has expired. Start again."),
    N_(
        "Your login was not connected, because the account that it was for is no longer active. This service does not "
        "keep the access that you have just allowed."
    ),
    N_("The identity provider cannot be reached. Try again later."),
    N_("The identity provider did not sign you in."),
    N_("The identity provider rejected the code. Start again."),
    N_("The identity provider does not accept this service. Ask the operator of this service."),
    N_("The plan %(plan)s does not include posts."),
    N_("The plan %(plan)s does not include reviews."),
    N_("The plan %(plan)s does not include sync."),
    N_("The location already has %(number)s live keys. Revoke one first."),
    N_("The previous secret is still valid. Wait until it expires, or roll without an overlap."),
    N_("Another sync of this location is running."),
    N_("The webhook is disabled. Enable it first."),
    N_("The address is disabled. Enable it first."),
    N_("This post is being sent to the provider, so it cannot be changed now."),
    N_("The monthly limit of %(number)s posts is used up. It resets on %(day)s."),
    N_("The provider did not respond for 20 hours. Look at the profile before you send the post again."),
    N_("The external provider rejected the request: %(text)s"),
    N_("The external provider rejected the request at %(fields)s: %(text)s"),
    N_("The external provider is not available."),
    N_("The quota of requests to the external provider is used up; try again later."),
    N_("This owner's share of the quota of requests to the external provider is used up; try again later."),
    N_("The limit of %(number)s updates of locations per day is used up; try again later."),
    N_("This owner's share of the limit of %(number)s updates of locations per day is used up; try again later."),
    N_("The external provider is not available; try again later."),
    N_("The external provider did not respond in time; try again."),
    N_("The owner's login at the external provider has ended and must be connected again."),
    N_("The external provider accepts no more requests for now; try again later."),
)


def input_of(path: str) -> tuple[str, str]:
    """Return the name and label of the input for a field of the API, or for the nearest field around it.

    An input may also be named itself.
    """
    nearest = path
    while nearest and nearest not in INPUTS:
        nearest = nearest.rpartition(".")[0]
    name, label = INPUTS.get(nearest) or (path if path in _LABELS else "", _LABELS.get(path, path))
    return name, gettext(label)


def general(error: ServiceError) -> list[str]:
    """Return the problems of an error that names no field."""
    if error.kind is IDEMPOTENCY_KEY_REUSED:
        return [_("This form was sent to this site before, with other contents. For another post, start a new form.")]
    message = error.details.get("provider_message")
    return [in_words(error.message), *([_("The provider's message: %(text)s", text=message)] if message else [])]


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    values = re.compile(r"%\\\((\w+)\\\)s")
    return [(text, re.compile(values.sub(r"(?P<\1>.+?)", re.escape(text)), re.DOTALL)) for text in _SENTENCES]


@lru_cache(1024)
def _known(sentence: str) -> tuple[str, dict[str, str]]:
    """Return the text of a sentence with its values; for one that is not listed the sentence itself."""
    for text, pattern in _patterns():
        if match := pattern.fullmatch(sentence):
            return text, match.groupdict()
    return sentence, {}


# Of a response that a program reads, and what its owner reads instead.
_FOR_OWNERS = {
    "Too many requests. Retry after the time in Retry-After.": N_("Too many requests. Try again in a minute."),
}


def in_words(sentence: str) -> str:
    """Return a sentence of the service in the reader's language."""
    text, values = _known(sentence)
    return _(_FOR_OWNERS.get(text, text), **values)
