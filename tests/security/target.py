"""A running site over HTTPS as an attacker meets it, with people of each kind and something to attack."""

from __future__ import annotations

import http.client
import http.cookies
import json
import pathlib
import re
import ssl
import urllib.parse
from dataclasses import dataclass
from typing import Any

import psycopg

from ipam_site import data_folder
from tests import running_site
from tests.kube.certificates import Authority

PASSWORD = "correct horse battery 7"  # of the people below
_MAKER = "administrator"
_PEOPLE = """
from django.contrib.auth.models import Group, User
from knox.models import AuthToken
from datetime import timedelta
from claims.access import memberships
from pools.platform import events
from pools.register import clusters
author = events.Author(actor="setup", source="command")
prod = clusters.create("prod", author=author)
for role in ("viewer", "operator", "administrator", "vera"):
    user = User.objects.create_user(role, password={password!r}, is_staff=True)
    if role == "vera":
        memberships.create(prod, ["alpha"], author=author, user=user)
    else:
        user.groups.add(Group.objects.get(name=role))
    print("token", role, AuthToken.objects.create(user)[1])
print("token", "expired", AuthToken.objects.create(user, expiry=timedelta(seconds=-1))[1])
"""


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

    def __init__(self, data: pathlib.Path, folder: pathlib.Path) -> None:
        authority = Authority()
        certificate, key = authority.server().files(folder, "server")
        self.up = running_site.Site(
            data, "--no-demo", f"--tls-cert={certificate}", f"--tls-key={key}",
            env={"ACCESS_LOG": "1"},
        ).wait_until_ready()  # fmt: skip
        self.origin = f"https://127.0.0.1:{self.up.port}"
        self._context = ssl.create_default_context(cadata=authority.pem)
        printed = self.up.command("shell", "-c", _PEOPLE.format(password=PASSWORD))
        self.tokens = dict(re.findall(r"token (\w+) (\S+)", printed))

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
        caller = http.client.HTTPSConnection(
            "127.0.0.1", self.up.port, timeout=120, context=self._context
        )
        try:
            caller.request(method, path, content, names)
            found = caller.getresponse()
            return Answer(found.status, found.headers, found.read())
        finally:
            caller.close()

    def rest(self, method: str, path: str, body: Any = None, token: str = _MAKER) -> Answer:
        return self.ask(method, f"/api/v1/{path}", body, token=token)

    def dump(self) -> str:
        """Every row of every table, as a stolen backup has them."""
        url = data_folder.connections(self.up.data)["database_url"]
        found = []
        with psycopg.connect(url) as database:
            tables = database.execute(
                "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
                " AND relnamespace = 'public'::regnamespace"
            ).fetchall()
            for (table,) in tables:
                rows = database.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t')  # type: ignore[call-overload]
                found += [row[0] for row in rows.fetchall()]
        return "\n".join(found)

    def logs(self) -> str:
        """All that any process of the site wrote."""
        written = [log.read_text() for log in (self.up.data / "logs").iterdir()]
        return self.up.output + "".join(written)


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
