"""Fields of forms and filters of lists by a row of another table: a menu while they are few, else a typed name."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from claims.models import Entry
from pools.models import Cluster, Container, Pool
from pools.platform.admin import related
from pools.register import clusters
from tests import factories, people
from tests.claims import worlds
from tests.claims.access import two_worlds

ADD_POOL = reverse("admin:pools_pool_add")
ADD_CONTAINER = reverse("admin:pools_container_add")


@pytest.fixture
def prod(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One of three clusters, where a menu has two rows at most."""
    monkeypatch.setattr(related, "MENU", 2)
    for name in ("dev", "test"):
        clusters.create(name, author=factories.BY)
    return clusters.create("prod", author=factories.BY)


def field(client: Client, url: str, name: str = "cluster") -> str:
    """The HTML of a field."""
    page = client.get(url).content.decode()
    result = re.search(rf'<(input|select)[^>]*name="{name}"[^>]*>', page)
    assert result, name
    return result[0]


def names(client: Client, offered: str, text: str = "") -> Any:
    return client.get(reverse("admin:names", args=[offered]), {"q": text}).json()["names"]


def add_pool(client: Client, cluster: str) -> Any:
    cidr = {"cidrs-TOTAL_FORMS": "1", "cidrs-INITIAL_FORMS": "0", "cidrs-0-cidr": "10.0.0.0/24"}
    values = {"cluster": cluster, "name": "blue", "category": "instance", "mask_size_v4": "32"}
    return client.post(ADD_POOL, {**cidr, **values})


def test_the_field_of_a_form_is_a_menu_of_few_rows(
    prod: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = people.browser()
    typed = field(client, ADD_POOL)
    assert typed.startswith("<input")
    assert f'data-names="{reverse("admin:names", args=["clusters"])}"' in typed
    assert "required" in typed
    assert names(client, "clusters", "ro") == ["prod"]
    monkeypatch.setattr(related, "MENU", 3)
    assert field(client, ADD_POOL).startswith("<select")


def test_a_link_with_an_id_shows_the_name(prod: Cluster) -> None:
    assert 'value="prod"' in field(people.browser(), f"{ADD_POOL}?cluster={prod.pk}")
    assert 'value="prod"' in field(people.browser(), f"{ADD_POOL}?cluster=prod")


@pytest.mark.parametrize("typed", ["prod", " prod ", "id"])
def test_a_typed_name_is_the_row(prod: Cluster, typed: str) -> None:
    answer = add_pool(people.browser(), str(prod.pk) if typed == "id" else typed)
    assert answer.status_code == 302, answer.content.decode()
    assert Pool.objects.get().cluster == prod


def test_a_name_is_not_taken_for_an_id(prod: Cluster) -> None:
    number = clusters.create(str(prod.pk), author=factories.BY)
    add_pool(people.browser(), str(prod.pk))
    assert Pool.objects.get().cluster == number


@pytest.mark.sample(4)
@pytest.mark.parametrize("typed", ["", "pro", "999999", "a/b/c", "nul\0", "9" * 30, "x" * 300])
def test_another_text_is_an_error_beside_the_field(prod: Cluster, typed: str) -> None:
    answer = add_pool(people.browser(), typed)
    assert answer.status_code == 200
    assert answer.context["form"].errors["cluster"]
    assert not Pool.objects.exists()


def test_a_space_by_its_cluster_and_name(prod: Cluster) -> None:
    client = people.browser()
    assert names(client, "spaces", "pro") == ["prod"]
    typed = field(client, ADD_CONTAINER, "space")
    assert 'placeholder="Fleet"' in typed
    assert "required" not in typed
    client.post(ADD_CONTAINER, {"space": "prod", "cidr": "10.0.0.0/8"})
    client.post(ADD_CONTAINER, {"space": "", "cidr": "10.0.0.0/8"})
    assert {row.space and row.space.cluster for row in Container.objects.all()} == {prod, None}


def test_a_user_whose_name_is_the_id_of_another(prod: Cluster) -> None:
    client = people.browser()
    me = User.objects.get(pk=client.session["_auth_user_id"])
    User.objects.create_user(str(me.pk))
    User.objects.create_user("other")
    url = reverse("admin:knox_authtoken_create")
    assert f'value="{me.username}"' in field(client, url, "user")
    client.post(url, {"user": "other", "level": "read", "days": "3"})
    assert AuthToken.objects.get().user.username == "other"


def test_an_entry_of_a_typed_ippool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MENU", 0)
    ippool = worlds.ippool(worlds.network())
    client, url = people.browser(), reverse("admin:claims_entry_add")
    name = f"{ippool.cluster.name}/{ippool.name}"
    assert name in names(client, "ippools", ippool.name)
    assert f'value="{name}"' in field(client, f"{url}?ippool={ippool.pk}", "ippool")
    answer = client.post(
        url,
        {
            "ippool": name,
            "mac": "02:00:00:00:00:77",
            "ips": "10.0.0.77",
            "vm": "web",
            "namespace": "shop",
        },
    )
    assert answer.status_code == 302, answer.context["form"].errors
    assert Entry.objects.get(mac="02:00:00:00:00:77").ippool == ippool


def test_names_are_for_those_who_may_see_the_rows(prod: Cluster) -> None:
    for offered in ("clusters", "spaces", "users", "networks", "ippools", "vm-clusters"):
        url = reverse("admin:names", args=[offered])
        assert people.browser().get(url).status_code == 200
        assert people.browser([]).get(url).status_code == 403
        assert Client().get(url).status_code == 302
    assert people.browser().get(reverse("admin:names", args=["nothing"])).status_code == 404


BLOCKS = reverse("admin:pools_block_changelist")
ENTRIES = reverse("admin:claims_entry_changelist")


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    """Three pools with a block each, where a menu has two rows at most."""
    monkeypatch.setattr(related, "MENU", 2)
    cluster = clusters.create("prod", author=factories.BY)
    pools = [
        factories.pool(f"10.0.{number}.0/24", name=name, within=cluster)
        for number, name in enumerate(("blue", "green", "green-2"))
    ]
    for pool in pools:
        factories.cidrs(pool, 1)
    return pools


def shown(client: Client, query: str) -> list[str]:
    return [str(block.cidr) for block in client.get(f"{BLOCKS}?{query}").context["cl"].result_list]


def suggested(
    client: Client, text: str, label: str = "pools.block", parameter: str = "pool"
) -> Any:
    url = reverse("admin:list_names", args=[label, parameter])
    return client.get(url, {"q": text}).json()["names"]


def test_a_filter_is_a_menu_of_few_rows(pools: list[Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    client = people.browser()
    url = reverse("admin:list_names", args=["pools.block", "pool"])
    assert f'data-names="{url}"' in client.get(BLOCKS).content.decode()
    assert "prod/blue" not in client.get(BLOCKS).content.decode().split("<table")[0]
    monkeypatch.setattr(related, "MENU", 3)
    page = client.get(BLOCKS).content.decode()
    assert url not in page
    assert f'<option value="{pools[1].pk}">prod/green</option>' in page


@pytest.mark.sample(2)
@pytest.mark.parametrize("typed", ["prod/green", "id"])
def test_a_name_or_an_id_filters(pools: list[Pool], typed: str) -> None:
    client = people.browser()
    query = f"pool={pools[1].pk if typed == 'id' else typed}"
    assert shown(client, query) == ["10.0.1.1/32"]
    page = client.get(f"{BLOCKS}?{query}")
    assert [label for label, _query in page.context["cl"].active_filters()] == ["pool: prod/green"]
    assert 'value="prod/green"' in page.content.decode()


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    "typed", ["prod/gre", "green", "prod", "prod/green/x", "prod/\0", "0", "9" * 30, "é"]
)
def test_what_names_no_row_matches_none_and_is_kept(pools: list[Pool], typed: str) -> None:
    client = people.browser()
    query = urlencode({"pool": typed})
    assert shown(client, query) == []
    page = client.get(f"{BLOCKS}?{query}")
    text = typed.replace("\0", " ")
    assert [label for label, _query in page.context["cl"].active_filters()] == [f"pool: {text}"]
    assert f'value="{text}"' in page.content.decode()


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ["prod/blue", "prod/green", "prod/green-2"]),
        ("GREEN", ["prod/green", "prod/green-2"]),
        ("rod/2", ["prod/green-2"]),
        ("ro bl", ["prod/blue"]),
        ("green blue", []),
        ("%", []),
        ("blue\0", ["prod/blue"]),
    ],
)
def test_names_that_contain_each_part(pools: list[Pool], typed: str, names: list[str]) -> None:
    assert suggested(people.browser(), typed) == names


@pytest.mark.exhaustive
def test_suggestions_are_few(pools: list[Pool]) -> None:
    for number in range(related.SUGGESTIONS + 5):
        factories.pool(f"10.9.{number}.0/24", name=f"p{number}")
    assert len(suggested(people.browser(), "p")) == related.SUGGESTIONS


def test_unknown_lists_and_filters(pools: list[Pool]) -> None:
    client = people.browser()
    for label, name in (("pools.block", "state"), ("pools.block", "x"), ("pools.nope", "pool")):
        url = reverse("admin:list_names", args=[label, name])
        assert client.get(url).status_code == 404
    url = reverse("admin:list_names", args=["pools.block", "pool"])
    assert people.browser([]).get(url).status_code == 403
    assert Client().get(url).status_code == 302


def add_entries(*namespaces: str) -> None:
    ippool = worlds.ippool(worlds.network())
    for number, namespace in enumerate(namespaces, 1):
        worlds.entry(ippool, f"02:00:00:00:00:0{number}", vm="vm", namespace=namespace)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("most", "is_menu"), [(3, True), (2, False)])
@pytest.mark.parametrize(
    ("query", "count"),
    [("", 3), ("namespace=shop", 1), ("namespace=shop&namespace=web", 2), ("namespace=nope", 0)],
)
def test_a_filter_by_many_names_is_a_field(
    monkeypatch: pytest.MonkeyPatch, most: int, is_menu: bool, query: str, count: int
) -> None:
    monkeypatch.setattr(related, "MENU", most)
    add_entries("shop", "web", "web-2")
    page = people.browser().get(f"{ENTRIES}?{query}")
    assert len(page.context["cl"].result_list) == count
    text = page.content.decode()
    assert ('<option value="web-2"' in text) == is_menu
    assert (reverse("admin:list_names", args=["claims.entry", "namespace"]) in text) == (
        not is_menu
    )


def test_names_are_typed_with_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MENU", 2)
    add_entries("shop", "web", "web-2")
    client = people.browser()
    page = client.get(ENTRIES, {"namespace": " web  shop "})
    changelist = page.context["cl"]
    assert {entry.namespace for entry in changelist.result_list} == {"shop", "web"}
    assert [label for label, _query in changelist.active_filters()] == ["namespace: web, shop"]
    assert 'value="web shop"' in page.content.decode()
    assert client.get(ENTRIES, {"namespace": "web\0"}).status_code == 200
    assert suggested(client, "eb", "claims.entry", "namespace") == ["web", "web-2"]
    monkeypatch.setattr(related, "SUGGESTIONS", 1)
    assert suggested(client, "", "claims.entry", "namespace") == ["shop"]


@pytest.mark.exhaustive
def test_a_vm_owner_gets_names_of_what_is_theirs() -> None:
    owner = two_worlds.Owner()
    two_worlds.add_foreign(owner)
    client = owner.browser()
    networks = ["prod/alpha-net", "prod/shared-net"]
    assert names(client, "networks") == networks
    assert suggested(client, "", "claims.entry", "network") == networks
    assert names(client, "networks", "zulu") == []
    assert suggested(client, "zulu", "claims.entry", "network") == []
    assert client.get(reverse("admin:names", args=["clusters"])).status_code == 403
    namespaces = suggested(client, "", "claims.entry", "namespace")
    assert namespaces
    assert not [name for name in (*namespaces, *names(client, "ippools")) if "zulu" in name]
