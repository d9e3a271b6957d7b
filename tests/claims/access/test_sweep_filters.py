"""The sweep's filters, searches, choices, actions and bodies: none of them tells of others."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin

from claims.core import macs
from pools.core import errors
from tests.claims.access import answers, two_worlds
from tests.claims.access.sweeping import FORM, alike, some
from tests.edges import api as apis

# --- The sweep's filters, searches and choices: none of them tells of others ----------------------
#
# Each filter is asked for some of the foreign texts, and each text by many filters.
SOME = 2  # texts, and as many ids


def api_filters() -> Iterator[tuple[str, str]]:
    """(path without parameters, name of a query parameter)"""
    description = apis.document()
    for path, operations in description["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", []):
            if parameter["in"] == "query":
                yield path, parameter["name"]


def test_filters_of_the_api_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.api()
    ids, texts = two_worlds.foreign_values()
    for turn, (path, name) in enumerate(api_filters()):
        for item in owner.ids() if "{" in path else [""]:
            url = answers.BRACES.sub(str(item), path)
            if answers.ask(client, "GET", url)[0] in {403, 404}:
                continue
            for value in [*some(texts, turn, SOME), *some(ids, turn, SOME)]:
                alike(client, "GET", f"{url}?{urlencode({name: value})}")


def test_filters_searches_and_exports_of_lists_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    ids, texts = two_worlds.foreign_values()
    turn = itertools.count()
    for model, page in admin.site._registry.items():
        names = {"q", "id__exact"}
        for item in page.list_filter:
            names.add(getattr(item, "parameter_name", None) or f"{item}__exact")
        names |= {f"{field.name}__id__exact" for field in model._meta.fields if field.is_relation}
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        if answers.ask(client, "GET", path)[0] == 403:
            continue
        for name in sorted(names):
            now = next(turn)
            values = texts if name == "q" else some(texts, now, SOME)
            for number, value in enumerate([*values, *some(ids, now, SOME)]):
                query = urlencode({name: value})
                alike(client, "GET", f"{path}?{query}")
                if (now + number) % SOME == 0:
                    alike(client, "GET", f"{path}export/?{query}")


def test_pages_that_are_asked_with_a_query_do_not_tell(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    ids, texts = two_worlds.foreign_values()
    for turn, path in enumerate(("find/", "search/", "", "claims/")):
        values = [*texts, *some(ids, turn, SOME)] if path in {"find/", "search/"} else texts[::4]
        for name, value in itertools.product(("q", "s"), values):
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


# --- The sweep's actions and bodies: none of them reaches others or tells of them -----------------
def test_actions_of_lists_reach_nothing_foreign(owner: two_worlds.Owner) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser()
    for model, page in admin.site._registry.items():
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        chosen = model._default_manager.filter(pk__gte=7_000_000)[:1] if _numbered(model) else ()
        actions = ["delete_selected", *map(str, page.actions or ())]
        for row, action in itertools.product(chosen, actions):
            body = urlencode({"action": action, "_selected_action": row.pk, "post": "yes"})
            alike(client, "POST", path, body, FORM)


def _numbered(model: Any) -> bool:
    kind = model._meta.pk.get_internal_type()
    return kind in {"BigAutoField", "AutoField", "BigIntegerField"}


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
    description = apis.document()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            shape = apis.resolve(description, content.get("application/json", {}).get("schema", {}))
            for part in [shape, shape.get("items", {}), *shape.get("oneOf", [])]:
                resolved = apis.resolve(description, part)
                if resolved.get("properties"):
                    yield path, method.upper(), list(resolved["properties"])


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
        for item in owner.ids() if "{" in path else [""]:
            url = answers.BRACES.sub(str(item), path)
            body = {name: OWN_BODY[name] for name in fields if name in OWN_BODY}
            if path.endswith("/imports/"):
                body["kind"] = "vm"
            if answers.ask(client, method, url, json.dumps(body))[0] in {403, 404, 405}:
                continue
            for name, value in itertools.product(fields, [*texts, *ids[:3]]):
                listed = isinstance(OWN_BODY.get(name), list)
                sent = json.dumps(body | {name: [value] if listed else value})
                if name not in TAKEN:
                    alike(client, method, url, sent)
                    continue
                _, text = answers.ask(client, method, url, sent)
                foreign_names = two_worlds.foreign_in(_without(text, str(value)))
                assert not foreign_names, (method, url, sent, foreign_names)
