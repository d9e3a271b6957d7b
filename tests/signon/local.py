"""Accounts of this site with a password, and the pages of their second factor."""

from typing import Any

from django.test import Client

from tests import people

PASSWORD = "a long enough pass phrase"
LOGIN, CODE = "/admin/login/", "/admin/second-factor/authenticate/"
PAGE, APP = "/admin/second-factor/", "/admin/second-factor/totp/activate/"
CODES, CONFIRM = "/admin/second-factor/recovery-codes/", "/admin/second-factor/confirm/"


def person(**options: Any) -> Any:
    user = people.user(**options)
    user.set_password(PASSWORD)
    user.save()
    return user


def give_password(user: Any, next_url: str = "", password: str = PASSWORD) -> Client:
    # On localhost browsers use passkeys without HTTPS.
    client = Client(SERVER_NAME="localhost")
    path = f"{LOGIN}?next={next_url}" if next_url else LOGIN
    client.answer = client.post(path, {"username": user.username, "password": password})  # type: ignore[attr-defined]
    return client


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session
