"""Fields of forms by a cluster, space, network, IPPool or user: a menu while they are few, else a typed name."""

import re
from typing import Any

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

pytestmark = pytest.mark.django_db
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


def test_few_rows_are_a_menu_and_many_a_field(
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


@pytest.mark.exhaustive
def test_a_vm_owner_gets_names_of_their_own_networks() -> None:
    owner = two_worlds.Owner()
    two_worlds.add_foreign(owner)
    client = owner.browser()
    assert names(client, "networks") == ["prod/alpha-net", "prod/shared-net"]
    assert names(client, "networks", "zulu") == []
    assert all("zulu" not in name for name in names(client, "ippools"))
    assert client.get(reverse("admin:names", args=["clusters"])).status_code == 403
