"""Sign-in with passwords of a real LDAP directory."""

import contextlib
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from claims.access import namespaces
from ipam_site import checks as site_checks
from ipam_site.sign_on import ldap_settings
from pools.models import Cluster, DirectoryAccount, Event
from tests.signon import slapd
from tests.signon.slapd import ADMIN, BASE, PASSWORD, Directory

RIGHT = "right"
needs_package = pytest.mark.skipif(
    not ldap_settings.is_installed(), reason="LDAP needs the packages of requirements-ldap.txt"
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as directory:
        yield directory


def configure(settings: Any, **values: str) -> None:
    right = {
        "URL": "ldaps://directory.example.org",
        "BIND_DN": ADMIN,
        "BIND_PASSWORD": PASSWORD,
        "USER_BASE": f"ou=people,{BASE}",
        "GROUP_BASE": f"ou=groups,{BASE}",
    }
    for name, value in (right | values).items():
        setattr(settings, f"IPAM_LDAP_{name}", value)
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        ldap_settings.BACKEND,
    ]


@pytest.fixture
def directory(running: Directory, settings: Any) -> Directory:
    configure(settings, URL=running.url, CA_FILE=running.ca_file)
    return running


def sign_in(name: str, password: str = RIGHT) -> Any:
    client = Client()
    form = {"username": name, "password": password}
    answer = client.post(reverse("admin:login"), form)
    answer.browser = client
    return answer


def roles(name: str) -> set[str]:
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


@needs_package
def test_groups_become_roles_and_namespaces(directory: Directory) -> None:
    prod = Cluster.objects.create(name="prod")
    directory.set_groups({"net-admins": ["inner"], "inner": ["ada"], "ns-shop": ["ada", "vera"]})
    assert sign_in("ada").status_code == 302
    assert roles("ada") == {"administrator", "vm-owner"}  # by a group in a group
    # Directories compare names without case: it is the same person.
    answer = sign_in("ADA")
    assert answer.status_code == 302
    assert answer.browser.get("/admin/pools/pool/").status_code == 200
    account = DirectoryAccount.objects.get()
    assert account.source == "ldap"
    assert re.fullmatch(r"entryuuid=[0-9a-f-]{36}", account.subject)
    assert account.user == User.objects.get(username="ada")
    assert User.objects.get().email == "ada@example.org"
    assert sign_in("vera").status_code == 302
    vera = User.objects.get(username="vera")
    assert namespaces.scope(vera).namespaces == {prod.pk: frozenset({"shop"})}
    assert not vera.has_usable_password()


@needs_package
@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong"), ("ada", ""), ("nobody", "right"), ("*", "right"), ("a)(uid=*", "right")],
)
def test_what_the_directory_refuses(directory: Directory, name: str, password: str) -> None:
    directory.set_groups({"net-admins": ["ada", "vera"]})
    answer = sign_in(name, password)
    assert answer.status_code == 200
    assert not User.objects.exists()
    assert not DirectoryAccount.objects.exists()


@needs_package
def test_who_left_the_group_loses_rights_and_tokens(directory: Directory) -> None:
    directory.set_groups({"net-admins": ["ada", "vera"]})
    sign_in("ada")
    AuthToken.objects.create(User.objects.get(username="ada"))
    directory.set_groups({"net-admins": ["vera"], "canteen": ["ada"]})
    answer = sign_in("ada")
    assert answer.status_code == 200
    assert "belongs to no group of the directory" in answer.text
    assert roles("ada") == set()
    assert not AuthToken.objects.exists()
    event = Event.objects.get(type="directory_account.sign_in_refused")
    assert (event.holder_id, event.reason) == ("ada", "no_group")


@needs_package
def test_a_local_account_is_not_taken_over(directory: Directory) -> None:
    User.objects.create_superuser("root", password="of this site")
    directory.set_groups({"net-admins": ["root"]})
    assert "An account root exists here" in sign_in("root").text
    assert sign_in("root", "of this site").status_code == 302


def account_by_name(name: str, **values: Any) -> User:
    """An account with a token, as it was made while accounts were recognized by the login name."""
    user = User.objects.create(username=name, **values)
    AuthToken.objects.create(user)
    DirectoryAccount.objects.create(source="ldap", subject=name, user=user, username=name)
    return user


def signed_in(name: str) -> User | None:
    """Return the user who has signed in, None if the sign-in was refused."""
    key = sign_in(name).browser.session.get(SESSION_KEY)
    return User.objects.get(pk=key) if key else None


@pytest.fixture
def ida(directory: Directory) -> Iterator[Directory]:
    """A directory with Ida, who may be renamed or removed."""
    directory.add_person("ida")
    directory.set_groups({"net-admins": ["ida"], "auditors": ["lovelace"]})
    yield directory
    for name in ("ida", "lovelace"):
        with contextlib.suppress(AssertionError):
            directory.remove_person(name)


@needs_package
def test_who_is_renamed_keeps_the_account(ida: Directory) -> None:
    before = signed_in("ida")
    token: str = AuthToken.objects.create(before)[1]
    ida.rename_person("ida", "lovelace")
    assert signed_in("lovelace") == before
    assert (User.objects.get().username, roles("lovelace")) == ("lovelace", {"viewer"})
    headers = {"Authorization": f"Token {token}"}
    assert Client().get("/api/v1/pools/", headers=headers).status_code == 200
    # A new person may have the old name.
    ida.add_person("ida")
    assert signed_in("ida") not in {None, before}
    assert AuthToken.objects.get().user == before


@needs_package
def test_a_new_person_with_an_old_name_inherits_nothing(ida: Directory) -> None:
    former = signed_in("ida")
    AuthToken.objects.create(former)
    ida.remove_person("ida")
    ida.add_person("ida")
    assert "An account ida exists here that does not belong to you" in sign_in("ida").text
    assert DirectoryAccount.objects.get(user=former).refusal == ""
    assert roles("ida") == {"administrator"}
    User.objects.filter(username="ida").update(username="ida-2025")  # as the page says
    new = signed_in("ida")
    assert new not in {None, former}
    assert AuthToken.objects.get().user == former


@needs_package
def test_an_account_that_names_recognized_is_taken_over_once(ida: Directory) -> None:
    former = account_by_name("ida")
    assert signed_in("ida") == former
    account = DirectoryAccount.objects.get()
    assert (account.user, account.subject[:10]) == (former, "entryuuid=")
    assert AuthToken.objects.get().user == former
    types = [event.type.partition(".")[2] for event in events()]
    assert types == ["created", "created", "deleted", "changed"]
    assert {event.actor for event in events()[1:]} == {"ida"}
    assert signed_in("ida") == former
    assert len(events()) == len(types)
    # The account no longer belongs to the name.
    ida.remove_person("ida")
    ida.add_person("ida")
    assert signed_in("ida") is None


def events() -> list[Any]:
    return list(Event.objects.filter(type__startswith="directory_account").order_by("id"))


@needs_package
@pytest.mark.parametrize(
    "values",
    [
        {"user__is_active": False},
        {"user__date_joined": datetime(2026, 1, 1, tzinfo=UTC)},  # older than the entry
        {"subject": "entryuuid=30d9c0a2-6a5c-4e4b-8a66-8a0c1c0e5d1f"},
        {"source": "oidc"},
        {"subject": "somebody"},
    ],
    ids=str,
)
def test_an_account_of_somebody_else_is_not_taken_over(
    ida: Directory, values: dict[str, Any]
) -> None:
    of_user = {key[6:]: value for key, value in values.items() if key.startswith("user__")}
    former = account_by_name("ida", **of_user)
    accounts = DirectoryAccount.objects.filter(user=former)
    accounts.update(**{key: value for key, value in values.items() if key[6:] not in of_user})
    before = accounts.values().get()
    assert "An account ida exists here that does not belong to you" in sign_in("ida").text
    assert accounts.values().get() == before
    assert not former.groups.exists()
    assert events()[-1].reason == "account_exists"


@needs_package
def test_without_the_age_of_the_entry_nothing_is_taken_over(
    ida: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipam_site.sign_on import ldap_backend

    monkeypatch.setattr(ldap_backend, "_created_at", lambda _: None)
    account_by_name("ida")
    assert signed_in("ida") is None


@needs_package
def test_an_entry_without_the_attribute_is_refused(
    ida: Directory, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.IPAM_LDAP_ID_ATTRIBUTE = "nsUniqueId"
    account_by_name("ida")
    assert "did not send the attribute nsUniqueId" in sign_in("ida").text
    assert "ldap_id_missing" in caplog.text
    assert "uid=ida,ou=people" in caplog.text
    assert DirectoryAccount.objects.get().subject == "ida"
    caplog.clear()
    assert "did not send" not in sign_in("ida", "wrong").text
    assert "ldap_id_missing" not in caplog.text


@needs_package
@pytest.mark.parametrize(
    ("guid", "subject"),
    [
        (uuid.UUID(int=2**128 - 2).bytes_le, "objectguid=ffffffff-ffff-ffff-ffff-fffffffffffe"),
        # Octets that are text by chance.
        (b"0123456789abcdef", "objectguid=33323130-3534-3736-3839-616263646566"),
        (b"0123", None),
        (b"\xff" * 17, None),
    ],
)
def test_the_guid_of_active_directory(
    directory: Directory, settings: Any, guid: bytes, subject: str | None
) -> None:
    settings.IPAM_LDAP_ID_ATTRIBUTE = "objectGUID"
    directory.add_person("guido", guid)
    directory.set_groups({"net-admins": ["guido"]})
    user = signed_in("guido")
    directory.remove_person("guido")
    assert (user is None) == (subject is None)
    assert user is None or user.directory_account.subject == subject


@needs_package
def test_names_recognize_accounts_if_somebody_wants_that(ida: Directory, settings: Any) -> None:
    settings.IPAM_LDAP_ID_ATTRIBUTE = "UID"
    before = signed_in("ida")
    assert DirectoryAccount.objects.get().subject == "ida"
    ida.remove_person("ida")
    ida.add_person("ida")
    assert signed_in("ida") == before


@needs_package
def test_start_tls(running: Directory, settings: Any) -> None:
    configure(settings, URL=running.plain_url, CA_FILE=running.ca_file)
    running.set_groups({"net-admins": ["ada"]})
    assert sign_in("ada").status_code == 302


@needs_package
def test_the_next_directory_is_asked_over_tls_only(running: Directory, settings: Any) -> None:
    running.set_groups({"net-admins": ["ada"]})
    down = "ldaps://localhost:1"
    configure(settings, URL=f"{down} {running.plain_url}", CA_FILE=running.ca_file)
    assert sign_in("ada").status_code == 302  # by StartTLS
    settings.IPAM_LDAP_CA_FILE = ""
    assert "does not answer" in sign_in("ada").text
    settings.IPAM_LDAP_CA_FILE = running.ca_file
    settings.IPAM_LDAP_URL = f"{down} {running.url}"
    assert sign_in("ada").status_code == 302


@needs_package
def test_groups_that_the_directory_cuts_off_take_nothing_away(
    directory: Directory, settings: Any
) -> None:
    settings.IPAM_LDAP_BIND_DN, settings.IPAM_LDAP_BIND_PASSWORD = (
        f"uid=eve,ou=people,{BASE}",
        RIGHT,
    )
    directory.set_groups({"net-admins": ["ada"]})
    AuthToken.objects.create(signed_in("ada"))
    # More than slapd answers to others than its administrator: which of them are missing, nobody can tell.
    directory.set_groups({f"canteen-{number}": ["ada"] for number in range(501)})
    assert "does not answer" in sign_in("ada").text
    assert roles("ada") == {"administrator"}
    assert AuthToken.objects.exists()


@needs_package
@pytest.mark.parametrize(
    "values",
    [{"URL": "ldaps://localhost:1"}, {"CA_FILE": ""}, {"BIND_PASSWORD": "wrong"}],
    ids=str,
)
def test_a_directory_that_does_not_answer(
    running: Directory, settings: Any, values: dict[str, str]
) -> None:
    configure(settings, **({"URL": running.url, "CA_FILE": running.ca_file} | values))
    assert "does not answer" in sign_in("ada").text
    User.objects.create_superuser("root", password="of this site")
    assert sign_in("root", "of this site").status_code == 302


def messages(settings: Any, **values: str) -> list[str]:
    configure(settings, **values)
    return [message.msg for message in site_checks.sign_on()]


def test_the_package_is_needed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldap_settings, "is_installed", lambda: False)
    assert messages(settings) == ["IPAM_LDAP_URL: LDAP needs the packages of requirements-ldap.txt"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URL", "http://x"),
        ("URL", "ldap://"),
        ("URL", "ldaps://a ldap://b"),
        ("URL", "ldaps://a,ldap://b"),
        ("URL", "ldaps://a b"),
        ("USER_BASE", ""),
        ("GROUP_BASE", ""),
        ("USERNAME_ATTRIBUTE", "uid)(x"),
        ("ID_ATTRIBUTE", "entryUUID "),
        ("GROUP_FILTER", "x"),
        ("GROUP_TYPE", "x"),
        ("CA_FILE", "/nowhere"),
    ],
)
def test_wrong_settings(
    settings: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr(ldap_settings, "is_installed", lambda: True)
    assert messages(settings) == []
    assert messages(settings, URL="ldaps://a.example.org ldaps://b.example.org:3269") == []
    (message,) = messages(settings, **{name: value})
    assert message.startswith(f"IPAM_LDAP_{name}: ")
