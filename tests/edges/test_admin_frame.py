"""Around every page: the menu's words as headings and titles, counts that say when they stop."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from pools.models import Event
from pools.platform.admin import lists
from tests import factories, people

pytestmark = pytest.mark.django_db


@pytest.mark.sample(4)
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


@pytest.mark.parametrize(
    ("name", "heading"),
    [("plan", "Address space > Address plan"), ("nodes", "Clusters > Nodes"), ("find", "Find")],
)
def test_a_page_stands_in_its_group_of_the_menu(name: str, heading: str) -> None:
    page = people.browser().get(reverse(f"admin:{name}")).content.decode()
    shown = re.search(r"<h1.*?</h1>", page, re.DOTALL)
    assert shown is not None
    words = re.sub(r"<[^>]+>", " ", shown[0].replace("chevron_right", ">"))
    assert " ".join(words.split()) == heading


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("pools_syncrun", "Sync runs"),
        ("pools_observedobject", "Cluster objects"),
        ("claims_clusterowner", "VM owners from clusters"),
    ],
)
def test_a_list_that_the_menu_lacks_has_its_name_as_title(name: str, title: str) -> None:
    page = people.browser().get(reverse(f"admin:{name}_changelist")).content.decode()
    assert re.search(rf"<title>\s*{title} \| Cadastre\s*</title>", page)


def test_the_page_of_an_event_is_called_as_in_the_list() -> None:
    factories.pool("10.0.0.0/24")
    event = Event.objects.filter(type="pool.cidr_added").latest("pk")
    page = people.browser().get(reverse("admin:pools_event_change", args=[event.pk])).content
    assert re.search(r"<title>\s*CIDR added \| Cadastre\s*</title>", page.decode())


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


def test_a_filter_takes_several_values() -> None:
    pools = [factories.pool("10.0.0.0/24", category=category) for category in ("pod", "vm", "node")]
    url = reverse("admin:pools_pool_changelist") + "?category=pod&category=vm&p=0"
    answer = people.browser().get(url)
    assert {pool.pk for pool in answer.context["cl"].result_list} == {pool.pk for pool in pools[:2]}
    (chip,) = answer.context["cl"].active_filters()
    assert chip == ("category: Pod CIDRs, VM networks", "?")


def _lists() -> list[lists.ListAdmin[Any]]:
    return [row for row in admin.site._registry.values() if isinstance(row, lists.ListAdmin)]


@pytest.mark.exhaustive
def test_each_list_says_what_it_lists_and_offers_its_export() -> None:
    """A list without rows has nothing to export."""
    factories.take(factories.pool("10.0.0.0/24"), org="acme", env="shop")
    browser = people.browser(is_superuser=True)
    exporting = [row for row in _lists() if row.exported]
    assert len(exporting) > 20
    offered = set()
    for row in exporting:
        name = f"{row.opts.app_label}_{row.opts.model_name}"
        answer = browser.get(reverse(f"admin:{name}_changelist"))
        page = answer.content.decode()
        assert 'class="cad-intro"' in page, name
        has_export = reverse(f"admin:{name}_export", args=["json"]) in page
        assert has_export == bool(answer.context["cl"].result_count), name
        offered |= {name} if has_export else set()
    assert offered >= {"pools_pool", "pools_block", "pools_event", "pools_environment"}


def test_a_list_loads_only_scripts_that_it_uses() -> None:
    page = people.browser().get(reverse("admin:pools_block_changelist")).content.decode()
    scripts = re.findall(r'<script src="[^"]*?([^/"]+)\.js"', page)
    assert "actions" in scripts  # the operator releases blocks
    assert not {"urlify", "prepopulate", "xregexp.min", "RelatedObjectLookups"} & {*scripts}


def test_a_page_that_the_menu_lacks_leads_to_no_index_of_an_app() -> None:
    url = reverse("admin:pools_observedobject_changelist")
    page = people.browser().get(url).content.decode()
    heading = re.search(r"<h1.*?</h1>", page, re.DOTALL)
    assert heading is not None
    assert "Cluster objects" in heading[0]
    assert f'href="{reverse("admin:app_list", args=["pools"])}"' not in page
