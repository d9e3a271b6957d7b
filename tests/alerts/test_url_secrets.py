"""A URL whose query is the secret of the receiver: it is sent, and never shown again."""

import logging
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from django.urls import reverse

from ipam_site import logs
from pools.core import errors
from pools.models import Delivery, Event, WebhookTarget, WebhookTargetEvent
from pools.platform.alerts import dispatch, outbox, targets
from tests import people
from tests.alerts.receivers import AUTHORITY, Receiver
from tests.edges import api as apis

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
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '1 second', true)")
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
