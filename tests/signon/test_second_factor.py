"""The second factor of accounts of this site: enrolment, sign-in, and what a half-open session reaches."""

import re
import secrets as randomness
import time
from typing import Any
from urllib.parse import quote

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from claims.access import directory
from claims.access.directory import Person
from pools.models import DirectorySource, Event, LoginFailures
from pools.platform.outbound import secrets
from tests import commands, people
from tests.signon.local import (
    APP,
    CODE,
    CODES,
    CONFIRM,
    LOGIN,
    PAGE,
    PASSWORD,
    give_password,
    is_signed_in,
    person,
)

REMOVE, CONFIRM_CODE = (
    "/admin/second-factor/totp/deactivate/",
    "/admin/second-factor/reauthenticate/",
)
ADD_PASSKEY = "/admin/second-factor/webauthn/add/"


class Clock:
    """The time of codes."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock.time)
    return clock


def app_code(secret: str, clock: Clock) -> str:
    return totp.format_hotp_value(totp.hotp_value(secret, int(clock.now) // 30))


class Enrolled:
    """A superuser with an app."""

    def __init__(self, clock: Clock, **options: Any) -> None:
        self.clock = clock
        self.user = person(**{"is_superuser": True, **options})
        self.secret = totp.generate_totp_secret()
        totp.TOTP.activate(self.user, self.secret)
        self.recovery_codes = RecoveryCodes.activate(self.user).generate_codes()

    def code(self) -> str:
        return app_code(self.secret, self.clock)

    def sign_in(self) -> Client:
        client = give_password(self.user)
        assert client.post(CODE, {"code": self.code()}).status_code == 302
        self.clock.now += 60
        return client


def patient() -> None:
    """Let the time after wrong codes pass."""
    for row in Authenticator.objects.filter(type="recovery_codes"):
        row.data["next_at"] = 0
        row.save()


@pytest.fixture
def olga(clock: Clock) -> Enrolled:
    return Enrolled(clock)


def test_enrolment_shows_the_secret_and_then_the_recovery_codes_once(clock: Clock) -> None:
    user = person()
    client = give_password(user)
    other = give_password(user)
    assert client.get(APP).headers["Location"] == f"{CONFIRM}?next={quote(APP, '')}"
    assert "Incorrect password" in client.post(CONFIRM, {"password": "wrong"}).text
    assert client.get(APP).status_code == 302
    confirmed = client.post(f"{CONFIRM}?next={APP}", {"password": PASSWORD})
    assert confirmed.headers["Location"] == APP
    shown = client.get(APP)
    secret = re.search(r'id="authenticator_secret">([A-Z2-7]{32})<', shown.text)
    assert secret
    assert "data:image/svg+xml" in shown.text
    assert "This code is wrong" in client.post(APP, {"code": "000000"}).text
    assert not Authenticator.objects.exists()
    key = client.session.session_key
    code = app_code(secret[1], clock)
    done = client.post(APP, {"code": code})
    assert done.headers["Location"] == CODES
    assert client.session.session_key != key
    codes = re.findall(r"\b\d{16}\b", client.get(CODES).text)
    assert len(set(codes)) == 10
    again = client.get(PAGE).text + client.get(CODES).text
    assert (secret[1] in again, codes[0] in again) == (False, False)
    assert "10 out of 10 recovery codes" in again
    assert is_signed_in(client)
    assert other.get("/admin/").status_code == 302  # its session ends
    stored = str(list(Authenticator.objects.values()))
    assert not [text for text in (secret[1], codes[0]) if text in stored]
    event = Event.objects.get(type="authenticator_app.created")
    assert (event.actor, event.holder_id) == (user.username, user.username)
    # The code of the enrolment does not sign in.
    assert give_password(user).post(CODE, {"code": code}).status_code == 200


def test_a_sign_in_needs_the_code_and_keeps_the_way(olga: Enrolled) -> None:
    client = give_password(olga.user, "/admin/pools/pool/")
    assert client.answer.headers["Location"] == CODE  # type: ignore[attr-defined]
    key = client.session.session_key
    assert client.get(CODE).status_code == 200
    answer = client.post(CODE, {"code": f" {olga.code()[:3]} {olga.code()[3:]}"})
    assert answer.headers["Location"] == "/admin/pools/pool/"
    assert client.session.session_key != key
    assert client.get("/admin/pools/pool/").status_code == 200
    assert client.get(CODE).headers["Location"] == "/admin/"  # is signed in


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", ["/admin/", "/admin/pools/pool/", PAGE, "/admin/knox/authtoken/create/",
    "/admin/password_change/", "/api/v1/pools/", "/api/v1/docs/", "/metrics"])  # fmt: skip
def test_a_half_open_session_reaches_nothing(olga: Enrolled, path: str) -> None:
    client = give_password(olga.user)
    stranger = Client()
    answer, strangers = client.get(path), stranger.get(path)
    assert (answer.status_code, answer.headers.get("Location")) == (
        strangers.status_code, strangers.headers.get("Location")
    )  # fmt: skip
    assert answer.status_code != 200
    assert not is_signed_in(client)
    assert client.post(CODE, {"code": "123456"}).status_code == 200
    assert not is_signed_in(client)


def test_a_wrong_password_says_nothing_of_the_factor(olga: Enrolled) -> None:
    client = give_password(olga.user, password="wrong")
    assert client.answer.status_code == 200  # type: ignore[attr-defined]
    assert client.get(CODE).headers["Location"] == LOGIN


def test_the_step_ends_with_a_new_password_and_with_its_time(
    olga: Enrolled, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = give_password(olga.user)
    olga.clock.now += 601
    assert late.post(CODE, {"code": olga.code()}).headers["Location"] == LOGIN
    client = give_password(olga.user)
    olga.user.set_password("another long pass phrase")
    olga.user.save()
    assert client.post(CODE, {"code": olga.code()}).headers["Location"] == LOGIN
    assert not is_signed_in(client)


def test_a_code_is_accepted_once(olga: Enrolled) -> None:
    code = olga.code()
    assert give_password(olga.user).post(CODE, {"code": code}).status_code == 302
    replay = give_password(olga.user)
    cache.clear()  # as another process would see it
    for text in (code, f"{code[:3]}-{code[3:]}"):
        patient()
        assert "This code is wrong, was used before" in replay.post(CODE, {"code": text}).text
    assert not is_signed_in(replay)


def test_a_recovery_code_is_accepted_once_and_of_its_account_only(
    olga: Enrolled, clock: Clock
) -> None:
    code = olga.recovery_codes[3]
    client = give_password(olga.user, "https://evil.example/")
    answer = client.post(CODE, {"code": f"{code[:4]} {code[4:]}"})
    assert answer.headers["Location"] == reverse("admin:index")  # the way does not lead elsewhere
    assert "9 out of 10 recovery codes" in client.get(PAGE).text
    assert Event.objects.get(type="recovery_codes.used").actor == olga.user.username
    replay, other = give_password(olga.user), Enrolled(clock)
    for wrong in (code, other.recovery_codes[0], other.code()):
        patient()
        assert replay.post(CODE, {"code": wrong}).status_code == 200
    assert not is_signed_in(replay)


def test_a_wrong_code_delays_the_next(olga: Enrolled) -> None:
    client = give_password(olga.user)
    client.post(CODE, {"code": "000000"})
    assert client.post(CODE, {"code": olga.code()}).status_code == 200  # within a second
    olga.clock.now += 1
    client.post(CODE, {"code": "000000"})
    olga.clock.now += 1
    assert client.post(CODE, {"code": olga.code()}).status_code == 200  # the second waits for two
    olga.clock.now += 1
    assert client.post(CODE, {"code": olga.code()}).status_code == 302
    assert Authenticator.objects.get(type="recovery_codes").data["failures"] == 0


def test_wrong_codes_close_the_account_also_with_its_password_between(
    olga: Enrolled, settings: Any
) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 3
    for _ in range(3):
        assert give_password(olga.user).post(CODE, {"code": "000000"}).status_code == 200
        patient()
    patient()
    refused = give_password(olga.user)
    assert refused.answer.status_code == 429  # type: ignore[attr-defined]


def test_right_codes_leave_no_failures(olga: Enrolled, settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ADDRESS = 3
    for _ in range(5):
        assert give_password(olga.user).post(CODE, {"code": olga.code()}).status_code == 302
        olga.clock.now += 60
    assert sum(LoginFailures.objects.values_list("failures", flat=True)) == 0


def test_too_many_codes_of_an_open_step_are_429(olga: Enrolled, settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 2
    client = give_password(olga.user)
    for _ in range(2):
        client.post(CODE, {"code": "000000"})
    patient()
    refused = client.post(CODE, {"code": olga.code()})
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert not is_signed_in(client)


def test_removing_needs_a_code_and_not_the_password(olga: Enrolled) -> None:
    client = olga.sign_in()
    client.post(REMOVE)
    assert client.post(CONFIRM, {"password": PASSWORD}).headers["Location"] == CONFIRM_CODE
    assert client.post(CONFIRM_CODE, {"code": "000000"}).status_code == 200
    client.post(REMOVE)
    assert Authenticator.objects.count() == 2
    patient()
    assert client.post(CONFIRM_CODE, {"code": olga.code()}).status_code == 302
    assert client.post(REMOVE).headers["Location"] == PAGE
    assert not Authenticator.objects.exists()
    assert Event.objects.get(type="authenticator_app.deleted").actor == olga.user.username
    assert is_signed_in(client)
    assert client.get(APP).status_code == 200  # a new one can be enrolled


def test_new_recovery_codes_replace_the_old_ones(olga: Enrolled) -> None:
    client = olga.sign_in()
    client.post(CONFIRM_CODE, {"code": olga.code()})
    assert client.post(f"{CODES}generate/").headers["Location"] == CODES
    new = re.findall(r"\b\d{16}\b", client.get(CODES).text)
    assert (len(new), set(new) & set(olga.recovery_codes)) == (10, set())
    half_open = give_password(olga.user)
    assert half_open.post(CODE, {"code": olga.recovery_codes[0]}).status_code == 200
    patient()
    assert half_open.post(CODE, {"code": new[0]}).status_code == 302


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["optional", "administrators", "everybody"])
def test_who_must_have_one_reaches_only_the_enrolment(settings: Any, mode: str) -> None:
    settings.IPAM_SECOND_FACTOR = mode
    administrator, viewer = person(), person()
    administrator.groups.add(Group.objects.get(name="administrator"))
    viewer.groups.add(Group.objects.get(name="viewer"))
    for user, must in (
        (administrator, mode != "optional"), (viewer, mode == "everybody"),
    ):  # fmt: skip
        client = give_password(user)
        for path in (
            "/admin/",
            "/admin/pools/pool/",
            "/admin/knox/authtoken/create/",
            "/admin/password_change/",
        ):
            answer = client.get(path)
            assert answer.headers.get("Location", "") == (PAGE if must else ""), path
        assert client.get("/api/v1/pools/").status_code == (403 if must else 200)
        assert client.get("/metrics").status_code == (403 if must else 200)
        assert client.get(PAGE).status_code == 200
        assert ("requires a second factor" in client.get(PAGE).text) == must
        assert client.post(reverse("admin:logout")).status_code == 200


def test_tokens_are_a_factor_of_their_own(settings: Any, olga: Enrolled) -> None:
    from pools.platform.rest import token_scopes

    settings.IPAM_SECOND_FACTOR = "everybody"
    for user in (olga.user, person(is_superuser=True)):
        headers = {"Authorization": f"Token {token_scopes.create_token(user)}"}
        assert Client().get("/api/v1/pools/", headers=headers).status_code == 200


def test_a_directory_account_is_never_asked(settings: Any) -> None:
    settings.IPAM_SECOND_FACTOR = "everybody"
    ada = directory.sign_in(Person(DirectorySource.OIDC, "ada", "ada", groups=["net-admins"]))
    client = people.signed_in(ada)
    assert client.get("/admin/").status_code == 200
    for path in (PAGE, ADD_PASSKEY):
        page = client.get(path)
        assert (page.status_code, "at the directory of" in page.text) == (403, True)
    for path in (APP, ADD_PASSKEY):
        assert client.post(path, {"code": "123456"}).status_code == 403
    assert not Authenticator.objects.exists()


def test_an_administrator_resets_it_but_not_that_of_a_superuser(clock: Clock) -> None:
    root, lost = Enrolled(clock), Enrolled(clock, is_superuser=False)
    administrator = person()
    administrator.groups.add(Group.objects.get(name="administrator"))
    client = give_password(administrator)
    paths = {
        user.pk: reverse("admin:reset_second_factor", args=[user.pk])
        for user in (root.user, lost.user)
    }
    assert client.post(paths[root.user.pk]).status_code == 403
    assert people.browser([]).post(paths[lost.user.pk]).status_code == 403
    change = reverse("admin:auth_user_change", args=[lost.user.pk])
    assert paths[lost.user.pk] in client.get(change).text
    assert client.get(paths[lost.user.pk]).status_code == 200
    assert Authenticator.objects.filter(type="totp").count() == 2
    assert client.post(paths[lost.user.pk]).headers["Location"] == change
    assert {factor.user for factor in Authenticator.objects.all()} == {root.user}
    event = Event.objects.get(type="authenticator_app.deleted")
    assert (event.actor, event.holder_id) == (administrator.username, lost.user.username)
    assert is_signed_in(give_password(lost.user))
    assert people.browser().post(paths[root.user.pk]).status_code == 302
    assert not Authenticator.objects.exists()


def test_the_command_resets_it(olga: Enrolled) -> None:
    assert "was removed" in commands.output("second_factor", "reset", olga.user.username)
    assert Event.objects.get(type="authenticator_app.deleted").actor == "manage.py"
    assert is_signed_in(give_password(olga.user))
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("second_factor", "reset", olga.user.username)
    with pytest.raises(CommandError, match="There is no user nobody"):
        call_command("second_factor", "reset", "nobody")


def test_the_secret_follows_the_key_ring(olga: Enrolled, settings: Any) -> None:
    settings.IPAM_KEY_RING = [randomness.token_urlsafe(32), *settings.IPAM_KEY_RING]
    commands.output("rotate_keys")
    settings.IPAM_KEY_RING = settings.IPAM_KEY_RING[:1]
    for row in Authenticator.objects.all():
        sealed = row.data["secret" if row.type == "totp" else "seed"]
        assert secrets.key_name(sealed) == secrets.key_ring().newest
    assert give_password(olga.user).post(CODE, {"code": olga.code()}).status_code == 302
    settings.IPAM_KEY_RING = [randomness.token_urlsafe(32)]
    refused = give_password(olga.user)
    for code in (olga.code(), olga.recovery_codes[0]):
        assert refused.post(CODE, {"code": code}).status_code == 200
    assert not is_signed_in(refused)


def test_a_user_without_a_password_enrols_nothing() -> None:
    user = people.user()
    user.set_unusable_password()
    user.save()
    client = people.signed_in(user)
    assert client.get(PAGE).status_code == 403
    assert client.get(APP).status_code == 403
