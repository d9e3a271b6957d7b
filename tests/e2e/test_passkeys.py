"""Passkeys in a real browser, with the virtual authenticator of Chromium's DevTools protocol."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User

from pools.models import Event
from tests.e2e import strict

PASSWORD = "a password of the tests"
PASSKEYS = "/admin/second-factor/webauthn/"
DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


class Person:
    """A superuser at a browser with an authenticator; the site is opened as localhost, a valid RP id."""

    def __init__(self, browser: strict.Watched, url: str) -> None:
        self.user = User.objects.create_superuser("olga", password=PASSWORD)
        self.complaints, self.expected = browser.complaints, browser.expected
        self.page: Any = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        self.url = url.replace("127.0.0.1", "localhost")
        self.devtools = self.page.context.new_cdp_session(self.page)
        self.devtools.send("WebAuthn.enable")
        self.device = self.add_device()

    def add_device(self, **options: Any) -> str:
        sent = self.devtools.send(
            "WebAuthn.addVirtualAuthenticator", {"options": {**DEVICE, **options}}
        )
        return str(sent["authenticatorId"])

    def remove_device(self) -> None:
        self.devtools.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": self.device})

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)
        self.page.wait_for_load_state("networkidle")

    def give_password(self) -> None:
        self.open("/admin/login/")
        self.page.fill("input[name=username]", "olga")
        self.page.fill("input[name=password]", PASSWORD)
        self.page.press("input[name=password]", "Enter")

    def sign_out(self) -> None:
        self.page.context.clear_cookies()

    def add_passkey(self, name: str, *, alone: bool = True) -> None:
        self.page.fill("input[name=name]", name)
        self.page.set_checked("input[name=passwordless]", alone)
        self.page.get_by_role("button", name="Add").click()

    def confirm_password(self) -> None:
        self.page.fill("input[name=password]", PASSWORD)
        self.page.get_by_role("button", name="Confirm").click()


@pytest.fixture
def olga(browser: strict.Watched, live_server: Any) -> Person:
    return Person(browser, live_server.url)


def test_a_passkey_from_enrolment_to_removal(olga: Person) -> None:
    page = olga.page
    olga.give_password()
    page.wait_for_url("**/admin/")
    olga.open(f"{PASSKEYS}add/")
    page.fill("input[name=password]", "wrong")
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("Incorrect password.", exact=True).wait_for()
    olga.confirm_password()
    page.wait_for_url(f"**{PASSKEYS}add/")
    olga.add_passkey("laptop")
    page.locator("#recovery_codes").wait_for()
    assert len(page.locator("#recovery_codes").inner_text().split()) == 10
    page.locator("#codes_saved").check()
    olga.open(PASSKEYS)
    page.get_by_role("row", name="laptop").wait_for()

    # The second step, after the password.
    olga.sign_out()
    olga.give_password()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url("**/admin/")

    # Without a password.
    olga.sign_out()
    olga.open(f"/admin/login/?next={PASSKEYS}")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("row", name="laptop").wait_for()
    used = Event.objects.filter(type="passkey.used").order_by("id")
    assert [event.reason for event in used] == [
        "second step of a sign-in", "sign-in without a password",
    ]  # fmt: skip

    # A second one, of another device; the first device has one already.
    olga.open(f"{PASSKEYS}add/")
    page.get_by_role("link", name="Use a security key").click()
    page.get_by_role("button", name="Use a security key").click()
    page.wait_for_url(f"**{PASSKEYS}add/")
    olga.add_passkey("again")
    page.get_by_text("has a passkey of your account already").wait_for()
    olga.remove_device()
    olga.device = olga.add_device(transport="usb")
    olga.add_passkey("security key")
    page.get_by_text("Security key added").wait_for()
    assert Authenticator.objects.filter(type="webauthn").count() == 2

    for name, remaining in (("laptop", 1), ("security key", 0)):
        olga.open(PASSKEYS)
        page.get_by_role("row", name=name).get_by_role("link", name="Remove").click()
        page.get_by_role("button", name="Remove").click()
        page.get_by_text("Security key removed").wait_for()
        assert Authenticator.objects.filter(type="webauthn").count() == remaining
    assert not Authenticator.objects.exists()


def test_a_device_that_does_not_verify_its_user_is_only_a_second_factor(olga: Person) -> None:
    page = olga.page
    olga.remove_device()
    olga.device = olga.add_device(
        transport="usb", hasResidentKey=False, hasUserVerification=False, isUserVerified=False
    )
    olga.give_password()
    page.wait_for_url("**/admin/")
    olga.open(f"{PASSKEYS}add/")
    olga.confirm_password()
    page.wait_for_url(f"**{PASSKEYS}add/")
    olga.add_passkey("old key", alone=False)
    page.locator("#recovery_codes").wait_for()
    olga.sign_out()
    olga.give_password()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url("**/admin/")
    olga.sign_out()
    olga.open("/admin/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_text("The browser returned no passkey").wait_for()


def test_by_an_address_the_page_says_why_not(olga: Person) -> None:
    olga.url = olga.url.replace("localhost", "127.0.0.1")
    olga.give_password()
    olga.page.wait_for_url("**/admin/")
    olga.open(f"{PASSKEYS}add/")
    olga.confirm_password()
    olga.page.wait_for_url(f"**{PASSKEYS}add/")
    olga.add_passkey("laptop")
    olga.page.get_by_text("Passkeys need HTTPS and the host name").wait_for()
