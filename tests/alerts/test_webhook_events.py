"""Who made, changed and deleted webhooks is in the log, and nothing of their secrets is."""

import secrets as random
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from pools.models import Event, Now, WebhookTarget, WebhookTargetEvent
from pools.platform import audit
from pools.platform.alerts import targets
from pools.platform.history import search
from tests import factories, people
from tests.alerts import receivers

URL = "https://hooks.example.org:8443/services/T0/very-secret"


@pytest.fixture
def target() -> WebhookTarget:
    made, _ = targets.create("ops", URL, ca=receivers.AUTHORITY.pem, author=factories.BY)
    return made


@pytest.fixture
def later(target: WebhookTarget) -> None:
    """A second after it was made."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '1 second', true)")


def types() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ({"name": "on-call"}, "webhook.changed"),
        ({"codes": ["cluster_stale"]}, "webhook.changed"),
        ({"enabled": False}, "webhook.changed"),
        ({"url": f"{URL}-2"}, "webhook.url_changed"),
        ({"ca": ""}, "webhook.ca_changed"),
    ],
)
def test_a_change_is_told(target: WebhookTarget, values: dict[str, Any], type_: str) -> None:
    targets.change(target, values, author=factories.BY)
    assert types() == ["webhook.created", type_]
    last = Event.objects.order_by("id").last()
    assert last is not None
    assert last.actor == factories.BY.actor
    assert last.message == f"{values.get('name', 'ops')} at hooks.example.org:8443"


def test_so_are_a_new_secret_and_the_end(target: WebhookTarget, later: None) -> None:
    targets.rotate(target, author=factories.BY)
    targets.delete(target, author=factories.BY)
    assert types() == ["webhook.created", "webhook.secret_replaced", "webhook.deleted"]


def test_what_deliveries_write_and_a_new_key_are_no_change(
    target: WebhookTarget, settings: Any
) -> None:
    WebhookTarget.objects.update(failures=3, wait_until=Now())
    settings.IPAM_KEY_RING = [random.token_urlsafe(32), *settings.IPAM_KEY_RING]
    assert targets.reseal().resealed == 1
    assert types() == ["webhook.created"]


def test_nothing_secret_is_in_them(target: WebhookTarget, later: None) -> None:
    sealed = target.sealed
    secret = targets.rotate(target, author=factories.BY)
    targets.change(target, {"url": f"{URL}-2"}, author=factories.BY)
    told = f"{list(WebhookTargetEvent.objects.values())}{list(Event.objects.values())}"
    target.refresh_from_db()
    for hidden in (secret, sealed, target.sealed, "very-secret", "BEGIN CERTIFICATE"):
        assert hidden not in told


def test_they_are_searched_shown_and_sealed(target: WebhookTarget) -> None:
    targets.change(target, {"enabled": False}, author=factories.BY)
    wanted = search.HistoryQuery(name="ops", kind="webhook")
    changed, created = search.search([wanted]).events
    assert (created.type, changed.type) == ("webhook.created", "webhook.changed")
    before, after = search.changes([changed])[changed.pk].__dict__.values()
    assert (before["enabled"], after["enabled"]) == (True, False)
    page = people.browser(people.VIEWER).get(reverse("admin:pools_event_change", args=[changed.pk]))
    assert "webhook.changed" in page.content.decode()
    assert audit.seal() == 2
    assert "pools_webhooktargetevent" in audit.current_columns()
