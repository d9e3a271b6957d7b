"""Messages to people: e-mail (`mailto:`), and chat and on-call services by the URLs of Apprise (`slack://…`).

Apprise connects by itself. So only services whose host is fixed are allowed, and two whose host is part of the URL:
that host is checked like one of a webhook, right before each message. Apprise resolves it once more, but speaks TLS
only and follows no redirect, so that a name that leads elsewhere by then ends in a failed handshake.
"""

import json
import logging
import smtplib
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import apprise
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.utils.translation import gettext

from pools.core import errors
from pools.models import Delivery, DeliveryEvent
from pools.platform.conditions import registry
from pools.platform.outbound import faults, guard

EMAIL = "mailto"
LONGEST_EMAIL_URL = 500
LONGEST_SERVICE_URL = 1500
_HOSTED = frozenset(
    {"discord", "gchat", "opsgenie", "pagerduty", "pover", "slack", "splunk", "tgram", "victorops", "wxteams"}
)  # fmt: skip
_WITH_HOST = frozenset({"mmosts", "workflows"})  # Mattermost, Microsoft Teams
SERVICES = _HOSTED | _WITH_HOST
# Others read files (`template`), follow redirects or skip the verification of certificates.
_OPTIONS = frozenset(
    {"channel", "format", "mode", "pa", "priority", "region", "sig", "thread", "to", "ver", "wrap"}
)
_ASSET = apprise.AppriseAsset(
    app_id="Cadastre", app_desc="Cadastre", app_url="", image_url_mask="", image_url_logo="",
    http_redirects=False, secure_logging=True, allow_templates=False,
)  # fmt: skip
# Apprise logs a URL that it cannot read, with its secrets.
logging.getLogger("apprise").disabled = True


def scheme(url: str) -> str:
    """Return the scheme of a URL in small letters, "" without one."""
    return url.strip().partition(":")[0].lower() if ":" in url else ""


def parse_email_url(text: str, field: str) -> str:
    """Return `mailto:` and addresses, separated by commas. Raises InvalidInput url_not_allowed, too_long."""
    if not settings.EMAIL_HOST:
        raise _refused(field, "this site sends no e-mail: EMAIL_URL is not set")
    addresses = [address.strip() for address in text.partition(":")[2].split(",")]
    for address in addresses:
        try:
            validate_email(unquote(address))
        except ValidationError:
            raise _refused(field, f"{address!r} is no e-mail address") from None
    url = f"{EMAIL}:{','.join(addresses)}"
    if len(url) > LONGEST_EMAIL_URL:
        message = f"may have at most {LONGEST_EMAIL_URL} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message)
    return url


def parse_service_url(text: str, field: str) -> str:
    """Return the URL of a service. Raises InvalidInput url_not_allowed, without repeating the URL."""
    if len(text) > LONGEST_SERVICE_URL or not text.isprintable() or " " in text:
        raise _refused(
            field, f"at most {LONGEST_SERVICE_URL} characters without blanks are allowed"
        )
    names = {
        name.lower() for name, _value in parse_qsl(urlsplit(text).query, keep_blank_values=True)
    }
    if not names <= _OPTIONS:
        raise _refused(field, f"only these options are allowed: {', '.join(sorted(_OPTIONS))}")
    try:
        _target(text, _service(text))
    except (faults.ClusterFault, errors.InvalidInput) as fault:
        raise _refused(field, fault.message) from None
    return text


def _refused(field: str, message: str) -> errors.InvalidInput:
    return errors.InvalidInput.for_field(field, "url_not_allowed", message)


def _service(url: str) -> Any:
    """Return Apprise's plugin of a URL. Raises AddressNotAllowed."""
    service = apprise.Apprise.instantiate(url, asset=_ASSET) if scheme(url) in SERVICES else None
    if service is None:
        raise faults.AddressNotAllowed("it is no URL of Apprise for this service")
    return service


def _target(url: str, service: Any) -> guard.Target | None:
    """Return the host that a URL of Apprise names; None of a service with fixed hosts. Raises InvalidInput."""
    if scheme(url) in _HOSTED:
        return None
    return guard.parse_url(f"https://{service.host}:{service.port or 443}")


# --- sending --------------------------------------------------------------------------------------


def send_email(delivery: Delivery) -> str:
    """Send a message by the mail server of the settings; return why it was not accepted, or ""."""
    if not settings.EMAIL_HOST:
        return "EMAIL_URL is not set"
    subject, text = message_text(delivery)
    addresses = unquote(delivery.target.url.partition(":")[2]).split(",")
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">")
    # The same identifier for each try, so that a mailbox may show a second one once.
    headers = {"Message-ID": f"<{delivery.uid}@{domain}>", "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(f"[Cadastre] {subject}", text, to=addresses, headers=headers).send()
    except (OSError, smtplib.SMTPException) as error:
        return faults.printable_message(f"SMTP: {error}", [settings.EMAIL_HOST_PASSWORD or ""])
    return ""


def send_to_service(delivery: Delivery, url: str) -> str:
    """Send a message by Apprise; return why it was not accepted, or "". `url` has the secrets of the service.

    Raises ClusterFault, InvalidInput.
    """
    service = _service(url)
    if (target := _target(url, service)) is not None:
        guard.resolve(
            target,
            allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
            loopback_setting="IPAM_ALLOW_LOOPBACK_WEBHOOKS",
        )
    subject, text = message_text(delivery)
    level = _LEVELS.get(_level(json.loads(delivery.body)["data"]), apprise.NotifyType.INFO)
    # As plain text: a name cannot bring markup or mention a whole channel.
    text_format = apprise.NotifyFormat.TEXT
    if service.notify(body=text, title=subject, notify_type=level, body_format=text_format):
        return ""
    return "the service did not accept the message"


_LEVELS = {
    "error": apprise.NotifyType.FAILURE,
    "warning": apprise.NotifyType.WARNING,
    "ended": apprise.NotifyType.SUCCESS,
}


def _level(data: dict[str, Any]) -> str:
    alert = data.get("alert")
    return ("ended" if data["event"] == DeliveryEvent.ENDED else alert["level"]) if alert else ""


def message_text(delivery: Delivery) -> tuple[str, str]:
    """Return the subject, one line, and the text of a message."""
    data = json.loads(delivery.body)["data"]
    lines: list[str] = []
    if delivery.event == DeliveryEvent.EVENT:
        subject = data["event"]["type"]
        lines.append(str(data["event"].get("reason") or ""))
    elif delivery.event == DeliveryEvent.DIGEST:
        subject = gettext("Open alerts: %(count)s") % {"count": len(data["alerts"])}
        lines += [f"{alert['level']}: {alert['title']}" for alert in data["alerts"]]
    elif data["alert"] is None:
        subject = gettext("Test message")
        lines.append(gettext("Alerts arrive here."))
    else:
        alert = data["alert"]
        state = gettext("ended") if _level(data) == "ended" else alert["level"]
        subject = f"{state}: {alert['title']}"
        lines += [
            alert["detail"],
            f"{registry.words(alert['code'])}, {alert['since']}",
            alert["runbook"],
        ]
    return " ".join(subject.split()), "\n".join(filter(None, [*lines, data["link"]]))
