"""The topology of a network shows a VM owner the objects of their namespaces, and nothing else."""

from django.urls import reverse

from claims.models import NAD
from pools.platform.admin import display
from tests import factories, people
from tests.claims import worlds
from tests.claims.access.test_find_and_start import browser


def test_an_owner_sees_the_objects_of_their_namespaces() -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    for number, namespace in enumerate(("shop", "bank"), start=5):
        NAD.objects.create(
            network=network, namespace=namespace, name="n", allow_persistent_ips=True
        )
        mac, address = f"02:00:00:00:00:0{number}", f"10.0.0.{number}/24"
        worlds.entry(ippool, mac, address, vm="web", namespace=namespace)
        worlds.claim(network, "web", address, namespace=namespace, mac=mac)
        worlds.workload(network, f"vm-{namespace}", mac, address, namespace=namespace)
    url = reverse("admin:claims_network_topology", args=[network.pk])
    viewer = browser("viewer").get(url).content.decode()
    owner = browser(namespace="shop").get(url).content.decode()
    for text in ("02:00:00:00:00:06", "10.0.0.6", "bank/vm-bank"):
        assert text in viewer, text
        assert text not in owner, text
    for text in ("02:00:00:00:00:05", "10.0.0.5", "shop/vm-shop"):
        assert text in owner, text
    assert browser(namespace="other").get(url).status_code == 404


def test_it_starts_at_an_entry_a_claim_or_a_workload_that_the_owner_may_see() -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    starts = {}
    for number, namespace in enumerate(("shop", "bank"), start=5):
        NAD.objects.create(
            network=network, namespace=namespace, name="n", allow_persistent_ips=True
        )
        mac, address = f"02:00:00:00:00:0{number}", f"10.0.0.{number}/24"
        starts[namespace] = {
            "entry": worlds.entry(ippool, mac, address, vm="web", namespace=namespace),
            "claim": worlds.claim(network, "web", address, namespace=namespace, mac=mac),
            "workload": worlds.workload(
                network, "vm", mac, address, namespace=namespace, uid=namespace
            ),
        }
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
    workload = starts["shop"]["workload"]
    assert f"workload={workload.pk}#here" in owner.get("/admin/find/?q=shop/vm").content.decode()
    list_url = reverse("admin:claims_workload_changelist", query={"network": network.pk})
    assert f"workload={workload.pk}#here" in owner.get(list_url).content.decode()


def test_who_sees_no_workloads_sees_none_below_a_node() -> None:
    network = worlds.network()
    pool = factories.pool("10.9.0.0/28", within=network.cluster)
    factories.take(pool, factories.holder("node-1", kind="node"))
    worlds.workload(network, "vm", "02:00:00:00:00:05", "10.0.0.5/24", node="node-1")
    url = reverse("admin:pools_cluster_topology", args=[network.cluster_id])
    assert "VM blue/vm, 10.0.0.5" in browser("viewer").get(url).content.decode()
    rights = [name for name in people.VIEWER if name != "view_workload"]
    assert "VM blue/vm, 10.0.0.5" not in people.browser(rights).get(url).content.decode()
