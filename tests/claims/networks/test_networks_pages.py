"""The pages of networks: list, one network, and the form that shows first what never changes."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.networks import networks
from pools.models import Connection, Mode, Now
from tests import people
from tests.claims import worlds

LIST, ADD = reverse("admin:claims_network_changelist"), reverse("admin:claims_network_add")


def network(name: str = "blue", **more: Any) -> Network:
    values = {"lifecycle": "Persistent", "subnets": ("10.0.0.0/16", "fd00::/64")} | more
    values |= {"topology": "layer2", "role": "primary", "ipam_mode": "Enabled"}
    expected = UDN(f"cluster_udn_{name}", "cudn", name, **values)
    return networks.create_network(worlds.cluster(), expected, author=worlds.BY)


def text(client: Client, url: str, **query: str) -> str:
    answer = client.get(url, query)
    assert answer.status_code == 200
    return answer.content.decode()


def typed(**changes: Any) -> dict[str, Any]:
    defaults = {
        "cluster": str(worlds.cluster().pk), "kind": "cudn", "object_name": "blue",
        "namespaces": "shop\n", "topology": "layer2", "role": "primary", "lifecycle": "Persistent",
        "subnets": " 10.0.0.0/16 \n", "default_gateways": "10.0.9.1", "mtu": "1400",
        "reserved_subnets": "10.0.1.0/24\n10.0.2.0/24", "description": "for the move",
    }  # fmt: skip
    return {**defaults, **changes}


def test_an_empty_list_says_what_to_do(browser: Client) -> None:
    assert reverse("admin:pools_cluster_add") in text(browser, LIST)
    worlds.cluster()
    assert ADD in text(browser, LIST)


@pytest.mark.exhaustive
def test_the_list(browser: Client) -> None:
    blue = network()
    network("red", lifecycle="")
    networks.get_or_create(worlds.cluster().pk, "only-mentioned")
    NAD.objects.create(network=blue, namespace="shop", name="n", allow_persistent_ips=True)
    worlds.entry(worlds.ippool(blue), "00:1a:4b:00:00:01", "10.0.0.5/16")
    page = text(browser, LIST)
    for words in ("cluster_udn_blue", "cluster_udn_red", "10.0.0.0/16", "fd00::1", "Persistent"):
        assert words in page
    assert "only-mentioned" not in page
    assert "not Persistent" in page, "why not, on hover"
    assert "only-mentioned" in text(browser, LIST, known="false")
    for query, names in (
        ({"static": "yes"}, ("blue", "red")),
        ({"static": "no"}, ("red", "blue")),
        ({"q": "_red"}, ("red", "blue")),
    ):
        page = text(browser, LIST, **query)
        assert f"cluster_udn_{names[0]}" in page
        assert f"cluster_udn_{names[1]}" not in page
    assert "cluster_udn_blue" in text(browser, LIST, q="10.0.7.7", kind="cudn")
    export = reverse("admin:claims_network_export")
    assert b"cluster_udn_red" in browser.get(export).getvalue()


@pytest.mark.exhaustive
def test_one_network(browser: Client) -> None:
    blue = network(reserved_subnets=("10.0.1.0/24",))
    other = network("red")
    assert other.pool is not None
    NAD.objects.create(network=blue, namespace="shop", name="n", allow_persistent_ips=True)
    place = reverse("admin:claims_network_change", args=[blue.pk])
    page = text(browser, place)
    for words in (
        "Static addresses for VMs are supported", "the first address of each subnet", "assigned only on request",
        "Management port", "10.0.0.2", "fd00::2",
        "kind: ClusterUserDefinedNetwork", "shop", f"/api/v1/networks/{blue.pk}/", "cad-map",
        reverse("admin:pools_pool_change", args=[blue.pool_id]),
        reverse("admin:pools_pool_change", args=[other.pool_id]),  # the same addresses
    ):  # fmt: skip
        assert words in page
    assert "10.0.0.0/26" in text(browser, place, map="10.0.0.0/16")
    for name in ("edit", "delete"):
        text(browser, reverse(f"admin:claims_network_{name}", args=[blue.pk]))
    subnets = {"infrastructure_subnets": ["10.0.2.0/28"], "exclude_subnets": ["10.0.3.0/28"]}
    subnets["join_subnets"] = ["100.99.0.0/16"]
    Network.objects.filter(pk=blue.pk).update(lifecycle="", topology="layer3", **subnets)
    page = text(browser, place)
    for words in ("Infrastructure", "10.0.2.0/28", "Excluded", "10.0.3.0/28", "100.99.0.0/16"):
        assert words in page
    assert "Static addresses for VMs are not supported" in page
    assert "layer2 is required" in page
    unknown = networks.get_or_create(worlds.cluster().pk, "mentioned")
    page = text(browser, reverse("admin:claims_network_change", args=[unknown.pk]))
    assert "not yet known" in page


@pytest.mark.exhaustive
def test_the_form_shows_first_what_never_changes(browser: Client) -> None:
    preview = browser.post(ADD, typed())
    page = preview.content.decode()
    for words in ("cannot be changed later", "to correct them, create a new network",
                  "kind: ClusterUserDefinedNetwork", "10.0.9.1", "Static addresses for VMs will be supported"):  # fmt: skip
        assert words in page
    assert not Network.objects.exists()
    back = browser.post(ADD, typed(_back="1")).content.decode()
    assert "10.0.2.0/24" in back
    assert "for the move" in back
    done = browser.post(ADD, typed(_confirmed="1"))
    created = Network.objects.get()
    assert done["Location"] == reverse("admin:claims_network_change", args=[created.pk])
    assert (created.name, created.mtu) == ("cluster_udn_blue", 1400)
    assert created.default_gateways == ["10.0.9.1"]
    assert created.namespace_selector == {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    twice = browser.post(ADD, typed()).content.decode()
    assert "already has a network cluster_udn_blue" in twice


@pytest.mark.sample(16)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subnets": "10.0.0.1/16"}, "did you mean 10.0.0.0/16?"),
        ({"subnets": "10.0.0.0/16 10.1.0.0/33"}, "10.1.0.0/33: the prefix length"),
        ({"subnets": ""}, "At least one subnet is required"),
        ({"default_gateways": "10.1.0.1"}, "is in none of the subnets"),
        ({"reserved_subnets": "10.9.0.0/24"}, "is in none of the subnets"),
        ({"infrastructure_subnets": "10.0.1.0/28"}, "overlaps 10.0.1.0/24"),
        ({"object_name": "Blue"}, "lower-case letters"),
        ({"object_name": ""}, "This field is required"),
        ({"kind": "udn", "namespaces": ""}, "Is required"),
        ({"namespaces": "a_b"}, "lower-case letters"),
        ({"mtu": "9"}, "Must be 576 to 65536"),
        ({"mtu": "many"}, "Must be a whole number"),
        ({"applied": "on"}, "is read-only"),
        ({"applied": "on", "namespaces": ""}, "Select the namespaces: an empty selector"),
        ({"role": "secondary"}, "Only a primary network has these"),
        ({"cluster": "0"}, "Select a valid choice"),
    ],
)
@pytest.mark.parametrize("confirmed", [{}, {"_confirmed": "1"}], ids=["first", "confirmed"])
def test_errors_stand_beside_the_field(
    browser: Client, changes: dict[str, str], words: str, confirmed: dict[str, str]
) -> None:
    page = browser.post(ADD, typed(**changes, **confirmed)).content.decode()
    assert words in page
    assert "Not saved" in page
    assert "for the move" in page, "what was typed is kept"
    assert not Network.objects.exists()


def test_applying_says_what_is_written(browser: Client) -> None:
    managed = {"server": "https://x", "mode": Mode.MANAGED, "due_at": Now()}
    Connection.objects.create(cluster=worlds.cluster(), **managed)
    preview = browser.post(ADD, typed(applied="on")).content.decode()
    assert "Manifest that Cadastre writes to prod" in preview
    browser.post(ADD, typed(applied="on", _confirmed="1"))
    created = Network.objects.get()
    assert created.applied
    edit = reverse("admin:claims_network_edit", args=[created.pk])
    assert 'class="cad-button">Save</button>' in browser.get(edit).content.decode()
    browser.post(edit, {"description": "new", "namespaces": "a\nb", "applied": "on"})
    created.refresh_from_db()
    assert created.description == "new"
    assert created.namespace_selector["matchExpressions"][0]["values"] == ["a", "b"]  # type: ignore[index]
    wrong = browser.post(edit, {"description": "", "namespaces": "A"}).content.decode()
    assert "lower-case letters" in wrong


@pytest.mark.exhaustive
def test_deleting_one_that_is_used_says_by_whom(browser: Client) -> None:
    created = network()
    ippool = worlds.ippool(created)
    place = reverse("admin:claims_network_delete", args=[created.pk])
    answer = browser.post(place, follow=True)
    assert "the IPPool blue" in answer.content.decode()
    ippool.delete()
    browser.post(place)
    assert not Network.objects.exists()


@pytest.mark.exhaustive
def test_a_vm_owner_sees_their_part_of_it() -> None:
    created = network()
    NAD.objects.create(network=created, namespace="mine", name="n", allow_persistent_ips=True)
    NAD.objects.create(network=created, namespace="theirs", name="n", allow_persistent_ips=True)
    network("red")
    client = people.signed_in(worlds.owner(created.cluster, "mine").user)
    place = reverse("admin:claims_network_change", args=[created.pk])
    page = text(client, LIST) + text(client, place)
    assert "mine" in page
    for hidden in ("theirs", "cluster_udn_red", "namespaceSelector", "cad-map"):
        assert hidden not in page
