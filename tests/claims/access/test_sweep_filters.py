"""The sweep's filters, searches and choices: none of them tells of others.

Each filter is asked for some of the foreign texts, and each text by many filters.
"""

import itertools
from collections.abc import Iterator
from urllib.parse import urlencode

from django.contrib import admin

from tests.claims.access import answers, two_worlds
from tests.claims.access.sweeping import alike, some
from tests.edges import api as apis

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
