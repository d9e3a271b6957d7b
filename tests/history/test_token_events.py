"""Rule `every-change-has-an-event`: every token that is created or revoked leaves an event with both names."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from pools.models import Event, TokenEvent
from tests import people


def _events() -> list[tuple[str, str, str]]:
    rows = Event.objects.filter(table="tokenevent").order_by("id")
    return [(row.type, row.holder_id, row.actor) for row in rows]


@pytest.fixture
def manager() -> Any:
    person = people.user(people.ADMINISTRATOR)
    names = ("add_authtoken", "view_authtoken", "delete_authtoken", "delete_user", "view_user")
    person.user_permissions.add(*Permission.objects.filter(codename__in=names))
    return person


def test_a_token_for_somebody_else_in_the_admin(manager: Any) -> None:
    other = people.user(people.VIEWER)
    browser = Client()
    browser.force_login(manager)
    form = {"user": other.pk, "days": 7, "level": "read"}
    page = browser.post(reverse("admin:knox_authtoken_create"), form)
    assert _events() == [("token.created", other.username, manager.username)]
    token = AuthToken.objects.get()
    assert page.context["token"]
    stored = str(list(TokenEvent.objects.values()) + list(Event.objects.values()))
    assert page.context["token"] not in stored
    assert token.digest not in stored
    data = {"action": "revoke", "_selected_action": [token.pk], "_confirmed": "1"}
    browser.post(reverse("admin:knox_authtoken_changelist"), data)
    assert not AuthToken.objects.exists()
    assert _events()[1:] == [("token.revoked", other.username, manager.username)]
    event = Event.objects.get(type="token.revoked")
    shown = browser.get(reverse("admin:pools_event_change", args=[event.pk])).text
    assert "API token revoked" in shown
    assert other.username in shown


def test_the_command_and_what_goes_with_a_user(manager: Any) -> None:
    other = people.user(people.VIEWER)
    name = other.username
    call_command("token", name, verbosity=0)
    assert _events() == [("token.created", name, "manage.py")]
    browser = Client()
    browser.force_login(manager)
    browser.post(reverse("admin:auth_user_delete", args=[other.pk]), {"post": "yes"})
    assert _events()[1:] == [("token.revoked", name, manager.username)]


def test_tokens_that_are_written_past_the_services() -> None:
    other = people.user()
    AuthToken.objects.create(other)
    AuthToken.objects.update(expiry=None)
    AuthToken.objects.all().delete()
    types = [("token.created", ""), ("token.changed", ""), ("token.revoked", "")]
    assert [(kind, actor) for kind, owner, actor in _events() if owner == other.username] == types
