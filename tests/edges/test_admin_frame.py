"""Around every page: the menu's words as headings and titles, counts that say when they stop."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from pools.platform.admin import lists
from tests import factories, people

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "group", "title"),
    [
        ("pools_pool", "Address space", "Pools"),
        ("pools_block", "Address space", "Blocks"),
        ("pools_allocationrequest", "Address space", "Requests"),
        ("pools_cluster", "Clusters", "Clusters"),
        ("pools_leak", "Operations", "Leaks"),
        ("auth_user", "Administration", "Users"),
        ("knox_authtoken", "Administration", "Tokens"),
    ],
)
def test_a_list_is_called_as_in_the_menu(name: str, group: str, title: str) -> None:
    page = people.browser().get(reverse(f"admin:{name}_changelist")).content.decode()
    match = re.search(r"<title>\s*(.*?)\s*</title>", page, re.DOTALL)
    assert match is not None
    assert match[1] == f"{title} | Cadastre"
    heading = re.search(r"<h1.*?</h1>", page, re.DOTALL)
    assert heading is not None
    assert f">{group}</span>" in heading[0]
    assert re.search(rf">\s*{title}\s*</a", heading[0])


def test_the_filters_that_hold_are_told() -> None:
    pool = factories.pool("10.0.0.0/24")
    url = reverse("admin:pools_block_changelist", query={"pool": pool.pk, "state": "held"})
    page = people.browser().get(url).content.decode()
    chips = dict(re.findall(r'<a class="cad-chip" href="([^"]*)"[^>]*>(.*?) <span', page))
    assert chips["?state=held"] == f"pool: {pool.cluster.name}/{pool.name}"
    assert chips[f"?pool={pool.pk}"] == "state: held"
    assert sorted(chips.values()) == sorted(
        ["state: held", f"pool: {pool.cluster.name}/{pool.name}"]
    )
    empty = people.browser().get(reverse("admin:pools_block_changelist")).content.decode()
    assert "cad-chip" not in empty


@pytest.mark.parametrize("name", ["pools_block", "pools_event", "pools_environment"])
def test_a_count_that_stopped_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "REACH", 2)
    pool = factories.pool("10.0.0.0/24", category="ipv4")
    for number in range(3):
        factories.take(pool, env=f"e-{number}", org="o")
    url = reverse(f"admin:{name}_changelist")
    page = people.browser().get(url).content.decode()
    assert "This list shows the first 2 " in page
    assert re.search(r"the first\s+2 ", page)
    monkeypatch.setattr(lists, "REACH", 1000)
    assert "the first" not in people.browser().get(url).content.decode()
