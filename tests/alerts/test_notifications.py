"""Alerts reach people: by e-mail through a real mail server, and by Apprise at a real Mattermost-like receiver."""

import json
import pathlib
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse

from pools.core import errors
from pools.models import Alert, Delivery, WebhookTarget
from pools.platform import database
from pools.platform.alerts import dispatch, notifications, outbox, targets
from tests import factories, people
from tests.alerts import receivers
from tests.alerts.pools import full_pool
from tests.alerts.receivers import Receiver

KEY = "3ccdd113474722377935511fc85d3dd4"


class Mailbox:
    """What a mail server accepted; `refusal` is its answer, if it accepts nothing."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[str], str]] = []
        self.refusal = ""

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refusal:
            return self.refusal
        self.messages.append((envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    mailbox = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = Controller(mailbox, hostname="127.0.0.1", port=port)
    server.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.DEFAULT_FROM_EMAIL = "Cadastre <cadastre@example.org>"
    yield mailbox
    server.stop()


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Let Apprise trust the certificates of the tests."""
    (tmp_path / "ca.pem").write_text(receivers.AUTHORITY.pem)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))


def target_at(url: str, name: str = "people", **options: Any) -> WebhookTarget:
    return targets.create(name, url, author=factories.BY, **options)[0]


def mattermost(receiver: Receiver) -> str:
    return f"mmosts://{receiver.url.removeprefix('https://')}/{KEY}"


def test_an_alert_arrives_as_e_mail_once_and_names_its_page(
    mailbox: Mailbox, settings: Any
) -> None:
    settings.IPAM_URL = "https://ipam.example.org"
    target = target_at("mailto:ops@example.org, net@example.org", codes=["pool_nearly_full"])
    alert = full_pool()
    assert dispatch.send_pending(target.pk) == 1
    [(recipients, text)] = mailbox.messages
    assert recipients == ["ops@example.org", "net@example.org"]
    assert f"Subject: [Cadastre] error: {alert.title}" in text
    assert f"https://ipam.example.org{alert.url}" in text
    assert f"Message-ID: <{Delivery.objects.get().uid}@example.org>" in text


def test_what_the_mail_server_refuses_is_tried_again(mailbox: Mailbox) -> None:
    target = target_at("mailto:ops@example.org")
    mailbox.refusal = "451 busy"
    delivery = outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    assert "busy" in delivery.last_error
    mailbox.refusal = ""
    outbox.send_again(delivery)
    assert dispatch.send_pending(target.pk) == 1


def test_an_alert_arrives_in_a_chat_and_its_url_is_a_secret(
    receiver: Receiver, trusted: None
) -> None:
    receiver.answer = lambda _handler, _received: 200
    target = target_at(mattermost(receiver), codes=["pool_nearly_full"])
    assert (target.url, target.kind) == ("mmosts://***", "service")
    assert KEY not in target.sealed + target.host
    alert = full_pool()
    assert dispatch.send_pending(target.pk) == 1
    assert receiver.received[0].path == f"/hooks/{KEY}"
    assert alert.title in json.loads(receiver.received[0].body)["text"]
    client = people.browser(["view_webhooktarget", "change_webhooktarget", "view_delivery"])
    page = reverse("admin:pools_webhooktarget_change", args=[target.pk])
    assert KEY not in client.get(page).content.decode()
    # The URL as it is shown keeps the stored one.
    values = {"name": "people", "url": "mmosts://***", "enabled": "on", "least_level": "error"}
    assert client.post(page, values).status_code == 302
    target.refresh_from_db()
    assert targets.secrets_of(target)[1] == mattermost(receiver)


def test_a_chat_that_redirects_or_is_on_this_machine_gets_nothing(
    receiver: Receiver, trusted: None, settings: Any
) -> None:
    target = target_at(mattermost(receiver))
    receiver.answer = lambda _handler, _received: 302
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    assert len(receiver.received) == 1
    settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS = False
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    assert len(receiver.received) == 1
    assert "url_not_allowed" in Delivery.objects.latest("pk").last_error


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "syslog://", "dbus://", "exec://x", "json://10.0.0.1/", "jsons://h/x",
        "mmost://chat.example.org/" + KEY, "mmosts://chat.example.org:6379/" + KEY,
        "mmosts://chat.example.org/" + KEY + "?verify=no", "mmosts://2130706433/" + KEY,
        "mmosts://chat.example.org/" + KEY + "?redirect=yes", "slack://a", "slack://***",
        "slack://TokenA/TokenB/TokenC?template=/etc/passwd", "mmosts://chat.example.org/\n" + KEY,
        "mailto:", "mailto:nobody", "mailto:a@example.org\nBcc: b@example.org",
    ],
)  # fmt: skip
def test_what_is_no_receiver_is_refused(url: str, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    with pytest.raises(errors.InvalidInput) as refusal:
        targets.create("x", targets.parse_url(url), author=factories.BY)
    assert refusal.value.problems[0].field == "url"
    assert KEY not in str(refusal.value.problems)


def test_every_service_is_one_that_apprise_has() -> None:
    urls = {
        "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "pagerduty": f"pagerduty://A1BRTD4JD@{KEY}",
        "workflows": f"workflows://prod-12.westus.logic.azure.com:443/{KEY}/{KEY}",
        "mmosts": f"mmosts://chat.example.org/{KEY}",
    }
    assert urls.keys() <= notifications.SERVICES
    for url in urls.values():
        assert targets.parse_url(url) == url


def test_without_a_mail_server_nobody_asks_for_e_mail(settings: Any) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(errors.InvalidInput, match="EMAIL_URL"):
        targets.parse_url("mailto:ops@example.org")


def test_a_target_receives_its_levels_and_clusters_and_learns_of_each_end() -> None:
    alert = full_pool()
    other = factories.cluster()
    everything = target_at("https://example.org/", "all", codes=["pool_nearly_full"])
    mine = target_at("https://example.org/", "mine", clusters=[other.pk])
    errors_only = target_at(
        "https://example.org/", "errors", least_level="error", clusters=[other.pk]
    )
    own = full_pool(other)
    assert own.level == "error"
    for target, alerts in ((everything, [own]), (mine, [own]), (errors_only, [own])):
        rows = Delivery.objects.filter(target=target, alert__code="pool_nearly_full")
        assert [row.alert for row in rows] == alerts, target
    Alert.objects.filter(pk=own.pk).update(level="warning")
    own.level = "warning"
    assert outbox.write([(outbox.DeliveryEvent.ENDED, own)], database.now()) == 3
    assert not Delivery.objects.filter(alert=alert).exists()


def test_the_target_of_a_user_is_silent_when_they_may_not_view_alerts() -> None:
    user = get_user_model().objects.create_user("vera")
    user.groups.set([Group.objects.get(name="viewer")])
    target = target_at("https://example.org/", user=user, codes=["pool_nearly_full"])
    full_pool()
    assert Delivery.objects.filter(target=target).count() == 1
    user.is_active = False
    user.save()
    full_pool()
    assert Delivery.objects.filter(target=target).count() == 1


def test_a_user_has_alerts_sent_to_their_own_address(mailbox: Mailbox) -> None:
    client = people.browser(["view_alert"])
    user = get_user_model().objects.get(pk=client.session["_auth_user_id"])
    page = reverse("admin:pools_webhooktarget_mine")
    values = {"enabled": "on", "least_level": "warning", "codes": ["pool_nearly_full"]}
    assert "no e-mail address" in client.get(page).content.decode()
    assert "is no e-mail address" in client.post(page, values).content.decode()
    user.email = "vera@example.org"
    user.save()
    assert client.post(page, values | {"url": "mailto:x@example.org"}).status_code == 302
    assert client.post(page, values | {"least_level": "error"}).status_code == 302
    target = WebhookTarget.objects.get()
    assert (target.user, target.least_level) == (user, "error")
    full_pool()
    assert dispatch.send_pending(target.pk) == 1
    assert mailbox.messages[0][0] == ["vera@example.org"]
    assert client.get(reverse("admin:pools_webhooktarget_changelist")).status_code == 403


def test_a_digest_is_one_message_a_day(mailbox: Mailbox) -> None:
    target = target_at("mailto:ops@example.org", digest=True)
    alert = full_pool()
    Delivery.objects.all().delete()
    WebhookTarget.objects.update(digest_on=None)
    morning = database.now().replace(hour=8)
    assert outbox.write_digests(morning.replace(hour=5)) == 0
    assert outbox.write_digests(morning) == 1
    assert outbox.write_digests(morning + timedelta(hours=1)) == 0
    assert outbox.write_digests(morning + timedelta(days=1)) == 1
    # The clock of the test runs ahead of that of the database.
    Delivery.objects.update(next_try_at=datetime.fromisoformat("2026-01-01T00:00:00Z"))
    assert dispatch.send_pending(target.pk) == 2
    assert alert.title in mailbox.messages[0][1]
    assert "Subject: [Cadastre] Open alerts: " in mailbox.messages[0][1]
