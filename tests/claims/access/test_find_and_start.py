"""What VM owners see: in one search, on the start pages, of a network's topology and of its journal."""

import re
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.models import NAD, IPAMClaim, Network
from claims.models.history import EntryEvent, IPAMClaimEvent
from claims.operations import history
from pools.models import JournalEntry
from pools.platform.admin import display
from pools.platform.conditions import evaluation
from pools.register import journal
from tests import factories, people
from tests.claims import worlds
from tests.claims.access import two_worlds

MAC = "02:00:00:00:00:05"


@pytest.fixture
def blue() -> Network:
    network = worlds.network()
    NAD.objects.create(network=network, namespace="shop", name="n", allow_persistent_ips=True)
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="web", namespace="shop")
    worlds.claim(network, "web", "10.0.0.5/24", namespace="shop", mac=MAC)
    worlds.workload(network, "web", MAC, "10.0.0.5/24", namespace="shop")
    return network


def browser(role: str = "", namespace: str = "") -> Client:
    user = User.objects.create(username=f"{role or namespace}-user", is_staff=True)
    if role:
        user.groups.set([Group.objects.get(name=role)])
    if namespace:
        memberships.create(worlds.cluster(), [namespace], author=worlds.BY, user=user)
    return people.signed_in(User.objects.get(pk=user.pk))


TABLES = {"MAC entries", "Claims", "Workloads", "Networks", "IPPools"}


def titles(client: Client, text: str) -> set[str]:
    answer = client.get(reverse("admin:find", query={"q": text}))
    assert answer.status_code == 200
    sections = [section.context for section in answer.context["sections"]]
    return TABLES & {table.title for part in sections for table in part.get("tables", ())}


ALL = {"MAC entries", "Claims", "Workloads"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MAC, ALL), (MAC.upper().replace(":", "-"), ALL), ("0200.0000.0005", ALL),
        ("020000000005", ALL), ("10.0.0.5", {*ALL, "Networks"}), ("10.0.0.0/30", {"Networks"}),
        ("10.0.0.0/24", {*ALL, "Networks"}), ("web", ALL), ("shop/web", ALL), ("shop", {*ALL, "Networks"}),
        ("web.cluster_udn_blue", {"Claims"}), ("udn_bl", TABLES),
        ("blue", TABLES), ("02:00:00:00:00:06", set()), ("nothing", set()),
        ("00:05", ALL), ("0.0005", ALL), ("00-00-05", ALL), ("0.0.5", ALL), ("00:06", set()), ("0.0.6", set()),
    ],
)  # fmt: skip
def test_one_box_finds_it(blue: Network, text: str, expected: set[str]) -> None:
    assert titles(browser("viewer"), text) == expected
    assert titles(browser(namespace="shop"), text) == expected
    assert titles(browser(namespace="bank"), text) == set()


def alerts(client: Client) -> str:
    evaluation.evaluate()
    page = client.get(reverse("admin:index")).content.decode()
    return page[page.index("<h2>Alerts</h2>") : page.index("All alerts")]


@pytest.mark.exhaustive
def test_the_start_page_says_what_is_wrong(blue: Network) -> None:
    client = browser("administrator")
    assert not re.search("claim|MAC", alerts(client))
    worlds.entry(blue.ippool, "02:00:00:00:00:06", "10.0.0.5/24")
    worlds.entry(blue.ippool, MAC, "10.0.0.7/24")
    failed = {"type": "IPsAllocated", "status": "False", "reason": "InternalError"}
    IPAMClaim.objects.filter(vm="web").update(ips=[], conditions=[failed])
    unknown = worlds.network("nowhere", subnets=("10.9.0.0/24",), kind="")
    worlds.ippool(unknown, "lost")
    Network.objects.filter(pk=blue.pk).update(topology="layer3")
    text = alerts(client)
    for words in (
        "Duplicate addresses in", ": 1 IP, 1 MAC", "1 claim ", "does not support static IPs",
        "IPPool lost: network not found in",
    ):  # fmt: skip
        assert words in text, text


def test_a_vm_owner_starts_with_their_own(blue: Network) -> None:
    page = browser(namespace="shop").get(reverse("admin:index")).content.decode()
    for words in ("cluster_udn_blue", MAC, "Manifest of shop/web", "kind: VirtualMachine"):
        assert words in page
    assert "<h2>Alerts</h2>" not in page
    other = browser(namespace="bank").get(reverse("admin:index")).content.decode()
    assert "No network for bank yet" in other
    assert "cluster_udn_blue" not in other


@pytest.mark.exhaustive
def test_a_vm_owner_sees_claims_that_wait(blue: Network) -> None:
    worlds.claim(blue, "db", namespace="shop")
    worlds.claim(blue, "other", namespace="till")
    page = browser(namespace="shop").get("/admin/").content.decode()
    shown = page[page.index("Claims that wait or have problems") :].partition("</table>")[0]
    assert "q=shop/db" in unquote(shown)
    assert "pending" in shown
    assert "other" not in page


def test_their_menu_has_what_they_may_open(blue: Network) -> None:
    client = browser(namespace="shop")
    page = client.get(reverse("admin:index"))
    groups = page.context["sidebar_navigation"]
    shown = [item for group in groups for item in group["items"] if item["has_permission"]]
    names = {str(item["title"]) for item in shown}
    assert {"Overview", "Networks", "MAC entries", "Claims", "Access"} <= names
    assert not names & {"Pools", "Blocks", "Clusters", "Nodes", "Alerts"}
    for item in shown:
        assert client.get(str(item["link"])).status_code == 200, item["title"]


def test_an_object_without_events_has_no_past_versions() -> None:
    """As one whose events are older than what is kept."""
    user = User.objects.create_superuser("root")
    for model in (EntryEvent, IPAMClaimEvent):
        assert history.past_versions(model, 0, user) == []


# --- The topology of a network shows a VM owner the objects of their namespaces, and nothing else
@pytest.fixture
def starts() -> dict[str, dict[str, Any]]:
    """An entry, a claim and a workload of each of two namespaces, on one network."""
    network = worlds.network()
    ippool = worlds.ippool(network)
    result = {}
    for number, namespace in enumerate(("shop", "bank"), start=5):
        network.nads.create(namespace=namespace, name="n", allow_persistent_ips=True)
        mac, address = f"02:00:00:00:00:0{number}", f"10.0.0.{number}/24"
        vm, place = f"vm-{namespace}", {"namespace": namespace}
        result[namespace] = {
            "entry": worlds.entry(ippool, mac, address, vm="web", **place),
            "claim": worlds.claim(network, "web", address, mac=mac, **place),
            "workload": worlds.workload(network, vm, mac, address, **place),
        }
    return result


def test_an_owner_sees_the_objects_of_their_namespaces(starts: dict[str, dict[str, Any]]) -> None:
    url = reverse("admin:claims_network_topology", args=[Network.objects.get().pk])
    viewer = browser("viewer").get(url).content.decode()
    owner = browser(namespace="shop").get(url).content.decode()
    for text in ("02:00:00:00:00:06", "10.0.0.6", "bank/vm-bank"):
        assert text in viewer, text
        assert text not in owner, text
    for text in ("02:00:00:00:00:05", "10.0.0.5", "shop/vm-shop"):
        assert text in owner, text
    assert browser(namespace="other").get(url).status_code == 404


def test_it_starts_at_an_entry_a_claim_or_a_workload_that_the_owner_may_see(
    starts: dict[str, dict[str, Any]],
) -> None:
    network = Network.objects.get()
    owner = browser(namespace="shop")
    for namespace, rows in starts.items():
        for kind, row in rows.items():
            url = reverse("admin:claims_network_topology", args=[network.pk], query={kind: row.pk})
            text = owner.get(url).content.decode()
            assert text.count('aria-current="location"') == 2 * (namespace == "shop"), url
    for kind in ("entry", "claim"):
        row = starts["shop"][kind]
        link = f"{kind}={row.pk}#here"
        assert link in owner.get(display.url_of(row)).content.decode()
    link = f"workload={starts['shop']['workload'].pk}#here"
    list_url = reverse("admin:claims_workload_changelist", query={"network": network.pk})
    for url in ("/admin/find/?q=shop/vm-shop", list_url):
        assert link in owner.get(url).content.decode()


def test_who_sees_no_workloads_sees_none_below_a_node(network: Network) -> None:
    pool = factories.pool("10.9.0.0/28", within=network.cluster)
    factories.take(pool, factories.holder("node-1", kind="node"))
    worlds.workload(network, "vm", "02:00:00:00:00:05", "10.0.0.5/24", node="node-1")
    url = reverse("admin:pools_cluster_topology", args=[network.cluster_id])
    assert "VM blue/vm, 10.0.0.5" in browser("viewer").get(url).content.decode()
    rights = [name for name in people.VIEWER if name != "view_workload"]
    assert "VM blue/vm, 10.0.0.5" not in people.browser(rights).get(url).content.decode()


# --- A VM owner reads the journal of the networks that the owner's namespaces use, and writes
# nowhere
def _note(row: Any, text: str) -> JournalEntry:
    return journal.add(row, text, "info", user=factories.user(), author=factories.BY)


@pytest.mark.exhaustive
def test_an_owner_sees_notes_of_own_networks_only() -> None:
    owner = two_worlds.Owner()
    foreign = Network.objects.create(cluster=owner.cluster, name="foreign", kind="cudn")
    own_note = _note(owner.network, "own")
    _note(foreign, "secret")
    _note(owner.cluster, "about the cluster")
    listed = owner.api().get("/api/v1/journal/").json()["results"]
    assert [row["id"] for row in listed] == [own_note.pk]
    url = reverse("admin:claims_network_change", args=[owner.network.pk])
    page = owner.browser().get(url)
    assert "own" in page.content.decode()
    for subject in ("cluster", "pool"):
        place = reverse("admin:journal", args=[subject, owner.cluster.pk])
        assert owner.browser().get(place).status_code == 403, subject
