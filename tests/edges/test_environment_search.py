"""The list of environments finds words in any letter case, wherever they are."""

import pytest
from django.urls import reverse

from pools.models import Environment
from tests import factories, people


@pytest.mark.django_db
def test_it_finds_each_word_in_any_column() -> None:
    cluster = factories.cluster()
    for org, env, text in (
        ("acme", "Shop-1", "Owned by Team Red"),
        ("team", "web", "red \"quoted\" back\\slash"),
        ("big", "\u0131stanbul", "Straße É"),
    ):  # fmt: skip
        Environment.objects.create(cluster=cluster, org=org, env=env, description=text)
    client = people.browser()
    for text, envs in {
        "SHOP": {"Shop-1"},
        "team red": {"Shop-1", "web"},
        '"team red"': {"Shop-1"},
        "'by team' me": {"Shop-1"},
        "red back\\slash": {"web"},
        "straße": {"\u0131stanbul"},
        "é \u0131ST": {"\u0131stanbul"},
        "b": {"Shop-1", "web", "\u0131stanbul"},
        "acme/shop": {"Shop-1"},
        "acme/web": set(),
        "red blue": set(),
    }.items():
        page = client.get(reverse("admin:pools_environment_changelist"), {"q": text})
        assert {row.env for row in page.context["cl"].result_list} == envs, text
