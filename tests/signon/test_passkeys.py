"""Passkeys of accounts of this site: what is accepted, and everything that is not."""

import json
import re
import time
from typing import Any

import pytest
from allauth.mfa.models import Authenticator as Factor
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from pools.models import Event, LoginFailures
from tests.signon.authenticator import UP, Authenticator, encode
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

ADD, SIGN_IN = "/admin/second-factor/webauthn/add/", "/admin/second-factor/webauthn/login/"
PROVE = "/admin/second-factor/webauthn/reauthenticate/"
REFUSED = "This passkey was not accepted"
PASSKEYS = Factor.objects.filter(type="webauthn")


@pytest.fixture(autouse=True)
def _local(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "ipam.example.org", "testserver"]


class Owner:
    """A superuser with a passkey; `client` is signed in."""

    def __init__(self) -> None:
        self.user = person(is_superuser=True)
        self.device = Authenticator()
        self.client = self.give_password()
        assert self.add(self.device, "laptop").headers["Location"] == CODES
        self.recovery_codes = re.findall(r"\b\d{16}\b", self.client.get(CODES).text)

    def give_password(self) -> Client:
        return give_password(self.user)

    def confirm(self) -> Any:
        """Prove the identity again, as changes need."""
        if self.client.get(CONFIRM).status_code == 200:
            return self.client.post(CONFIRM, {"password": PASSWORD})
        return send(self.client, PROVE, self.device.get(options(self.client.get(PROVE))))

    def add(self, device: Authenticator, name: str) -> Any:
        assert self.confirm().status_code == 302
        return send(self.client, ADD, device.create(options(self.client.get(ADD))), name=name)

    def prove(self, client: Client, device: Authenticator | None = None, **values: Any) -> Any:
        return send(client, CODE, (device or self.device).get(options(client.get(CODE)), **values))


def options(page: Any) -> dict[str, Any]:
    """Return the options for the browser that a page has."""
    assert page.status_code == 200, page
    match = re.search(r'<script id="js_data" type="application/json">(.*?)</script>', page.text)
    assert match, page.text
    (parts,) = json.loads(match[1]).values()
    public_key: dict[str, Any] = parts["publicKey"]
    return public_key


def options_alone(client: Client) -> dict[str, Any]:
    answer = client.get(SIGN_IN, headers={"Accept": "application/json"}).json()
    public_key: dict[str, Any] = answer["request_options"]["publicKey"]
    return public_key


def send(client: Client, path: str, answer: Any, **values: Any) -> Any:
    document = answer if isinstance(answer, str) else json.dumps(answer)
    return client.post(path, {"credential": document, **values})


def error_alone(answer: Any) -> str:
    """Return what the page of the sign-in says after a passkey was refused."""
    assert answer.headers["Location"] == LOGIN
    return str(answer.client.get(LOGIN).text)


def sign_in(device: Authenticator, **values: Any) -> Any:
    """Sign in without a password; the answer has the client."""
    client = Client(SERVER_NAME="localhost")
    return send(client, SIGN_IN, device.get(options_alone(client)), **values)


@pytest.fixture
def olga() -> Owner:
    return Owner()


def test_enrolment_gives_recovery_codes_once() -> None:
    owner = Owner()
    assert len(set(owner.recovery_codes)) == 10
    page = owner.client.get("/admin/second-factor/webauthn/").text
    assert ("laptop" in page, owner.recovery_codes[0] in page) == (True, False)
    second = owner.add(Authenticator(), "key")
    assert second.headers["Location"] == PAGE  # without new codes
    assert [str(row) for row in PASSKEYS.order_by("pk")] == ["laptop", "key"]
    assert is_signed_in(owner.client)
    types = Event.objects.filter(type="passkey.created").order_by("id")
    assert [(event.actor, event.message) for event in types] == [
        (owner.user.username, "laptop"),
        (owner.user.username, "key"),
    ]
    code = owner.give_password()
    assert code.post(CODE, {"code": owner.recovery_codes[0]}).status_code == 302
    assert is_signed_in(code)


def test_a_passkey_is_the_second_step(olga: Owner) -> None:
    client = olga.give_password()
    assert not is_signed_in(client)
    assert "Use a passkey" in client.get(CODE).text
    answer = olga.prove(client)
    assert (answer.status_code, is_signed_in(client)) == (302, True)
    assert PASSKEYS.get().last_used_at is not None
    event = Event.objects.get(type="passkey.used")
    assert (event.actor, event.reason) == (olga.user.username, "second step of a sign-in")


def test_the_second_step_needs_no_verified_user_but_a_sign_in_alone_does(olga: Owner) -> None:
    olga.device.flags = UP
    client = olga.give_password()
    assert olga.prove(client).status_code == 302
    answer = sign_in(olga.device)
    assert REFUSED in error_alone(answer)
    assert not is_signed_in(answer.client)


def test_a_challenge_of_the_second_step_does_not_sign_in_alone(olga: Owner) -> None:
    olga.device.flags = UP
    client = olga.give_password()
    send(client, SIGN_IN, olga.device.get(options(client.get(CODE))))
    assert not is_signed_in(client)


def test_a_passkey_signs_in_alone_and_keeps_the_way(olga: Owner) -> None:
    assert "Sign in with a passkey" in Client(SERVER_NAME="localhost").get(LOGIN).text
    answer = sign_in(olga.device, next="/admin/pools/pool/")
    assert answer.headers["Location"] == "/admin/pools/pool/"
    assert answer.client.get("/admin/pools/pool/").status_code == 200
    assert Event.objects.get(type="passkey.used").reason == "sign-in without a password"
    elsewhere = sign_in(olga.device, next="https://evil.example/")
    assert elsewhere.headers["Location"] == reverse("admin:index")


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "origin of another site": ({"origin": "https://evil.example"}, {}),
    "origin of a subdomain": ({"origin": "http://a.localhost"}, {}),
    "origin of another port": ({"origin": "http://localhost:8001"}, {}),
    "origin of another scheme": ({"origin": "https://localhost"}, {}),
    "another RP id": ({"rp_id": "example.org"}, {}),
    "a frame": ({"cross_origin": True}, {}),
    "nobody present": ({"flags": 0}, {}),
    "another challenge": ({}, {"challenge": "A" * 43}),
    "another type": ({}, {"type": "webauthn.create"}),
    "another key": ({"key": Authenticator().key}, {}),
    "an unknown credential": ({"credential_id": b"y" * 32}, {}),
}


@pytest.mark.sample(11)
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_signs_nobody_in(olga: Owner, case: str) -> None:
    device, client_data = WRONG[case]
    for name, value in device.items():
        setattr(olga.device, name, value)
    client = olga.give_password()
    answer = olga.prove(client, **client_data)
    assert (answer.status_code, REFUSED in answer.text) == (200, True), answer.text
    assert not is_signed_in(client)
    alone = Client(SERVER_NAME="localhost")
    answer = send(alone, SIGN_IN, olga.device.get(options_alone(alone), **client_data))
    assert REFUSED in error_alone(answer)
    assert not is_signed_in(alone)


def test_the_handle_of_another_account_signs_nobody_in(olga: Owner) -> None:
    for handle in (b"x" * 16, b"\xff", Owner().device.handle):
        olga.device.handle = handle
        assert REFUSED in error_alone(sign_in(olga.device))


def test_an_answer_is_good_once_and_in_its_session_only(olga: Owner) -> None:
    olga.device.count = 0  # so that no counter refuses the replay
    for row in PASSKEYS.all():
        row.data["sign_count"] = 0
        row.save()
    client = olga.give_password()
    answer = olga.device.get(options(client.get(CODE)))
    thief = olga.give_password()
    thief.get(CODE)
    assert REFUSED in send(thief, CODE, answer).text
    assert send(client, CODE, answer).status_code == 302
    assert REFUSED in send(olga.give_password(), CODE, answer).text
    client.post(reverse("admin:logout"))
    client.post(LOGIN, {"username": olga.user.username, "password": PASSWORD})
    assert REFUSED in send(client, CODE, answer).text
    assert REFUSED in error_alone(send(Client(SERVER_NAME="localhost"), SIGN_IN, answer))


def test_a_wrong_answer_uses_up_the_challenge(olga: Owner) -> None:
    client, alone = olga.give_password(), Client(SERVER_NAME="localhost")
    for path, challenge in ((CODE, options(client.get(CODE))), (SIGN_IN, options_alone(alone))):
        right = olga.device.get(challenge)
        who = client if path == CODE else alone
        send(who, path, olga.device.get(challenge, origin="https://evil.example"))
        send(who, path, right)
        assert not is_signed_in(who)
    assert PASSKEYS.get().last_used_at is None


@pytest.mark.parametrize(("seconds", "is_in_time"), [(290, True), (310, False)])
def test_a_challenge_ends_after_five_minutes(
    olga: Owner, monkeypatch: pytest.MonkeyPatch, seconds: int, *, is_in_time: bool
) -> None:
    client, alone = olga.give_password(), Client(SERVER_NAME="localhost")
    step, way = olga.device.get(options(client.get(CODE))), olga.device.get(options_alone(alone))
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)
    send(client, CODE, step)
    send(alone, SIGN_IN, way)
    assert (is_signed_in(client), is_signed_in(alone)) == (is_in_time, is_in_time)


def test_the_passkey_of_somebody_else_is_unknown(olga: Owner) -> None:
    eve = Owner()
    client = olga.give_password()
    assert REFUSED in olga.prove(client, eve.device).text
    assert not is_signed_in(client)
    eve.confirm()
    removed = eve.client.post(reverse("mfa_remove_webauthn", args=[PASSKEYS.order_by("pk")[0].pk]))
    assert removed.status_code == 404


def test_a_counter_that_goes_backwards_is_refused_and_recorded(olga: Owner) -> None:
    assert olga.prove(olga.give_password()).status_code == 302
    olga.device.count = 2
    client = olga.give_password()
    answer = olga.prove(client)
    assert (answer.status_code, "it may have been copied" in answer.text) == (200, True)
    assert not is_signed_in(client)
    event = Event.objects.get(type="passkey.counter_regressed")
    assert (event.holder_id, event.message) == (olga.user.username, "laptop")
    olga.device.count = 9
    assert olga.prove(olga.give_password()).status_code == 302


def _garbage(answer: dict[str, Any]) -> list[Any]:
    """Answers of which one part is missing, of another kind, or cut."""
    texts = ["", "x", "null", "[]", "1", '"' + "A" * 70_000, "[" * 100_000, '{"id": 1']
    changed: list[Any] = [*texts]
    values = (None, 1, [], {}, "", "!", "é", "A", "\ud800", "n" * 20_000)
    # Each part gets a third of the values, by turns, and each value comes to each third part.
    for turn, value in enumerate(values):
        for within in (answer, answer["response"]):
            for name in list(within)[turn % 3 :: 3]:
                part = {**within, name: value}
                changed.append(part if within is answer else {**answer, "response": part})
    for name, text in answer["response"].items():
        changed.append({**answer, "response": {**answer["response"], name: text[:-4]}})
    return changed


@pytest.mark.exhaustive
def test_garbage_signs_nobody_in_and_is_not_enrolled(olga: Owner) -> None:
    alone, client = Client(SERVER_NAME="localhost"), olga.give_password()
    for answer in _garbage(olga.device.get(options(client.get(CODE)))):
        options_alone(alone)
        client.get(CODE)
        LoginFailures.objects.all().delete()
        assert send(alone, SIGN_IN, answer).headers["Location"] == LOGIN, answer
        assert send(client, CODE, answer).status_code == 200, answer
    assert not is_signed_in(alone)
    assert not is_signed_in(client)
    olga.confirm()
    good = Authenticator().create(options(olga.client.get(ADD)))
    deep = encode(b"\x81" * 5000 + b"\x00")
    nested = {**good, "response": {**good["response"], "attestationObject": deep}}
    for answer in [*_garbage(good), nested]:
        olga.client.get(ADD)
        assert send(olga.client, ADD, answer, name="more").status_code == 200, answer
    assert PASSKEYS.count() == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("changes", [{"origin": "https://evil.example"}, {"rp_id": "example.org"},
    {"flags": 0}, {"cross_origin": True}])  # fmt: skip
def test_a_wrong_passkey_is_not_enrolled(olga: Owner, changes: dict[str, Any]) -> None:
    refused = olga.add(Authenticator(**changes), "more")
    assert (refused.status_code, REFUSED in refused.text) == (200, True)
    assert PASSKEYS.count() == 1


def test_a_name_and_a_passkey_are_enrolled_once(olga: Owner) -> None:
    assert "a passkey of this name" in olga.add(Authenticator(), "laptop").text
    assert REFUSED in olga.add(olga.device, "again").text
    other = Owner()
    assert REFUSED in other.add(olga.device, "stolen").text  # an id belongs to one account
    for name in ("n" * 101, "a\x00b"):
        assert olga.add(Authenticator(), name).status_code == 200, name
    assert PASSKEYS.count() == 2
    assert olga.add(Authenticator(), "").status_code == 302  # gets a name


def test_wrong_passwords_of_a_session_close_the_account(settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 2
    client = give_password(person(is_superuser=True))
    for _ in range(2):
        assert "Incorrect password" in client.post(CONFIRM, {"password": "wrong"}).text
    throttled = client.post(CONFIRM, {"password": PASSWORD})
    assert (throttled.status_code, int(throttled.headers["Retry-After"]) > 0) == (429, True)
    assert client.get(ADD).status_code == 302


def test_wrong_answers_close_the_account(olga: Owner, settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 2
    right, olga.device.key = olga.device.key, Authenticator().key
    for _ in range(2):
        assert REFUSED in error_alone(sign_in(olga.device))
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


def test_changes_need_the_factor_anew(olga: Owner) -> None:
    olga.add(Authenticator(), "key")
    key, laptop = (PASSKEYS.get(data__name=name).pk for name in ("key", "laptop"))
    path = reverse("mfa_remove_webauthn", args=[key])
    fresh = olga.give_password()
    olga.prove(fresh)
    answer = Authenticator().create({"user": {"id": ""}, "challenge": ""})
    for refused in (fresh.get(ADD), send(fresh, ADD, answer), fresh.post(path)):
        assert refused.headers["Location"].startswith("/admin/second-factor/reauthenticate/")
    assert PASSKEYS.count() == 2
    assert olga.client.post(path).status_code == 302
    assert [row.pk for row in PASSKEYS.all()] == [laptop]
    assert Event.objects.get(type="passkey.deleted").message == "key"
    olga.client.post(reverse("mfa_remove_webauthn", args=[laptop]))
    assert not Factor.objects.exists()  # the recovery codes go with the last passkey


@pytest.mark.parametrize("mode", ["administrators", "everybody"])
def test_a_passkey_is_what_the_settings_require(settings: Any, mode: str) -> None:
    settings.IPAM_SECOND_FACTOR = mode
    user = person()
    user.groups.add(Group.objects.get(name="administrator"))
    client = give_password(user)
    assert client.get("/admin/").headers["Location"] == PAGE
    client.post(CONFIRM, {"password": PASSWORD})
    answer = Authenticator().create(options(client.get(ADD)))
    assert send(client, ADD, answer, name="a").status_code == 302
    assert client.get("/admin/").status_code == 200


def test_accounts_that_may_not_sign_in_do_not_with_a_passkey(olga: Owner) -> None:
    for changes in ({"is_active": False}, {"is_staff": False, "is_superuser": False},
                    {"password": "!"}):  # fmt: skip
        before = {name: getattr(olga.user, name) for name in changes}
        type(olga.user).objects.filter(pk=olga.user.pk).update(**changes)
        assert REFUSED in error_alone(sign_in(olga.device)), changes
        type(olga.user).objects.filter(pk=olga.user.pk).update(**before)
    assert sign_in(olga.device).status_code == 302


def test_behind_a_proxy_the_origin_is_https(settings: Any, olga: Owner) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    host = {"HTTP_HOST": "ipam.example.org", "HTTP_X_FORWARDED_PROTO": "https"}
    olga.confirm()
    olga.client.defaults |= host
    device = Authenticator(origin="https://ipam.example.org", rp_id="ipam.example.org")
    added = send(olga.client, ADD, device.create(options(olga.client.get(ADD))), name="office")
    assert added.status_code == 302
    proxied = Client(**host)
    answer = send(proxied, SIGN_IN, device.get(options_alone(proxied)))
    assert (answer.status_code, is_signed_in(proxied)) == (302, True)
    # The name is that of Host alone: what a proxy says beside it is not read.
    settings.ALLOWED_HOSTS = ["ipam.example.org", "internal.example.org", "localhost"]
    renamed = Client(**host | {"HTTP_HOST": "internal.example.org"}, HTTP_X_FORWARDED_HOST="ipam.example.org")  # fmt: skip
    send(renamed, SIGN_IN, device.get(options_alone(renamed)))
    assert not is_signed_in(renamed)


def test_a_request_needs_the_form_of_the_page(olga: Owner) -> None:
    client = Client(SERVER_NAME="localhost", enforce_csrf_checks=True)
    for path in (SIGN_IN, PROVE, ADD, CODE):
        assert client.post(path).status_code == 403
    stranger = Client(SERVER_NAME="localhost")
    assert stranger.get(CODE).headers["Location"] == LOGIN


def test_other_sessions_end_with_the_first_passkey() -> None:
    user = person(is_superuser=True)
    client, other = give_password(user), give_password(user)
    client.post(CONFIRM, {"password": PASSWORD})
    answer = Authenticator().create(options(client.get(ADD)))
    key = client.session.session_key
    send(client, ADD, answer, name="a")
    assert client.session.session_key != key
    assert client.get("/admin/").status_code == 200
    assert other.get("/admin/").status_code == 302


def test_an_app_beside_a_passkey(olga: Owner) -> None:
    secret = re.search(r'id="authenticator_secret">([A-Z2-7]{32})<', olga.client.get(APP).text)
    assert secret
    now = int(time.time()) // 30
    codes = [totp.format_hotp_value(totp.hotp_value(secret[1], now + step)) for step in (0, 1)]
    added = olga.client.post(APP, {"code": codes[0]})
    assert added.headers["Location"] == PAGE  # without new recovery codes
    assert is_signed_in(olga.client)
    with_passkey, with_code = olga.give_password(), olga.give_password()
    assert olga.prove(with_passkey).status_code == 302
    assert with_code.post(CODE, {"code": codes[1]}).status_code == 302
    # The app stays when the last passkey goes.
    olga.client.post(reverse("mfa_remove_webauthn", args=[PASSKEYS.get().pk]))
    assert Factor.objects.filter(type="totp").exists()
    assert is_signed_in(olga.client)
