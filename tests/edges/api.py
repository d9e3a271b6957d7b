"""Clients of the REST API: who asks, how, and what most tests send."""

import functools
import itertools
import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from knox.models import AuthToken

ROOT = "/api/v1/"
PREFIX = "2001:db8:10::/48"
PROBLEM = {"type", "title", "status", "detail", "code", "request_id", "errors"}

_numbers = itertools.count(1)


def user(role: str = "", **settings: Any) -> Any:
    """A user with a role of the site; "" may do everything. Without a password, which is slow."""
    settings = {"username": f"tool-{next(_numbers)}", "is_superuser": not role} | settings
    created = get_user_model().objects.create(**settings)
    if role:
        created.groups.set([Group.objects.get(name=role)])
    return created


class Api:
    """Calls with a token: `api("POST", "pools/", body, If_Match='"1"')`."""

    def __init__(self, role: str = "", **options: Any) -> None:
        self.user = user(role)
        token = AuthToken.objects.create(self.user)[1]
        self.client = Client(headers={"Authorization": f"Token {token}"}, **options)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        call = getattr(self.client, method.lower())
        if body is None:
            return call(ROOT + path, headers=names)
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        return call(ROOT + path, text, content_type="application/json", headers=names)

    def create(self, path: str, body: Any) -> Any:
        """POST that must succeed; its answer."""
        answer = self("POST", path, body)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def cluster(self, name: str = "prod", **settings: Any) -> dict[str, Any]:
        document: dict[str, Any] = self.create("clusters/", {"name": name, **settings})
        return document

    def pool(self, category: str) -> int:
        """The id of the first pool of that category."""
        rows = self("GET", f"pools/?category={category}").json()["results"]
        return int(rows[0]["id"])

    def vm_pool(self, *cidrs: str, name: str = "vms", cooldown: int = 0, **settings: Any) -> int:
        """The id of a new pool of single addresses in the cluster `prod`."""
        body = {"cluster": "prod", "name": name, "category": "vm", "cooldown_seconds": cooldown}
        families = {family: part for family, part in _families(cidrs).items() if part["cidrs"]}
        return int(self.create("pools/", body | families | settings)["id"])

    def take(self, pool: int, name: str, **more: Any) -> dict[str, Any]:
        """One block for a VM of that name."""
        (block,) = self.create(f"pools/{pool}/allocations/", holder(name) | more)["blocks"]
        return dict(block)


def _families(cidrs: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: {"mask_size": size, "cidrs": [{"cidr": c} for c in cidrs if (":" in c) is is_v6]}
        for name, size, is_v6 in (("ipv4", 32, False), ("ipv6", 128, True))
    }


def holder(name: str, kind: str = "vm") -> dict[str, Any]:
    return {"holder": {"kind": kind, "id": name}}


def refused(answer: Any, status: int, code: str) -> Any:
    """The problem document (RFC 9457), which must have this status and code."""
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        status,
        "application/problem+json",
    ), answer.content[:300]
    problem = answer.json()
    assert set(problem) >= PROBLEM
    assert (problem["status"], problem["code"]) == (status, code), problem
    assert problem["type"].endswith(f":{code}")
    assert problem["request_id"] == answer.headers["X-Request-Id"]
    for error in problem["errors"]:
        assert set(error) == {"field", "code", "message", "value"}
    return problem


def fields(problem: Any) -> dict[str, str]:
    """Field -> code of a problem document."""
    return {error["field"]: error["code"] for error in problem["errors"]}


@functools.cache
def document() -> Any:
    """The OpenAPI description, which takes a second to make: to be read only."""
    return json.loads(json.dumps(SchemaGenerator().get_schema(public=True), default=str))


def resolve(document: Any, schema: Any) -> Any:
    """The schema or the response that a `$ref` to a component names, else the argument itself."""
    while "$ref" in schema:
        _, kind, name = schema["$ref"].rsplit("/", 2)
        schema = document["components"][kind][name]
    return schema


def properties(document: Any, schema: Any) -> dict[str, Any]:
    """The properties of an object, or those of all objects of which a body may be one."""
    schema = resolve(document, schema)
    merged = dict(schema.get("properties", {}))
    for part in schema.get("oneOf", []):
        merged |= properties(document, part)
    return merged
