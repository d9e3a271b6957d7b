"""Addresses of Services outside of their Service CIDR: of load balancers, and external IPs."""

import pytest

from pools.core.observed.uses import Role
from pools.models import Cluster, Finding, ObservedCIDR, ObservedObject
from pools.register import overlaps
from tests import factories, people
from tests.observed import objects
from tests.observed.conftest import Prod
from tests.observed.rows import observed
from tests.observed.test_kinds import _uses as uses


@pytest.mark.exhaustive
def test_those_with_addresses_are_read_followed_and_removed(prod: Prod) -> None:
    prod.server.put(objects.service("inner"))
    prod.server.put(objects.service("waiting", "lb.example.com"))
    prod.server.put(objects.service("web", "203.0.113.7"))
    prod.server.put(objects.service("edge", external_ips=("198.51.100.9",)))
    prod.reconcile()
    assert uses() == [
        "198.51.100.9/32 load-balancer Service default/edge",
        "203.0.113.7/32 load-balancer Service default/web",
    ]
    stored = ObservedObject.objects.filter(kind="Service")
    assert {row.name for row in stored} == {"web", "edge"}
    assert "secret" not in str([row.manifest for row in stored])
    assert not Finding.objects.exists()

    browser = people.browser()
    for text in ("203.0.113.7", "web"):
        page = browser.get(f"/admin/find/?q={text}").content.decode()
        assert "default/web" in page
    cluster = Cluster.objects.get()
    page = browser.get(f"/admin/pools/cluster/{cluster.pk}/change/?map=203.0.113.0/28")
    assert "203.0.113.7/32 Service default/web" in page.content.decode()

    for name, *address in (("web", "203.0.113.8"), ("edge",)):
        prod.server.remove("services", name, "default")
        prod.server.put(objects.service(name, *address))
    prod.reconcile_until_gone()
    assert uses() == ["203.0.113.8/32 load-balancer Service default/web"]


@pytest.mark.exhaustive
def test_an_address_in_the_range_of_a_load_balancer_is_no_finding(prod: Prod) -> None:
    prod.server.crds("cilium.io_ciliumloadbalancerippools", "metallb.io_ipaddresspools")
    prod.server.put(objects.load_balancer_pool("blue", {"cidr": "203.0.113.0/28"}))
    prod.server.put(objects.metallb_pool("green", "198.51.100.0-198.51.100.15"))
    prod.server.put(objects.node("worker-1", "192.168.1.10"))
    prod.server.put(objects.service("web", "203.0.113.7"))
    prod.server.put(objects.service("shared", "203.0.113.7"))  # on another port
    prod.server.put(objects.service("mail", "198.51.100.9"))
    prod.server.put(objects.service("of-a-node", "192.168.1.10", external_ips=("192.168.1.10",)))
    prod.reconcile()
    assert len(uses()) == 7
    assert not Finding.objects.exists()
    cluster = Cluster.objects.get()
    factories.pool("10.0.0.0/16", within=cluster, category="pod", mask=24, name="pods")
    prod.follow(objects.service("odd", "10.0.3.4"))
    finding = Finding.objects.get()
    assert (finding.kind, finding.code) == ("Service", "address_clash")
    assert (
        "10.0.3.4/32 of Service default/odd (load-balancer) lies inside 10.0.0.0/16 of pool pods"
        in finding.message
    )


def service(cluster: Cluster, cidr: str) -> ObservedCIDR:
    return observed(cluster, Role.LOAD_BALANCER, cidr, kind="Service")


def test_a_range_stands_for_its_services() -> None:
    """A range inside a pool is one clash, not one more for each address of it."""
    cluster = factories.cluster()
    factories.pool("10.20.0.0/16", within=cluster, category="pod", mask=24)
    observed(cluster, Role.LOAD_BALANCER, "10.20.3.0/24")
    for number in range(20):
        service(cluster, f"10.20.3.{number}/32")
    (overlap,) = overlaps.find_overlaps()
    assert len(overlap.clashes) == 1


@pytest.mark.exhaustive
def test_many_services_of_one_address_are_compared_once() -> None:
    """The load balancer of k3s gives each Service the addresses of the nodes."""
    cluster = factories.cluster()
    factories.pool("10.20.0.0/16", within=cluster, category="pod", mask=24)
    space = service(cluster, "10.20.3.4/32").space
    ObservedCIDR.objects.bulk_create(
        ObservedCIDR(
            space=space, role=Role.LOAD_BALANCER.value, kind="Service", namespace="default",
            name=f"service-{number}", uid=f"many-{number}", cidr="10.20.3.4/32",
        )
        for number in range(3000)
    )  # fmt: skip
    networks = list(overlaps.read_networks(cluster.pk))
    assert len(networks) == 3002
    assert len(list(overlaps.clashing_pairs(networks))) == 1
    assert len(overlaps.find_clashes(cluster.pk)) == 1
