"""Sessions end with what they rest on: a second factor, a passkey, an active account, a group of the directory."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from claims.access import directory
from claims.access.directory import Person, SignInRefused
from pools import tasks
from pools.models import BrowserSession, DirectorySource
from pools.platform import database
from tests import commands, people
from tests.signon import test_passkeys
from tests.signon.authenticator import Authenticator
from tests.signon.test_passkeys import (
    CODE,
    PASSKEYS,
    SIGN_IN,
    Factor,
    Owner,
    options_alone,
    send,
)

_local = test_passkeys._local


def is_open(client: Client) -> bool:
    """Return True if the session reaches a page; one that ended is no longer stored either."""
    key = client.session.session_key
    answer = client.get("/admin/")
    assert BrowserSession.objects.filter(pk=key).exists() == (answer.status_code == 200)
    return bool(answer.status_code == 200)


def by_passkey(owner: Owner, device: Authenticator | None = None) -> Client:
    client = owner.give_password()
    assert owner.prove(client, device).status_code == 302
    return client


def by_passkey_alone(device: Authenticator) -> Client:
    client = Client(SERVER_NAME="localhost")
    assert send(client, SIGN_IN, device.get(options_alone(client))).status_code == 302
    assert "_auth_user_id" in client.session
    return client


def by_recovery_code(owner: Owner, number: int = 0) -> Client:
    client = owner.give_password()
    code = owner.recovery_codes[number]
    assert client.post(CODE, {"code": code}).status_code == 302
    return client


def remove(owner: Owner, name: str) -> None:
    """Remove a passkey in the session of its owner."""
    owner.confirm()
    path = reverse("mfa_remove_webauthn", args=[PASSKEYS.get(data__name=name).pk])
    assert owner.client.post(path).headers["Location"] == reverse("mfa_list_webauthn")


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["user", "administrator", "command"])
def test_the_second_factor_is_removed(way: str) -> None:
    owner = Owner()
    others = [by_passkey(owner), by_passkey_alone(owner.device), by_recovery_code(owner)]
    if way == "user":
        remove(owner, "laptop")
    elif way == "administrator":
        path = reverse("admin:reset_second_factor", args=[owner.user.pk])
        assert people.browser().post(path).status_code == 302
    else:
        commands.output("second_factor", "reset", owner.user.username)
    assert not Factor.objects.exists()
    assert [is_open(client) for client in others] == [False] * 3
    # Who removes its own has just proven both factors.
    assert is_open(owner.client) == (way == "user")
    assert is_open(owner.give_password())


@pytest.mark.exhaustive
def test_a_passkey_is_removed() -> None:
    owner, stolen = Owner(), Authenticator()
    owner.add(stolen, "stolen")
    resting = [by_passkey(owner, stolen), by_passkey_alone(stolen)]
    others = [by_passkey(owner), by_recovery_code(owner), owner.client]
    remove(owner, "stolen")
    assert [is_open(client) for client in resting] == [False, False]
    assert [is_open(client) for client in others] == [True] * 3


def test_a_passkey_removes_itself() -> None:
    owner = Owner()
    owner.add(Authenticator(), "key")
    owner.client, other = by_passkey(owner), by_passkey(owner)
    remove(owner, "laptop")
    assert [is_open(owner.client), is_open(other)] == [True, False]


def test_a_user_is_deactivated_and_activated_again() -> None:
    owner, other = Owner(), people.browser()
    sessions = [by_passkey(owner), by_recovery_code(owner)]
    root = people.browser()
    path = reverse("admin:auth_user_change", args=[owner.user.pk])
    form = {"username": owner.user.username, "is_superuser": "on", "is_staff": "on",
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}  # fmt: skip
    for values in (form, {**form, "is_active": "on"}):
        answer = root.post(path, values)
        assert answer.status_code == 302, answer.text
    owner.user.refresh_from_db()
    assert owner.user.is_active
    assert [is_open(client) for client in (*sessions, owner.client)] == [False] * 3
    assert [is_open(other), is_open(root)] == [True, True]


def test_the_last_group_of_a_directory_account_is_lost_and_comes_back() -> None:
    def sign_in(*groups: str) -> User:
        return directory.sign_in(Person(DirectorySource.OIDC, "ada", "ada", groups=groups))

    before, after = Client(), Client()
    before.force_login(sign_in("net-admins"), backend="ipam_site.backends.Accounts")
    assert is_open(before)
    with pytest.raises(SignInRefused):
        sign_in("canteen")
    after.force_login(sign_in("net-admins"), backend="ipam_site.backends.Accounts")
    assert [is_open(before), is_open(after)] == [False, True]


def test_expired_sessions_are_deleted() -> None:
    root, former = people.browser(), people.browser()
    expired = BrowserSession.objects.filter(pk=former.session.session_key)
    expired.update(expire_date=database.now() - timedelta(seconds=1))
    tasks.tidy_sessions()
    assert BrowserSession.objects.get().pk == root.session.session_key
