"""Passkeys of accounts of this site: what is accepted, and everything that is not."""

from __future__ import annotations

import base64
import io
import json
import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django_otp.oath import TOTP

from claims.access import directory
from claims.access.directory import Person
from pools.models import DirectorySource, Event, LoginFailures, Passkey, SecondFactor
from pools.platform import second_factor
from tests import people
from tests.signon.authenticator import UP, Authenticator

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough pass phrase"
PAGE, REMOVE = "/admin/second-factor/", "/admin/second-factor/remove/"
CREATE, ADD = "/admin/second-factor/passkeys/options/", "/admin/second-factor/passkeys/"
LOGIN, CODE, PROVE = "/admin/login/", "/admin/login/code/", "/admin/login/code/options/"
SIGN_IN, SIGN_IN_OPTIONS = "/admin/login/passkey/", "/admin/login/passkey/options/"


@pytest.fixture(autouse=True)
def _local(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "ipam.example.org", "testserver"]


class Owner:
    """A superuser with a passkey; `client` is signed in."""

    def __init__(self, **options: Any) -> None:
        self.user = people.user(**{"is_superuser": True, **options})
        self.user.set_password(PASSWORD)
        self.user.save()
        self.device = Authenticator()
        self.client = self.give_password()
        page = self.add(self.device, "laptop").text
        self.recovery_codes = re.findall(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", page)

    def give_password(self) -> Client:
        client = Client(SERVER_NAME="localhost")
        client.post(LOGIN, {"username": self.user.username, "password": PASSWORD})
        return client

    def add(self, device: Authenticator, name: str) -> Any:
        options = self.client.post(CREATE, {"name": name, "password": PASSWORD})
        assert options.status_code == 200, options.text
        return send(self.client, ADD, device.create(options.json()))

    def prove(self, client: Client, device: Authenticator | None = None, **values: Any) -> Any:
        options = client.post(PROVE).json()
        return send(client, CODE, (device or self.device).get(options, **values))


def send(client: Client, path: str, answer: Any, **values: Any) -> Any:
    document = answer if isinstance(answer, str) else json.dumps(answer)
    return client.post(path, {"credential": document, **values})


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def sign_in(device: Authenticator, **values: Any) -> Any:
    """Sign in without a password; the answer has the client."""
    client = Client(SERVER_NAME="localhost")
    options = client.post(SIGN_IN_OPTIONS).json()
    return send(client, SIGN_IN, device.get(options), **values)


@pytest.fixture
def olga() -> Owner:
    return Owner()


def test_enrolment_gives_recovery_codes_once_and_ends_other_sessions() -> None:
    owner = Owner()
    assert len(owner.recovery_codes) == second_factor.RECOVERY_CODES
    page = owner.client.get(PAGE).text
    assert ("laptop" in page, owner.recovery_codes[0] in page) == (True, False)
    second = owner.add(Authenticator(), "key")
    assert second.headers["Location"] == PAGE  # without new codes
    assert list(Passkey.objects.values_list("name", flat=True).order_by("pk")) == ["laptop", "key"]
    assert is_signed_in(owner.client)
    types = Event.objects.filter(type__startswith="passkey.").order_by("id")
    assert [(event.type, event.actor, event.message) for event in types] == [
        ("passkey.created", owner.user.username, "laptop"),
        ("passkey.created", owner.user.username, "key"),
    ]
    code = owner.give_password()
    assert code.post(CODE, {"code": owner.recovery_codes[0]}).status_code == 302
    assert is_signed_in(code)


def test_other_sessions_end_with_the_first_passkey() -> None:
    user = people.user(is_superuser=True)
    user.set_password(PASSWORD)
    user.save()
    client, other = Client(SERVER_NAME="localhost"), Client(SERVER_NAME="localhost")
    for one in (client, other):
        one.post(LOGIN, {"username": user.username, "password": PASSWORD})
    options = client.post(CREATE, {"name": "a", "password": PASSWORD}).json()
    key = client.session.session_key
    send(client, ADD, Authenticator().create(options))
    assert client.session.session_key != key
    assert client.get("/admin/").status_code == 200
    assert other.get("/admin/").status_code == 302


def test_a_passkey_is_the_second_step(olga: Owner) -> None:
    client = olga.give_password()
    assert not is_signed_in(client)
    assert "Use a passkey" in client.get(CODE).text
    answer = olga.prove(client)
    assert (answer.status_code, is_signed_in(client)) == (302, True)
    passkey = Passkey.objects.get()
    assert passkey.last_used_at is not None
    event = Event.objects.get(type="passkey.used")
    assert (event.actor, event.reason) == (olga.user.username, "second step of a sign-in")


def test_the_second_step_needs_no_verified_user_but_a_sign_in_alone_does(olga: Owner) -> None:
    olga.device.flags = UP
    client = olga.give_password()
    assert olga.prove(client).status_code == 302
    answer = sign_in(olga.device)
    assert answer.status_code == 400
    assert "(passkey_refused)" in answer.text
    assert not is_signed_in(answer.client)


def test_a_challenge_of_the_second_step_does_not_sign_in_alone(olga: Owner) -> None:
    olga.device.flags = UP
    client = olga.give_password()
    answer = send(client, SIGN_IN, olga.device.get(client.post(PROVE).json()))
    assert "(passkey_challenge_invalid)" in answer.text
    assert not is_signed_in(client)


def test_a_passkey_signs_in_alone_and_keeps_the_way(olga: Owner) -> None:
    assert "Sign in with a passkey" in Client(SERVER_NAME="localhost").get(LOGIN).text
    answer = sign_in(olga.device, next="/admin/pools/pool/")
    assert answer.headers["Location"] == "/admin/pools/pool/"
    assert answer.client.get("/admin/pools/pool/").status_code == 200
    assert Event.objects.get(type="passkey.used").reason == "sign-in without a password"
    elsewhere = sign_in(olga.device, next="https://evil.example/")
    assert elsewhere.headers["Location"] == reverse("admin:index")


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "origin of another site": ({"origin": "https://evil.example"}, {}, "passkey_refused"),
    "origin of a subdomain": ({"origin": "http://a.localhost"}, {}, "passkey_refused"),
    "origin of another port": ({"origin": "http://localhost:8001"}, {}, "passkey_refused"),
    "origin of another scheme": ({"origin": "https://localhost"}, {}, "passkey_refused"),
    "another RP id": ({"rp_id": "example.org"}, {}, "passkey_refused"),
    "a frame": ({"cross_origin": True}, {}, "passkey_refused"),
    "nobody present": ({"flags": 0}, {}, "passkey_refused"),
    "another challenge": ({}, {"challenge": "A" * 43}, "passkey_challenge_invalid"),
    "another type": ({}, {"type": "webauthn.create"}, "passkey_refused"),
    "another account's handle": ({"handle": b"x" * 16}, {}, "passkey_unknown"),
    "another key": ({"key": Authenticator().key}, {}, "passkey_refused"),
    "an unknown credential": ({"credential_id": b"y" * 32}, {}, "passkey_unknown"),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_signs_nobody_in(olga: Owner, case: str) -> None:
    device, client_data, code = WRONG[case]
    for name, value in device.items():
        setattr(olga.device, name, value)
    client = olga.give_password()
    answer = olga.prove(client, **client_data)
    assert (answer.status_code, f"({code})" in answer.text) == (400, True), answer.text
    assert not is_signed_in(client)
    alone = Client(SERVER_NAME="localhost")
    options = alone.post(SIGN_IN_OPTIONS).json()
    answer = send(alone, SIGN_IN, olga.device.get(options, **client_data))
    assert (answer.status_code, f"({code})" in answer.text) == (400, True), answer.text
    assert not is_signed_in(alone)


def test_an_answer_is_good_once_and_in_its_session_only(olga: Owner) -> None:
    olga.device.count = 0  # so that no counter refuses the replay
    Passkey.objects.update(sign_count=0)
    client = olga.give_password()
    answer = olga.device.get(client.post(PROVE).json())
    thief = olga.give_password()
    thief.post(PROVE)
    assert "(passkey_challenge_invalid)" in send(thief, CODE, answer).text
    assert send(client, CODE, answer).status_code == 302
    for replay in (olga.give_password(), client):
        assert "(passkey_challenge_invalid)" in send(replay, SIGN_IN, answer).text
    again = olga.give_password()
    options = again.post(PROVE).json()
    assert send(again, CODE, "{}").status_code == 400  # uses up the challenge
    assert "(passkey_challenge_invalid)" in send(again, CODE, olga.device.get(options)).text
    assert not is_signed_in(again)


def test_a_challenge_expires(olga: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipam_site.sign_on import ceremony

    client = olga.give_password()
    options = client.post(PROVE).json()
    late = ceremony.time.time() + 301
    monkeypatch.setattr(ceremony.time, "time", lambda: late)
    answer = send(client, CODE, olga.device.get(options))
    assert "(passkey_challenge_invalid)" in answer.text
    assert not is_signed_in(client)


def test_the_passkey_of_somebody_else_is_unknown(olga: Owner) -> None:
    eve = Owner()
    client = olga.give_password()
    assert "(passkey_unknown)" in olga.prove(client, eve.device).text
    assert not is_signed_in(client)
    removed = eve.client.post(reverse("admin:passkey_remove", args=[Passkey.objects.first().pk]))
    assert removed.status_code == 404


def test_a_counter_that_goes_backwards_is_refused_and_recorded(olga: Owner) -> None:
    assert olga.prove(olga.give_password()).status_code == 302
    olga.device.count = 2
    client = olga.give_password()
    answer = olga.prove(client)
    assert (answer.status_code, "(passkey_counter_regressed)" in answer.text) == (400, True)
    assert not is_signed_in(client)
    event = Event.objects.get(type="passkey.counter_regressed")
    assert (event.holder_id, event.message) == (olga.user.username, "laptop")
    olga.device.count = 9
    assert olga.prove(olga.give_password()).status_code == 302
    assert "it may have been copied" in olga.client.get(PAGE).text


def _mutations(answer: dict[str, Any]) -> list[Any]:
    """Answers of which one part is missing, of another kind, or cut."""
    changed: list[Any] = [
        "",
        "x",
        "null",
        "[]",
        "{}",
        "1",
        '"' + "A" * 70_000,
        "[" * 100_000,
        '{"id": 1',
    ]
    values = (None, 1, [], {}, "", "!", "é", "A", "_" * 9, "gGGG", "\ud800", "n" * 20_000)
    for value in values:
        changed += [{**answer, name: value} for name in answer]
        changed += [
            {**answer, "response": {**answer["response"], name: value}}
            for name in answer["response"]
        ]
    for name, text in answer["response"].items():
        cuts = (text[: len(text) // 2], text[:-4], text + "AAAA", text[4:])
        changed += [{**answer, "response": {**answer["response"], name: cut}} for cut in cuts]
    return changed


@pytest.mark.exhaustive
def test_garbage_is_a_bad_request_with_a_code(olga: Owner) -> None:
    alone = Client(SERVER_NAME="localhost")
    client = olga.give_password()
    good = olga.device.get(client.post(PROVE).json())
    # Django's own form drops what is empty, and asks for the code.
    for answer in _mutations(good)[1:]:
        alone.post(SIGN_IN_OPTIONS)
        client.post(PROVE)
        LoginFailures.objects.all().delete()
        for response in (send(alone, SIGN_IN, answer), send(client, CODE, answer)):
            assert response.status_code == 400, (answer, response.status_code)
            assert re.search(r"\(passkey_\w+\)", response.text)
    assert not is_signed_in(alone)
    assert not is_signed_in(client)


@pytest.mark.exhaustive
def test_garbage_is_not_enrolled(olga: Owner) -> None:
    deep = b"\x81" * 5000 + b"\x00"
    values = {"name": "more", "password": PASSWORD}
    good = Authenticator().create(olga.client.post(CREATE, values).json())
    from tests.signon.authenticator import encode

    nested = {**good, "response": {**good["response"], "attestationObject": encode(deep)}}
    for answer in [*_mutations(good), nested]:
        olga.client.post(CREATE, values)
        response = send(olga.client, ADD, answer)
        assert response.status_code == 400, (answer, response.status_code)
        assert re.search(r"\(passkey_\w+\)", response.text)
    assert Passkey.objects.count() == 1


@pytest.mark.sample(6)
@pytest.mark.parametrize("changes", [{"origin": "https://evil.example"}, {"rp_id": "example.org"},
    {"flags": 0}, {"algorithm": -65535}, {"credential_id": b""}, {"credential_id": b"z" * 1024}])  # fmt: skip
def test_a_wrong_passkey_is_not_enrolled(olga: Owner, changes: dict[str, Any]) -> None:
    assert olga.add(Authenticator(**changes), "more").status_code == 400
    assert Passkey.objects.count() == 1


def test_a_name_and_a_passkey_are_enrolled_once(olga: Owner) -> None:
    values = {"name": "laptop", "password": PASSWORD}
    refused = olga.client.post(CREATE, values)
    assert (refused.status_code, refused.json()["code"]) == (409, "passkey_exists")
    again = olga.add(olga.device, "again")
    assert (again.status_code, "(passkey_exists)" in again.text) == (409, True)
    other = Owner()
    assert other.add(olga.device, "stolen").status_code == 409  # an id belongs to one account
    for name in ("", " ", "n" * 101, "a\x00b"):
        bad = olga.client.post(CREATE, {**values, "name": name})
        assert (bad.status_code, bad.json()["code"]) == (400, "invalid"), name


def test_adding_needs_the_password(olga: Owner, settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 2
    wrong = {"name": "more", "password": "wrong"}
    for _ in range(2):
        refused = olga.client.post(CREATE, wrong)
        assert (refused.status_code, "not your password" in refused.json()["detail"]) == (400, True)
    throttled = olga.client.post(CREATE, {**wrong, "password": PASSWORD})
    assert (throttled.status_code, throttled.json()["code"]) == (429, "throttled")
    assert send(olga.client, ADD, Authenticator().create({"user": {"id": ""}, "challenge": ""}))
    assert Passkey.objects.count() == 1


def test_wrong_answers_close_the_account(olga: Owner, settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 2
    right, olga.device.key = olga.device.key, Authenticator().key
    for _ in range(2):
        assert sign_in(olga.device).status_code == 400
    olga.device.key = right
    refused = sign_in(olga.device)
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert not is_signed_in(refused.client)


@pytest.mark.exhaustive
def test_right_answers_leave_no_failures(olga: Owner) -> None:
    for _ in range(3):
        assert sign_in(olga.device).status_code == 302
        assert olga.prove(olga.give_password()).status_code == 302
    assert sum(LoginFailures.objects.values_list("failures", flat=True)) == 0


@pytest.mark.exhaustive
def test_removing_needs_password_and_factor(olga: Owner) -> None:
    olga.add(Authenticator(), "key")
    passkey = Passkey.objects.get(name="key")
    path = reverse("admin:passkey_remove", args=[passkey.pk])
    client = olga.client
    proof = olga.device.get(client.post(PROVE).json())
    for values in ({}, {"password": PASSWORD}, {"password": "wrong", "credential": json.dumps(proof)},
                   {"password": PASSWORD, "code": "123456"}):  # fmt: skip
        assert client.post(path, values).status_code == 200
    proof = olga.device.get(client.post(PROVE).json())
    assert send(client, path, proof, password=PASSWORD).headers["Location"] == PAGE
    assert [row.name for row in Passkey.objects.all()] == ["laptop"]
    assert Event.objects.get(type="passkey.deleted").message == "key"
    SecondFactor.objects.update(throttling_failure_timestamp=None)
    last = reverse("admin:passkey_remove", args=[Passkey.objects.get().pk])
    values = {"password": PASSWORD, "code": olga.recovery_codes[0]}
    assert client.post(last, values).status_code == 302
    assert not SecondFactor.objects.exists()
    assert client.get("/admin/").status_code == 200


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", ["page", "administrator", "command"])
def test_a_reset_removes_passkeys(olga: Owner, way: str) -> None:
    if way == "page":
        proof = olga.device.get(olga.client.post(PROVE).json())
        assert send(olga.client, REMOVE, proof, password=PASSWORD).status_code == 302
    elif way == "administrator":
        path = reverse("admin:reset_second_factor", args=[olga.user.pk])
        assert people.browser().post(path).status_code == 302
    else:
        call_command("second_factor", "reset", olga.user.username, stdout=io.StringIO())
    assert (Passkey.objects.exists(), SecondFactor.objects.exists()) == (False, False)
    assert "(passkey_unknown)" in sign_in(olga.device).text
    assert is_signed_in(olga.give_password())


@pytest.mark.parametrize("mode", ["administrators", "everybody"])
def test_a_passkey_is_what_the_settings_require(settings: Any, mode: str) -> None:
    settings.IPAM_SECOND_FACTOR = mode
    user = people.user()
    user.groups.add(Group.objects.get(name="administrator"))
    user.set_password(PASSWORD)
    user.save()
    client = Client(SERVER_NAME="localhost")
    client.post(LOGIN, {"username": user.username, "password": PASSWORD})
    assert client.get("/admin/").headers["Location"] == PAGE
    options = client.post(CREATE, {"name": "a", "password": PASSWORD}).json()
    assert send(client, ADD, Authenticator().create(options)).status_code == 200
    assert client.get("/admin/").status_code == 200


def test_accounts_that_may_not_sign_in_do_not_with_a_passkey(olga: Owner) -> None:
    for changes in ({"is_active": False}, {"is_staff": False, "is_superuser": False},
                    {"password": "!"}):  # fmt: skip
        before = {name: getattr(olga.user, name) for name in changes}
        type(olga.user).objects.filter(pk=olga.user.pk).update(**changes)
        assert "(passkey_unknown)" in sign_in(olga.device).text, changes
        type(olga.user).objects.filter(pk=olga.user.pk).update(**before)
    assert sign_in(olga.device).status_code == 302


def test_directory_accounts_have_none(olga: Owner) -> None:
    ada = directory.sign_in(Person(DirectorySource.OIDC, "ada", "ada", groups=["net-admins"]))
    client = Client(SERVER_NAME="localhost")
    client.force_login(ada)
    assert "data-passkey" not in client.get(PAGE).text
    refused = client.post(CREATE, {"name": "a", "password": PASSWORD})
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    assert not Passkey.objects.filter(user=ada).exists()


@pytest.mark.parametrize(
    ("host", "secure", "text"),
    [("127.0.0.1", False, "opened by an IP address"), ("ipam.example.org", False, "HTTPS only")],
)
def test_the_page_says_why_there_are_no_passkeys(
    olga: Owner, host: str, secure: bool, text: str
) -> None:
    olga.client.defaults["SERVER_NAME"] = host
    page = olga.client.get(PAGE, secure=secure).text
    assert (text in page, "data-creates" in page) == (True, False)
    refused = olga.client.post(CREATE, {"name": "a", "password": PASSWORD}, secure=secure)
    assert (refused.status_code, refused.json()["code"]) == (400, "passkeys_unavailable")
    stranger = Client(SERVER_NAME=host)
    assert "Sign in with a passkey" not in stranger.get(LOGIN, secure=secure).text
    assert stranger.post(SIGN_IN_OPTIONS, secure=secure).json()["code"] == "passkeys_unavailable"
    half = Client(SERVER_NAME=host)
    half.post(LOGIN, {"username": olga.user.username, "password": PASSWORD}, secure=secure)
    page = half.get(CODE, secure=secure).text
    assert (text in page, "Use a passkey" in page) == (True, False)


def test_behind_a_proxy_the_origin_is_https(settings: Any, olga: Owner) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    host = {"HTTP_HOST": "ipam.example.org", "HTTP_X_FORWARDED_PROTO": "https"}
    olga.client.defaults |= host
    device = Authenticator(origin="https://ipam.example.org", rp_id="ipam.example.org")
    assert olga.add(device, "office").status_code == 302
    proxied = Client(**host)
    answer = send(proxied, SIGN_IN, device.get(proxied.post(SIGN_IN_OPTIONS).json()))
    assert (answer.status_code, is_signed_in(proxied)) == (302, True)
    # The name is that of Host alone: what a proxy says beside it is not read.
    settings.ALLOWED_HOSTS = ["ipam.example.org", "internal.example.org", "localhost"]
    renamed = Client(**host | {"HTTP_HOST": "internal.example.org"}, HTTP_X_FORWARDED_HOST="ipam.example.org")  # fmt: skip
    answer = send(renamed, SIGN_IN, device.get(renamed.post(SIGN_IN_OPTIONS).json()))
    assert "(passkey_unknown)" in answer.text
    # A passkey belongs to its host.
    at_home = Client(SERVER_NAME="localhost")
    device.origin, device.rp_id = "http://localhost", "localhost"
    answer = send(at_home, SIGN_IN, device.get(at_home.post(SIGN_IN_OPTIONS).json()))
    assert "(passkey_unknown)" in answer.text


def test_options_need_the_form_of_the_page(olga: Owner) -> None:
    client = Client(SERVER_NAME="localhost", enforce_csrf_checks=True)
    for path in (SIGN_IN_OPTIONS, SIGN_IN, PROVE):
        assert client.post(path).status_code == 403
        assert client.get(path).status_code in {403, 405}
    stranger = Client(SERVER_NAME="localhost")
    assert stranger.post(PROVE).headers["Location"] == "/admin/"


def test_an_app_beside_a_passkey(olga: Owner) -> None:
    secret = re.search(r'id="secret">([A-Z2-7]{32})<', olga.client.get(PAGE).text)
    assert secret
    totp = TOTP(base64.b32decode(secret[1]))
    added = olga.client.post(PAGE, {"password": PASSWORD, "code": f"{totp.token():06}"})
    assert added.headers["Location"] == PAGE  # without new recovery codes
    assert is_signed_in(olga.client)
    with_passkey, with_code = olga.give_password(), olga.give_password()
    assert olga.prove(with_passkey).status_code == 302
    totp.time = time.time() + 30
    assert with_code.post(CODE, {"code": f"{totp.token():06}"}).status_code == 302
    # The app stays when the last passkey goes.
    proof = olga.device.get(olga.client.post(PROVE).json())
    path = reverse("admin:passkey_remove", args=[Passkey.objects.get().pk])
    send(olga.client, path, proof, password=PASSWORD)
    assert SecondFactor.objects.get().sealed
    assert is_signed_in(olga.client)


def test_an_account_with_a_passkey_only_has_no_secret_to_seal(olga: Owner) -> None:
    out = io.StringIO()
    call_command("rotate_keys", stdout=out)
    assert olga.user.username not in out.getvalue()
    client = olga.give_password()
    assert client.post(CODE, {"code": "123456"}).status_code == 200
    assert not is_signed_in(client)
