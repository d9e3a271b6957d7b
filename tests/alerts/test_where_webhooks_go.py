"""Where webhooks may go, and what is secret of their URLs."""

import contextlib
import logging
import secrets as randomness
import socket
import threading
import time
from typing import Any

import pytest
from django.core import serializers
from django.urls import reverse

from ipam_site import logs
from pools.core import errors
from pools.models import Delivery, Event, WebhookTarget, WebhookTargetEvent
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.outbound import credentials, faults
from pools.platform.outbound.credentials import Access
from tests import factories, people, servers
from tests.alerts import receivers
from tests.alerts.receivers import AUTHORITY, Receiver
from tests.edges import api as apis
from tests.pools.conftest import Clock

NAME = "kubernetes.default.svc"  # is in the certificates of the tests


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/", "ftp://example.org/", "//example.org/", "example.org", "",
        "https://user:password@example.org/", "https://example.org/?to=x", "https://example.org/#x",
        "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/",
        "https://[fe80::1%25eth0]/", "https://example.org:6379/", "https://example.org:22/",
        "https://exa mple.org/", "https://example.org\\@127.0.0.1/", "https://example.org/%2e%2e/",
        "https://example.org/\n", "https://" + "a" * 600,
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_receiver_is_refused(url: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        credentials.parse_url(url)
    assert refusal.value.problems[0].field == "url"
    assert "password" not in str(refusal.value.message.replace("a user name or a password", ""))


def test_a_path_is_kept() -> None:
    assert credentials.parse_url("https://example.org/T0/B0/x") == "https://example.org:443/T0/B0/x"
    assert credentials.parse_url("https://example.org/hook/") == "https://example.org:443/hook/"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"])
def test_this_machine_is_not_reached(canary: socket.socket, host: str) -> None:
    access = Access(f"https://{host}:{canary.getsockname()[1]}/")
    with pytest.raises(faults.AddressNotAllowed):
        dispatch.post(access, b"{}", {})
    assert not servers.heard(canary)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "0.0.0.1", "100.100.100.200", "127.0.0.1"]
)
def test_a_name_is_judged_by_where_it_leads_at_the_time_of_sending(
    canary: socket.socket, address: str
) -> None:
    access = Access(f"https://{NAME}:{canary.getsockname()[1]}/")
    with pytest.raises(faults.AddressNotAllowed):
        dispatch.post(access, b"{}", {}, resolver=lambda *_: ["10.0.0.1", address])
    assert not servers.heard(canary)


def test_the_address_that_was_judged_is_dialled_and_the_name_is_resolved_once(
    receiver: Receiver,
) -> None:
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    port = receiver.url.rpartition(":")[2]
    access = Access(f"https://{NAME}:{port}/x", ca=receivers.AUTHORITY.pem)
    assert dispatch.post(access, b"{}", {}, allow_loopback=True, resolver=rebinding) == (
        204,
        "",
    )
    assert asked == [NAME]
    assert receiver.received[0].headers["Host"].startswith(NAME)


def test_a_redirect_is_a_failure_and_is_not_followed(
    receiver: Receiver, canary: socket.socket
) -> None:
    port = canary.getsockname()[1]

    def away(handler: Any, _received: Any) -> None:
        handler.send_response(307)
        handler.send_header("Location", f"https://127.0.0.1:{port}/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    receiver.answer = away
    target, _ = receiver.target()
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    assert "redirect" in Delivery.objects.get().last_error
    assert not servers.heard(canary)


def test_a_certificate_of_nobody_is_refused(receiver: Receiver) -> None:
    target, _ = receiver.target(ca="")
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    assert Delivery.objects.get().last_error.startswith("cluster_tls")
    assert not receiver.received


def test_loopback_is_refused_unless_the_setting_allows_it(
    receiver: Receiver, settings: Any
) -> None:
    settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS = False
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True  # another setting
    target, _ = receiver.target()
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    assert Delivery.objects.get().last_error.startswith("url_not_allowed")
    assert not receiver.received


def test_who_answers_too_slowly_is_not_waited_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are shortened; that they are 5, 10 and 20 seconds stands in the module."""
    assert (dispatch.CONNECT, dispatch.READ, dispatch.WHOLE) == (5.0, 10.0, 20.0)
    monkeypatch.setattr(dispatch, "READ", 0.2)
    access = Access(receiver.url, ca=receivers.AUTHORITY.pem)
    released = threading.Event()
    receiver.answer = lambda _handler, _received: released.wait(10) and None
    with pytest.raises(faults.Unreachable):
        dispatch.post(access, b"{}", {}, allow_loopback=True)
    released.set()

    ended = threading.Event()

    def drip(handler: Any, _received: Any) -> None:
        with contextlib.suppress(OSError):
            for _ in range(200):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: "[:1])
                handler.wfile.flush()
                time.sleep(0.05)
            ended.set()

    monkeypatch.setattr(dispatch, "WHOLE", 0.5)
    receiver.answer = drip
    with pytest.raises(faults.Unreachable):
        dispatch.post(access, b"{}", {}, allow_loopback=True)
    assert not ended.is_set()  # it was cut off while it still dripped


def test_the_secret_is_sealed_bound_to_its_target_and_sealed_anew(settings: Any) -> None:
    from django.core.management import call_command

    one, secret = targets.create("one", "https://example.org/", author=factories.BY)
    two, _ = targets.create("two", "https://example.org/", author=factories.BY)
    assert secret not in str(WebhookTarget.objects.values_list())
    WebhookTarget.objects.filter(pk=two.pk).update(sealed=one.sealed)
    two.refresh_from_db()
    with pytest.raises(faults.SecretForeign):
        targets.secrets_of(two)[0]
    two.delete()
    old = one.sealed
    settings.IPAM_KEY_RING = [randomness.token_urlsafe(32), *settings.IPAM_KEY_RING]
    call_command("rotate_keys")
    one.refresh_from_db()
    assert one.sealed != old
    assert targets.secrets_of(one)[0] == secret
    settings.IPAM_KEY_RING = settings.IPAM_KEY_RING[:1]
    assert targets.secrets_of(one)[0] == secret


# --- A URL whose query is the secret of the receiver: it is sent, and never shown again -----------
# As of a workflow of Power Automate.
QUERY = "api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=q-S3cr3t_x"


@pytest.fixture
def url(receiver: Receiver) -> str:
    return f"{receiver.url}/workflows/1/invoke?{QUERY}"


def created(url: str, **more: Any) -> dict[str, Any]:
    body = {"name": "teams", "url": url, "ca": AUTHORITY.pem} | more
    answer = apis.Api().create("webhook-targets/", body)
    assert isinstance(answer, dict)
    return answer


def arrived(receiver: Receiver) -> str:
    """The path and query of a test message."""
    target = WebhookTarget.objects.get()
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 1
    return receiver.received[-1].path


def test_it_is_sent_and_shown_nowhere(
    receiver: Receiver, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = created(url)
    assert shown["url"] == f"{receiver.url}/workflows/1/invoke?***"
    assert arrived(receiver) == f"/workflows/1/invoke?{QUERY}"
    receiver.answer = lambda _handler, _received: 500
    target = WebhookTarget.objects.get()
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 0
    client, api = people.browser(), apis.Api()
    page = reverse("admin:pools_webhooktarget_change", args=[target.pk])
    texts = [
        str(shown),
        api("GET", "webhook-targets/").content,
        api("GET", f"webhook-targets/{target.pk}/deliveries/").content,
        client.get(page).content,
        client.get(reverse("admin:pools_webhooktarget_delete", args=[target.pk])).content,
        client.get(reverse("admin:pools_webhooktarget_changelist")).content,
        client.get(reverse("admin:pools_webhooktarget_export")).getvalue(),
        serializers.serialize("json", WebhookTarget.objects.all()),
        f"{list(WebhookTargetEvent.objects.values())}{list(Event.objects.values())}",
        f"{list(Delivery.objects.values())}{receiver.received[-1].body!r}",
        "\n".join(map(logs.LineFormatter().format, caplog.records)),
    ]
    assert '"POST /workflows/1/invoke?[redacted] HTTP/1.1" 500' in texts[-1]
    for number, text in enumerate(texts):
        assert "S3cr3t" not in str(text), number


def test_what_is_shown_keeps_it_and_another_url_replaces_it(receiver: Receiver, url: str) -> None:
    target = f"webhook-targets/{created(url)['id']}/"
    api, page = apis.Api(), reverse("admin:pools_webhooktarget_change", args=[created_id()])
    secret = targets.secrets_of(WebhookTarget.objects.get())[0]
    # A form that shows it hidden, and changes something else.
    row = WebhookTarget.objects.get()
    data = {"name": "renamed", "url": row.url, "ca": row.ca, "alerts": "on", "enabled": "on"}
    assert people.browser().post(page, data).status_code == 302
    assert arrived(receiver) == f"/workflows/1/invoke?{QUERY}"
    api("POST", f"{target}rotate/")
    assert arrived(receiver) == f"/workflows/1/invoke?{QUERY}"
    assert targets.secrets_of(WebhookTarget.objects.get())[0] != secret
    # The query alone is another one: that is an event.
    Clock().advance(1)
    assert (
        api("PATCH", target, {"url": f"{row.url.removesuffix('***')}sig=other"}).status_code == 200
    )
    assert arrived(receiver) == "/workflows/1/invoke?sig=other"
    assert (
        Event.objects.order_by("-pk").values_list("type", flat=True)[0] == "webhook.secret_replaced"
    )
    for moved in ("https://elsewhere.example.org/?***", "https://elsewhere.example.org/x?***"):
        answer = api("PATCH", target, {"url": moved})
        assert (answer.status_code, answer.json()["code"]) == (400, "url_not_allowed")
    assert api("PATCH", target, {"url": f"{receiver.url}/plain"}).json()["url"].endswith("/plain")
    assert arrived(receiver) == "/plain"


def created_id() -> int:
    return WebhookTarget.objects.get().pk


@pytest.mark.parametrize(
    "query", ["", "a=b#c", "a=b c", "a=%zz", "a=ü", "a=b\nX: y", 'a="b"', "a=" + "x" * 1500]
)
def test_what_is_no_query_is_refused(query: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        targets.parse_url(f"https://example.org/x?{query}")
    assert refusal.value.problems[0].field == "url"
