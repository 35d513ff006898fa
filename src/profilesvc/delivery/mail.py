"""Alerts by e-mail: what is sent now, what waits, and the daily digest."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from functools import cache
from typing import Literal
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from profilesvc.contract.alerts import DOWN, AlertSettings
from profilesvc.contract.events import PublishedEvent
from profilesvc.delivery.messages import Story, page_of, story
from profilesvc.delivery.senders import Attempt, Delivered, Due, Failed, Outcome, Postponed, Retry, Skipped
from profilesvc.delivery.smtp import UNSUBSCRIBE, Mailer, Rejected, Unsent
from profilesvc.domain import heartbeats
from profilesvc.domain.alerts import next_time
from profilesvc.domain.bidi import html_without_controls, without_controls
from profilesvc.domain.hosts import mailbox
from profilesvc.domain.problems import counted
from profilesvc.domain.time import DAY, SECOND, parse_iso
from profilesvc.services.context import Services
from profilesvc.services.events import number_of
from profilesvc.services.notify import alerts
from profilesvc.storage.notify import alerts as stored
from profilesvc.storage.notify.alerts import Told

_ORDER = (*DOWN, "connection.site_mismatch", "token.reuse_detected", "key.expiring", "sync.failed", "post.rejected")
# With the time of one message it must be shorter than worker.LEASE, or all that was sent is claimed and sent again.
_ROUND = 30 * SECOND
# The last message to an owner, and the only one to the address of a login that has no event.
_DELETED = Story(
    "Your account is deleted",
    "All sessions and API keys have ended, and your data is deleted within minutes. You get no more messages. "
    "If you did not do this, ask the operator of the service at once.",
)
When = Literal["now", "again", "digest"]


class MailSender:
    """Sends to e-mail addresses."""

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer

    async def __call__(self, services: Services, due: list[Due], ended: dict[int, Outcome]) -> Outcome:
        """Send what is due for an address, each alert in a message of its own. See senders.Sender."""
        settings, end = alerts.settings_of(due[0].channel), due[0].now + _ROUND
        try:
            mailbox(due[0].channel.target)  # that of a login is not checked before
        except ValueError as error:
            return Failed(Attempt(due[0].now, error=f"the address {error}"), disable="rejected")
        digest: list[Due] = []
        for each in due:
            if services.clock.now() >= end:
                return Postponed(end)
            when = await _when(services, settings, each)
            if when == "digest":
                digest.append(each)
            elif isinstance(when, str):
                ended[each.id] = await self._send(services, [each], _alert(services, each, is_again=when == "again"))
                await self._remind(services, settings, each, ended[each.id])
            else:
                ended[each.id] = when
        if digest and services.clock.now() < end:
            outcome = await self._send(services, digest, _digest(services, digest))
            ended.update(dict.fromkeys((each.id for each in digest), outcome))
        return Postponed(end)

    async def _remind(self, services: Services, settings: AlertSettings, due: Due, outcome: Outcome) -> None:
        """Queue the reminder of an alert that was sent. Its outcome is stored already, so a failure repeats no mail."""
        if isinstance(outcome, Delivered) and settings.reminders and due.event and due.event.type in DOWN:
            async with services.storage.write() as session:
                await stored.add_reminder(
                    session, due.owner_id, due.channel.id, number_of(due.event), due.id, due.now + DAY
                )

    async def _send(self, services: Services, due: list[Due], message: EmailMessage) -> Outcome:
        first = due[0]
        try:
            await self._mailer.send(message, mailbox(first.channel.target), f"{first.now}-{first.owner_id}-{first.id}")
        except Rejected as error:
            return Failed(Attempt(first.now, error=str(error)), disable="rejected")
        except Unsent as error:
            return Retry(Attempt(first.now, error=str(error)))
        return Delivered(Attempt(services.clock.now()))


async def _when(services: Services, settings: AlertSettings, due: Due) -> When | Outcome:
    """Return whether a delivery is sent now, perhaps as a reminder, or in a digest, or what becomes of it instead."""
    event = due.event
    when: When = "now"
    if event is None or due.channel.kind == "notice":
        return "now"
    if due.channel.confirmed_at is None:
        return Skipped("the address is not confirmed")
    if event.data.get("location_id", event.data.get("key", {}).get("assigned_location_id")) in settings.muted_locations:
        return Skipped("alerts of the location are switched off")
    is_answer = event.type == "connection.online" and event.type not in (*settings.immediate, *settings.daily)
    if is_answer or event.type in DOWN:
        async with services.storage.read() as session:
            told = await stored.told(session, due.owner_id, due.channel.id, number_of(event), due.now)
        if (outcome := _unwanted(event, told, due.now)) is not None:
            return outcome
        when = "again" if told.event_id == number_of(event) else "now"
        if when == "again" and not settings.reminders:
            return Skipped("reminders are switched off")
    until = alerts.quiet_end(settings, due.now)
    if is_answer or event.type in settings.immediate:
        return when if until is None else Postponed(until)
    if event.type not in settings.daily:
        return Skipped("alerts of this type are switched off")
    at = next_time(settings.digest_at, settings.time_zone, parse_iso(event.created_at))
    if at > due.now:
        return Postponed(at)
    return "digest" if until is None else Postponed(until)


def _unwanted(event: PublishedEvent, told: Told, now: int) -> Outcome | None:
    """Return what becomes of an alert that is no news to its reader, or not wanted yet; None if it is sent."""
    if event.type == "connection.online":
        if told.type not in DOWN:
            return Skipped("no alert said that the site was offline")
        return None if told.last_id == number_of(event) else Skipped("the site was offline again since then")
    if not told.works:
        return Skipped("the API key is deactivated, or has ended")
    if told.state not in heartbeats.DOWN:
        return Skipped("the site is connected again")
    if told.snoozed_until is not None and told.snoozed_until > now:
        return Postponed(told.snoozed_until)
    return None


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("profilesvc.delivery"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _alert(services: Services, due: Due, *, is_again: bool) -> EmailMessage:
    base = f"{services.settings.base_url}/dashboard"
    if due.event is None and due.channel.confirmed_at is None:
        told = Story("Confirm this address to receive alerts about your sites", "The link is valid for three days.")
        link = f"{base}/alerts/confirm/{alerts.confirming_link(services, due.channel, due.now)}"
        return _message(services, [due], told.title, [told], link, "Confirm the address")
    if due.event is None and due.channel.kind == "notice":
        return _message(services, [due], _DELETED.title, [_DELETED], base, "Open the dashboard")
    if due.event is None:
        told = Story("This is a test of your alerts")
        return _message(services, [due], told.title, [told], base, "Open the dashboard")
    told, (path, text) = story(due.event, due.subject), page_of(due.event, due.subject)
    if is_again:
        told = told._replace(title=f"Still: {told.title}")
    return _message(services, [due], _title(told), [told], services.settings.base_url + path, text)


def _title(told: Story) -> str:
    return f"{told.title}: {told.detail}" if told.detail else told.title


def _digest(services: Services, due: list[Due]) -> EmailMessage:
    """Return the digest, with the sites that are down first, then in the order of time."""
    reportable = [each for each in due if each.event is not None]
    reportable.sort(key=lambda each: (_rank(each), each.id))
    stories = [story(each.event, each.subject) for each in reportable if each.event is not None]
    subject = f"Daily digest: {counted(len(stories), 'event')}"
    return _message(
        services, reportable, subject, stories, f"{services.settings.base_url}/dashboard", "Open the dashboard"
    )


def _rank(due: Due) -> int:
    kind = "" if due.event is None else due.event.type
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _message(
    services: Services, due: list[Due], subject: str, stories: list[Story], link: str, link_text: str
) -> EmailMessage:
    """Build a message. A repeated attempt has the same Message-ID, so that mail programs show it once."""
    first, settings = due[0], services.settings
    host = urlsplit(settings.base_url).hostname or "localhost"
    values: dict[str, object] = {"subject": subject, "link": link, "link_text": link_text, "unsubscribe": ""}
    if first.channel.confirmed_at is not None and first.channel.kind != "notice":
        sealed = alerts.unsubscribing_link(services, first.channel)
        values["unsubscribe"] = f"{settings.base_url}/dashboard/alerts/unsubscribe/{sealed}"
    values["stories"] = [_values(settings.base_url, each, told) for each, told in zip(due, stories, strict=True)]
    message = EmailMessage()
    message["From"] = formataddr((settings.dashboard.product_name, settings.mail.from_))
    message["To"] = mailbox(first.channel.target)
    message["Subject"] = without_controls(" ".join(subject.split()))[:200]
    message["Date"] = format_datetime(datetime.fromtimestamp(first.now // 1000, UTC))
    message["Message-ID"] = f"<{first.owner_id}.{first.channel.id}.{first.id}@{host}>"
    if first.event is not None and len(due) == 1 and "client_id" in first.event.data:
        # Mail programs show messages with the same reference as one conversation.
        message["References"] = f"<{first.channel.id}.{first.event.data['client_id']}@{host}>"
    message["Auto-Submitted"] = "auto-generated"
    if values["unsubscribe"]:
        message[UNSUBSCRIBE] = f"<{values['unsubscribe']}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(without_controls(_templates().get_template("mail.txt").render(**values)))
    html = html_without_controls(_templates().get_template("mail.html").render(**values))
    message.add_alternative(html, subtype="html")
    return message


def _values(base_url: str, due: Due, told: Story) -> dict[str, str]:
    """Return a story for the templates, which need its link only in a digest."""
    values = {"title": _title(told), "advice": told.advice, "at": "", "link": base_url}
    if due.event is not None:
        values["at"] = f"{due.event.created_at[:16].replace('T', ' ')} UTC"
        values["link"] += page_of(due.event, due.subject)[0]
    return values
