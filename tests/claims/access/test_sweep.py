"""A VM owner against every address of the site: nothing of others is seen, counted or told apart.

New addresses are swept by themselves: they come from the resolver, filters from the lists and the
OpenAPI description.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib import admin
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from claims.core import macs
from claims.models import Entry
from pools.core import errors
from tests.claims import worlds
from tests.claims.access import answers, two_worlds

pytestmark = pytest.mark.django_db
API, ADMIN = "api/v1/", "admin/"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
ENOUGH = 3  # whoever may not ask at all is not asked thirty times
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def owner() -> two_worlds.Owner:
    return two_worlds.Owner()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of refusals are not worth a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def clients(owner: two_worlds.Owner) -> list[tuple[str, Client]]:
    return [(API, owner.api()), (ADMIN, owner.browser())]


def all_answers(
    owner: two_worlds.Owner, asking: list[tuple[str, Client]]
) -> dict[str, tuple[int, str]]:
    """Of every address, filled with whatever is the owner's."""
    names = ["prod", "alpha", "web-0", "02:aa:aa:aa:aa:00", "10.60.0.20"]
    values = {"int": owner.ids(), "word": ["claims"]}
    found = {}
    for prefix, client in asking:
        for address in answers.addresses(prefix):
            each = [values.get(kind, [*owner.ids(), *names]) for kind in address.kinds]
            refusals = 0
            for combination in itertools.product(*each):
                path = address.filled(*(quote(str(one), safe="") for one in combination))
                status, text = answers.ask(client, "GET", path)
                found[path] = (status, answers.lasting(text))
                refusals = refusals + 1 if status in {403, 405} else 0
                if refusals == ENOUGH:
                    break
    return found


def test_what_others_have_changes_nothing_that_is_seen(owner: two_worlds.Owner) -> None:
    """All pages, lists, counts and exports are the same with others and without them."""
    asking = clients(owner)
    before = all_answers(owner, asking)
    two_worlds.add_foreign(owner)
    after = all_answers(owner, asking)
    for path, answer in after.items():
        assert answer[0] < 500, (path, answer)
        told = two_worlds.foreign_in(answer[1])
        assert not told, (path, told[:3])
        differs = answers.difference(before[path], answer)
        assert not differs, (path, differs)
    seen = [path for path, (status, _) in after.items() if status == 200]
    assert any("web-0" in after[path][1] for path in seen)


# --- foreign is like absent -----------------------------------------------------------------------


def combinations(owner: two_worlds.Owner, kinds: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Foreign values at each place, others of its places being the owner's or foreign as well."""
    ids, texts = two_worlds.foreign_values()
    foreign: dict[str, list[Any]] = {"int": ids, "word": []}  # words of the site itself
    for place, kind in enumerate(kinds):
        for value in foreign.get(kind, [*ids, *texts]):
            yield tuple(
                value if one == kind else "zulu" if one != "int" else 7_000_001 for one in kinds
            )
            if len(kinds) > 1:
                own = [owner.ids() if one == "int" else ["prod"] for one in kinds]
                own[place] = [value]
                yield from itertools.product(*own)


def alike(client: Client, method: str, path: str, body: str = "{}", kind: str = "application/json") -> int:  # fmt: skip
    """The status of an answer that is the same for what is nowhere."""
    foreign = answers.ask(client, method, path, body, kind)
    absent = answers.ask(client, method, two_worlds.twin(path), two_worlds.twin(body), kind)
    one = (foreign[0], two_worlds.twin(answers.lasting(foreign[1])))
    other = (absent[0], two_worlds.twin(answers.lasting(absent[1])))
    differs = answers.difference(one, other)
    assert not differs, (method, path, body, differs)
    assert foreign[0] < 500, (method, path, foreign)
    return foreign[0]


@pytest.mark.parametrize("prefix", [API, ADMIN, "webhooks/"])
def test_what_is_foreign_is_answered_like_what_is_absent(
    owner: two_worlds.Owner, prefix: str
) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser() if prefix == ADMIN else owner.api()
    for address in answers.addresses(prefix):
        if not address.kinds:
            continue
        refusals = 0
        for values in combinations(owner, address.kinds):
            path = address.filled(*(quote(str(one), safe="") for one in values))
            methods = ("GET", "POST") if prefix == ADMIN else ("GET", *WRITES)
            statuses = {alike(client, method, path) for method in methods}
            assert not any(200 <= status < 300 for status in statuses), (path, statuses)
            refusals = refusals + 1 if statuses <= {403, 405} else 0
            if refusals == ENOUGH:
                break


# --- filters, searches, choices -------------------------------------------------------------------


def api_filters() -> Iterator[tuple[str, str]]:
    """(path without parameters, name of a query parameter)"""
    description = SchemaGenerator().get_schema(request=None, public=True)
    for path, operations in description["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", []):
            if parameter["in"] == "query":
                yield path, parameter["name"]


def test_filters_of_the_api_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.api()
    ids, texts = two_worlds.foreign_values()
    for path, name in api_filters():
        for own in owner.ids() if "{" in path else [""]:
            at = answers.BRACES.sub(str(own), path)
            if answers.ask(client, "GET", at)[0] in {403, 404}:
                continue
            for value in [*texts, *ids[:4]]:
                alike(client, "GET", f"{at}?{urlencode({name: value})}")


def test_filters_searches_and_exports_of_lists_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    ids, texts = two_worlds.foreign_values()
    for model, page in admin.site._registry.items():
        names = {"q", "id__exact"}
        for one in page.list_filter:
            names.add(getattr(one, "parameter_name", None) or f"{one}__exact")
        names |= {f"{field.name}__id__exact" for field in model._meta.fields if field.is_relation}
        at = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        if answers.ask(client, "GET", at)[0] == 403:
            continue
        for name, value in itertools.product(sorted(names), [*texts, *ids[:4]]):
            query = urlencode({name: value})
            alike(client, "GET", f"{at}?{query}")
            alike(client, "GET", f"{at}export/?{query}")


def test_pages_that_are_asked_with_a_query_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    ids, texts = two_worlds.foreign_values()
    for path in ("find/", "search/", "", "claims/"):
        for name, value in itertools.product(("q", "s"), [*texts, *ids[:4]]):
            alike(client, "GET", f"/admin/{path}?{urlencode({name: value})}")


def test_choices_while_typing_are_ones_own(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    for model in admin.site._registry:
        for field in model._meta.fields:
            if field.is_relation:
                query = {"app_label": model._meta.app_label, "model_name": model._meta.model_name, "field_name": field.name}  # fmt: skip
                for term in ("", "zulu", "10.90", "02:5a"):
                    path = f"/admin/autocomplete/?{urlencode(query | {'term': term})}"
                    status, text = answers.ask(client, "GET", path)
                    assert status in {200, 403}, path
                    assert not two_worlds.foreign_in(text.replace(term, "") if term else text)


def test_actions_of_lists_reach_nothing_foreign(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    for model, page in admin.site._registry.items():
        at = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        chosen = model._default_manager.filter(pk__gte=7_000_000)[:1] if _numbered(model) else ()
        for row, action in itertools.product(
            chosen, ["delete_selected", *map(str, page.actions or ())]
        ):
            said = urlencode({"action": action, "_selected_action": row.pk, "post": "yes"})
            alike(client, "POST", at, said, FORM)


def _numbered(model: Any) -> bool:
    return bool(
        model._meta.pk.get_internal_type() in {"BigAutoField", "AutoField", "BigIntegerField"}
    )


# --- bodies ---------------------------------------------------------------------------------------

OWN_BODY: dict[str, Any] = {
    "cluster": "prod", "namespace": "alpha", "network": "shared-net", "network_name": "shared-net",
    "vm": "web-9", "mac": "02:aa:aa:aa:aa:99", "ips": ["10.50.0.99/24"], "name": "thing",
    "kind": "udn", "subnets": ["10.61.0.0/24"], "ips_requested": ["10.50.0.99/24"],
    "interface": "net1", "user": "vera", "namespaces": ["alpha"], "role": "vm-owner",
}  # fmt: skip
# Of an address or MAC on a network that is shared one may be told that it is taken, not by whom.
TAKEN = {"mac", "ips", "ips_requested", "addresses"}


def api_bodies() -> Iterator[tuple[str, str, list[str]]]:
    """(path, method, fields of the body)"""
    description = SchemaGenerator().get_schema(request=None, public=True)
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            shape = content.get("application/json", {}).get("schema", {})
            for one in [shape, shape.get("items", {}), *shape.get("oneOf", [])]:
                if one.get("properties"):
                    yield path, method.upper(), list(one["properties"])


def _without(text: str, value: str) -> str:
    """Without what was sent, as it was written or as it is read."""
    forms = {value, value.partition("/")[0]}
    with contextlib.suppress(errors.InvalidInput):
        forms.add(macs.parse_mac(value))
    return re.sub("|".join(map(re.escape, sorted(forms, key=len, reverse=True))), "", text)


def test_bodies_that_name_something_foreign_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.api()
    ids, texts = two_worlds.foreign_values()
    for path, method, fields in api_bodies():
        for own in owner.ids() if "{" in path else [""]:
            at = answers.BRACES.sub(str(own), path)
            body = {name: OWN_BODY[name] for name in fields if name in OWN_BODY}
            if answers.ask(client, method, at, json.dumps(body))[0] in {403, 404, 405}:
                continue
            for name, value in itertools.product(fields, [*texts, *ids[:3]]):
                listed = isinstance(OWN_BODY.get(name), list)
                said = json.dumps(body | {name: [value] if listed else value})
                if name not in TAKEN:
                    alike(client, method, at, said)
                    continue
                _, text = answers.ask(client, method, at, said)
                told = two_worlds.foreign_in(_without(text, str(value)))
                assert not told, (method, at, said, told)


def test_whoever_has_ones_address_is_not_named(owner: two_worlds.Owner) -> None:
    """The owner's entry and a foreign one have the same address; the pages say that, not whose."""
    two_worlds.add_foreign(owner)
    ippool = owner.ippools[1]
    foreign = Entry.objects.get(ippool=ippool, vm="zulu-vm-171")
    worlds.entry(ippool, foreign.mac, *foreign.ips, vm="web-7", namespace="alpha")
    own = [foreign.mac, foreign.ips[0].partition("/")[0]]
    for path, (status, text) in all_answers(owner, clients(owner)).items():
        told = two_worlds.foreign_in(re.sub("|".join(map(re.escape, own)), "", text))
        assert not told, (path, status, told[:3])
