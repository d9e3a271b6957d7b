"""Accounts: their sessions, pages and settings."""

import os
import pathlib
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import checks
from django.test import Client
from django.urls import reverse

from claims.access import directory
from claims.access.directory import Person, SignInRefused
from ipam_site import checks as site_checks, data_folder
from pools import tasks
from pools.models import BrowserSession, DirectoryAccount, DirectorySource
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
    before.force_login(sign_in("net-admins"), backend="ipam_site.sign_on.gate.Accounts")
    assert is_open(before)
    with pytest.raises(SignInRefused):
        sign_in("canteen")
    after.force_login(sign_in("net-admins"), backend="ipam_site.sign_on.gate.Accounts")
    assert [is_open(before), is_open(after)] == [False, True]


def test_expired_sessions_are_deleted() -> None:
    root, former = people.browser(), people.browser()
    expired = BrowserSession.objects.filter(pk=former.session.session_key)
    expired.update(expire_date=database.now() - timedelta(seconds=1))
    tasks.tidy_sessions()
    assert BrowserSession.objects.get().pk == root.session.session_key


# --- Directory accounts in the list of users, and what an administrator may do with them ----------
@pytest.fixture
def ada() -> User:
    return directory.sign_in(Person(DirectorySource.LDAP, "ada", "ada", groups=["auditors"]))


def test_the_list_shows_and_filters_the_source(ada: User) -> None:
    client = people.browser()
    page = client.get(reverse("admin:auth_user_changelist"))
    assert ("LDAP" in page.text, "this site" in page.text) == (True, True)
    page = client.get(reverse("admin:auth_user_changelist"), {"directory_account__source": "ldap"})
    assert [user.username for user in page.context["cl"].result_list] == ["ada"]


def test_a_directory_account_gets_no_password(ada: User) -> None:
    client = people.browser()
    url = reverse("admin:auth_user_password_change", args=[ada.pk])
    answer = client.post(url, {"password1": "a long one 4711", "password2": "a long one 4711"})
    assert answer.headers["Location"] == reverse("admin:auth_user_change", args=[ada.pk])
    assert not User.objects.get(pk=ada.pk).has_usable_password()
    page = client.get(answer.headers["Location"])
    assert "signs in at the directory of the organization, without a password here" in page.text
    assert "each sign-in sets groups" in page.text
    stranger = people.browser([])
    assert stranger.get(url).status_code == 403
    absent = client.get(reverse("admin:auth_user_password_change", args=[10**9]))
    assert absent.status_code in {302, 404}


def test_a_deleted_account_can_sign_in_anew(ada: User) -> None:
    ada.delete()
    assert not DirectoryAccount.objects.exists()
    new = directory.sign_in(Person(DirectorySource.LDAP, "ada", "ada", groups=["auditors"]))
    assert new.pk != ada.pk
    assert Client().get(reverse("admin:login")).status_code == 200


def test_the_same_name_in_two_directories_is_two_persons(ada: User) -> None:
    with pytest.raises(directory.SignInRefused) as refusal:
        directory.sign_in(Person(DirectorySource.OIDC, "x ada", "ada", groups=["net-admins"]))
    assert refusal.value.code == "account_exists"


# --- What `manage.py check` says of settings that cannot work, and how they are read --------------
RIGHT = {
    "IPAM_OIDC_ISSUER": "https://id.example.org/realms/staff",
    "IPAM_OIDC_CLIENT_ID": "cadastre",
}


def errors(settings: Any, values: dict[str, Any]) -> list[str]:
    for name, value in (RIGHT | values).items():
        setattr(settings, name, value)
    return [message.msg for message in site_checks.sign_on()]


def test_right_settings_have_no_error(settings: Any) -> None:
    assert errors(settings, {}) == []
    assert site_checks.sign_on in checks.registry.registry.get_checks()


@pytest.mark.parametrize(
    ("values", "beginning"),
    [
        ({"IPAM_SIGN_ON_ROLES": "{"}, "IPAM_SIGN_ON_ROLES: a JSON object"),
        ({"IPAM_SIGN_ON_ROLES": "[]"}, "IPAM_SIGN_ON_ROLES: a JSON object"),
        (
            {"IPAM_SIGN_ON_ROLES": '{"a": "root"}'},
            "IPAM_SIGN_ON_ROLES: group 'a': 'root' is none of",
        ),
        ({"IPAM_SIGN_ON_ROLES": '{"a": [["viewer"]]}'}, "IPAM_SIGN_ON_ROLES: group 'a'"),
        ({"IPAM_SIGN_ON_NAMESPACES": "("}, "IPAM_SIGN_ON_NAMESPACES: not a regular expression"),
        ({"IPAM_SIGN_ON_NAMESPACES": "ns-(.*)"}, "IPAM_SIGN_ON_NAMESPACES: the named groups"),
        (
            {"IPAM_SIGN_ON_NAMESPACES": "(?P<namespace>a)(?P<x>b)"},
            "IPAM_SIGN_ON_NAMESPACES: the named groups",
        ),
        (
            {"IPAM_SIGN_ON_ROLES": "", "IPAM_SIGN_ON_NAMESPACES": ""},
            "IPAM_SIGN_ON_ROLES: no group of the directory grants anything",
        ),
        ({"IPAM_OIDC_ISSUER": "http://id.example.org"}, "IPAM_OIDC_ISSUER: must be an https URL"),
        ({"IPAM_OIDC_ISSUER": "https://"}, "IPAM_OIDC_ISSUER: must be an https URL"),
        ({"IPAM_OIDC_ISSUER": ""}, "IPAM_OIDC_ISSUER: must be set"),
        ({"IPAM_OIDC_CLIENT_ID": ""}, "IPAM_OIDC_CLIENT_ID: must be set"),
        ({"IPAM_OIDC_SCOPES": ["profile"]}, "IPAM_OIDC_SCOPES: must contain openid"),
        ({"IPAM_OIDC_CA_FILE": "/nowhere"}, "IPAM_OIDC_CA_FILE: /nowhere cannot be read"),
    ],
)
def test_wrong_settings(settings: Any, values: dict[str, Any], beginning: str) -> None:
    (message,) = errors(settings, values)
    assert message.startswith(beginning)


@pytest.mark.exhaustive
def test_the_command_fails(tmp_path: pathlib.Path) -> None:
    secret, roles = tmp_path / "secret", tmp_path / "roles.json"
    secret.write_text("s3cret\n")
    roles.write_text('{\n  "net-admins": ["administrator"]\n}\n')
    values = RIGHT | {
        "IPAM_OIDC_CLIENT_SECRET_FILE": str(secret),
        "IPAM_SIGN_ON_ROLES_FILE": str(roles),
        "IPAM_SIGN_ON_NAMESPACES": "(?P<namespace>.+",
    }
    command = [sys.executable, "manage.py", "check"]
    options: dict[str, Any] = {"cwd": data_folder.PROJECT, "capture_output": True, "text": True}
    answer = subprocess.run(command, env=os.environ | values, check=False, **options)
    assert answer.returncode == 1
    assert "(ipam.E002) IPAM_SIGN_ON_NAMESPACES: not a regular expression" in answer.stderr
    assert "s3cret" not in answer.stderr
    values["IPAM_SIGN_ON_NAMESPACES"] += ")"
    assert subprocess.run(command, env=os.environ | values, check=False, **options).returncode == 0
