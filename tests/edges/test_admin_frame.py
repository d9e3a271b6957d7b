"""Around every page: the menu's words as headings and titles, counts that say when they stop."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from pools.platform.admin import lists
from tests import factories, people


def path_and_heading(page: str) -> str:
    """Return the path of a page and its heading, of which there is one."""
    headings = re.findall(r"<h1.*?</h1>", page, re.DOTALL)
    path = re.search(r'<nav class="cad-path".*?</nav>', page, re.DOTALL)
    assert len(headings) == 1, headings
    assert path is not None
    links = re.findall(r"<a [^>]*>(.*?)</a>", path[0])
    return " > ".join([*links, " ".join(re.sub(r"<[^>]+>", " ", headings[0]).split())])


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "item", "title"),
    [
        ("pools_pool", "", "Pools"),
        ("pools_block", "", "Blocks"),
        ("pools_allocationrequest", "Alerts", "Requests"),
        ("pools_cluster", "", "Clusters"),
        ("pools_leak", "Alerts", "Leaks"),
        ("auth_user", "Access", "Users"),
        ("knox_authtoken", "Access", "Tokens"),
    ],
)
def test_a_list_is_called_as_in_the_menu(name: str, item: str, title: str) -> None:
    page = people.browser().get(reverse(f"admin:{name}_changelist")).content.decode()
    match = re.search(r"<title>\s*(.*?)\s*</title>", page, re.DOTALL)
    assert match is not None
    assert match[1] == f"{title} | Cadastre"
    assert path_and_heading(page) == (f"{item} > {title}" if item else title)


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("plan", "Address plan"),
        ("node_demand", "Clusters > Node demand calculator"),
        ("find", "Find"),
    ],
)
def test_a_page_stands_in_its_item_of_the_menu(name: str, heading: str) -> None:
    page = people.browser().get(reverse(f"admin:{name}")).content.decode()
    assert path_and_heading(page) == heading


def test_the_page_of_an_action_has_its_heading_below_the_path_to_the_row() -> None:
    pool = factories.pool("10.0.0.0/24")
    browser = people.browser()
    page = browser.get(reverse("admin:pools_pool_change", args=[pool.pk])).content.decode()
    assert path_and_heading(page) == f"Pools > {pool}"
    page = browser.get(reverse("admin:pools_pool_edit", args=[pool.pk])).content.decode()
    assert path_and_heading(page) == f"Pools > {pool} > Edit {pool.name}"


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


def test_the_filters_that_hold_are_told() -> None:
    pool = factories.pool("10.0.0.0/24")
    url = reverse("admin:pools_block_changelist", query={"pool": pool.pk, "state": "held"})
    page = people.browser().get(url).content.decode()
    chips = dict(re.findall(r'<a class="cad-chip" href="([^"]*)"[^>]*>(.*?) <span', page))
    assert chips["?state=held"] == f"pool: {pool.cluster.name}/{pool.name}"
    assert chips[f"?pool={pool.pk}"] == "state: allocated"
    assert sorted(chips.values()) == sorted(
        ["state: allocated", f"pool: {pool.cluster.name}/{pool.name}"]
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
