"""The site over HTTPS as an attacker meets it, with people of each kind and something to attack.

`Target` is the site in this process; `RunningTarget` is one of its own processes, for what only these have: logs,
cookies by the settings of HTTPS, workers that take messages.
"""

import http.client
import http.cookies
import json
import pathlib
import re
import ssl
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from knox.models import AuthToken

from claims.access import memberships
from ipam_site import data_folder
from pools.platform import events
from pools.register import clusters
from tests import running_site
from tests.kube.certificates import Authority

PASSWORD = "correct horse battery 7"  # of the people below
_MAKER = "administrator"
_PRINT_TOKENS = """
from tests.security import target
for person, token in target.create_people().items():
    print("token", person, token)
"""


def create_people() -> dict[str, str]:
    """Create the cluster prod, a user of each role and vera, who owns its namespace alpha; the token of each."""
    author = events.Author(actor="setup", source="command")
    prod = clusters.create("prod", author=author)
    tokens = {}
    for role in ("viewer", "operator", "administrator", "vera"):
        user = User.objects.create_user(role, password=PASSWORD, is_staff=True)
        if role == "vera":
            memberships.create(prod, ["alpha"], author=author, user=user)
        else:
            user.groups.add(Group.objects.get(name=role))
        tokens[role] = AuthToken.objects.create(user)[1]
    tokens["expired"] = AuthToken.objects.create(user, expiry=timedelta(seconds=-1))[1]
    return tokens


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Target:
    """`tokens` by person, and the people's `PASSWORD`."""

    origin = "https://testserver"

    def __init__(self, tokens: dict[str, str]) -> None:
        self.tokens = tokens

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "", **headers: str
    ) -> Answer:
        """One request; `token` names a person. Redirects are not followed."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            names["Authorization"] = f"Token {self.tokens.get(token, token)}"
        content = body
        if body is not None and not isinstance(body, bytes | str):
            content = json.dumps(body)
            names.setdefault("Content-Type", "application/json")
        return self._send(method, path, content, names)

    def rest(self, method: str, path: str, body: Any = None, token: str = _MAKER) -> Answer:
        return self.ask(method, f"/api/v1/{path}", body, token=token)

    def _send(self, method: str, path: str, content: Any, names: dict[str, str]) -> Answer:
        client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        kind = names.pop("Content-Type", "application/octet-stream")
        response: Any = client.generic(
            method, path, content or b"", kind, secure=True, headers=names
        )
        headers = http.client.HTTPMessage()
        for name, value in response.items():
            headers[name] = value
        for cookie in response.cookies.values():
            headers["Set-Cookie"] = cookie.OutputString()
        streamed = b"".join(response.streaming_content) if response.streaming else None
        return Answer(response.status_code, headers, streamed or response.content)

    def dump(self) -> str:
        """Every row of every table, as a stolen backup has them."""

        def rows_of(statement: str) -> list[Any]:
            cursor.execute(statement)
            return cursor.fetchall()

        with connection.cursor() as cursor:
            return _dump(rows_of)


class RunningTarget(Target):
    """A site that runs, over TLS; requests name it by its address."""

    def __init__(self, data: pathlib.Path, folder: pathlib.Path) -> None:
        authority = Authority()
        certificate, key = authority.server().files(folder, "server")
        self.up = running_site.Site(
            data, "--no-demo", f"--tls-cert={certificate}", f"--tls-key={key}",
            env={"ACCESS_LOG": "1"},
        ).wait_until_ready()  # fmt: skip
        self.origin = f"https://127.0.0.1:{self.up.port}"
        self._context = ssl.create_default_context(cadata=authority.pem)
        printed = self.up.command("shell", "-c", _PRINT_TOKENS)
        super().__init__(dict(re.findall(r"token (\w+) (\S+)", printed)))

    def _send(self, method: str, path: str, content: Any, names: dict[str, str]) -> Answer:
        caller = http.client.HTTPSConnection(
            "127.0.0.1", self.up.port, timeout=120, context=self._context
        )
        try:
            caller.request(method, path, content, names)
            result = caller.getresponse()
            return Answer(result.status, result.headers, result.read())
        finally:
            caller.close()

    def dump(self) -> str:
        url = data_folder.connections(self.up.data)["database_url"]
        with psycopg.connect(url) as database:
            return _dump(lambda statement: database.execute(statement).fetchall())  # type: ignore[call-overload]

    def logs(self) -> str:
        """All that any process of the site wrote."""
        written = [log.read_text() for log in (self.up.data / "logs").iterdir()]
        return self.up.output + "".join(written)


def _dump(rows_of: Callable[[str], list[Any]]) -> str:
    tables = rows_of(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = 'public'::regnamespace"
    )
    rows = [
        row for (table,) in tables for row in rows_of(f'SELECT to_jsonb(t)::text FROM "{table}" t')
    ]
    return "\n".join(text for (text,) in rows)


class Visitor:
    """A browser's cookies, kept by hand."""

    def __init__(self, target: Target, **cookies: str) -> None:
        self.target, self.cookies = target, dict(cookies)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.target.ask(method, path, body, Cookie=sent, **headers)
        for line in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in http.cookies.SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        return answer

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        """A form with its token against forgery, sent from this site."""
        body = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": self.cookies["csrftoken"]})
        return self.ask(
            "POST", path, body, Referer=self.target.origin + path,
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip

    def login(self, name: str, password: str = PASSWORD) -> Answer:
        self.ask("GET", "/admin/login/")
        return self.post(
            "/admin/login/", {"username": name, "password": password, "next": "/admin/"}
        )
