"""What clashes inside a cluster and across clusters, and what is intended."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.core.observed.uses import Role
from pools.models import AddressSpace
from pools.register import overlaps
from pools.register.overlaps import OverlapKind, OverlapSeverity
from tests import factories
from tests.edges.api import Api
from tests.observed.rows import observed

ALL = "10.20.0.0/16"
SERVICE = "an address of a Service"

# Pairs in one cluster: roles, or categories of pools.
INTENDED = [
    (Role.SERVICES, Role.SERVICES),
    (Role.PODS, Role.POD_POOL),
    (Role.SECONDARY, Role.SECONDARY),
    ("pod", Role.PODS),
    ("node", Role.NODE),
    ("ipv4", Role.NODE),
    ("ipv4", Role.EGRESS),
    ("ipv4", SERVICE),
    (Role.NODE, SERVICE),
    (Role.LOAD_BALANCER, SERVICE),
    (SERVICE, SERVICE),
]
CLASHES = [
    ("pod", Role.SERVICES),
    ("pod", Role.NODE),
    ("pod", Role.POD_POOL),
    ("pod", Role.LOAD_BALANCER),
    ("pod", Role.EGRESS),
    ("pod", Role.SECONDARY),
    ("ipv4", Role.LOAD_BALANCER),
    (Role.SERVICES, Role.PODS),
    (Role.SERVICES, Role.NODE),
    (Role.SERVICES, Role.LOAD_BALANCER),
    (Role.NODE, Role.NODE),
    (Role.NODE, Role.LOAD_BALANCER),
    (Role.NODE, Role.SECONDARY),
    (Role.NODE, Role.EGRESS),
    (Role.PODS, Role.PODS),
    (Role.POD_POOL, Role.POD_POOL),
    (Role.LOAD_BALANCER, Role.LOAD_BALANCER),
    (Role.LOAD_BALANCER, Role.EGRESS),
    (Role.EGRESS, Role.EGRESS),
    ("pod", SERVICE),
    ("node", SERVICE),
    (Role.SERVICES, SERVICE),
    (Role.PODS, SERVICE),
    (Role.POD_POOL, SERVICE),
    (Role.EGRESS, SERVICE),
    (Role.SECONDARY, SERVICE),
]


def _pair(*uses: str) -> None:
    """Two uses of a cluster, of which the second lies inside the first; services have the same address."""
    cluster = factories.cluster()
    for use, cidr in zip(uses, (ALL, "10.20.3.0/24"), strict=True):
        if use == SERVICE:
            observed(cluster, Role.LOAD_BALANCER, "10.20.3.7/32", kind="Service")
        elif isinstance(use, Role):
            observed(cluster, use, cidr)
        else:
            factories.pool(cidr, within=cluster, category=use, mask=24 if use == "pod" else None)


def _name(value: object) -> str:
    return str(value)


@pytest.mark.parametrize(("first", "other"), INTENDED, ids=_name)
def test_an_intended_pair_is_no_overlap(first: str, other: str) -> None:
    _pair(first, other)
    assert overlaps.find_overlaps() == []


@pytest.mark.sample(4)
@pytest.mark.parametrize(("first", "other"), CLASHES, ids=_name)
def test_a_clash_inside_a_cluster_is_an_error(first: str, other: str) -> None:
    _pair(first, other)
    (overlap,) = overlaps.find_overlaps()
    assert overlap.severity is OverlapSeverity.ERROR
    assert OverlapKind.CLASH in overlap.kinds
    ((outer, inner),) = overlap.clashes
    inside = "10.20.3.7/32" if other == SERVICE else "10.20.3.0/24"
    assert (str(outer[0]), str(inner[0])) == (ALL, inside)


def test_one_object_never_clashes_with_itself() -> None:
    cluster = factories.cluster()
    for cidr in ("10.0.0.0/16", "10.0.1.0/24"):
        observed(cluster, Role.LOAD_BALANCER, cidr, uid="same")
    assert overlaps.find_overlaps() == []


def test_policies_may_share_the_address_of_their_gateway() -> None:
    cluster = factories.cluster()
    for _ in range(2):
        observed(cluster, Role.EGRESS, "10.0.0.7/32", kind="CiliumEgressGatewayPolicy")
    observed(cluster, Role.NODE, "10.0.0.7/32")
    assert overlaps.find_overlaps() == []
    observed(cluster, Role.EGRESS, "10.0.0.7/32", kind="EgressIP")
    assert len(overlaps.find_overlaps()[0].clashes) == 3


def test_equal_service_cidrs_of_clusters_are_information() -> None:
    for _ in range(3):
        observed(factories.cluster(), Role.SERVICES, "10.96.0.0/12")
    (overlap,) = overlaps.find_overlaps()
    assert (overlap.severity, overlap.kinds) == (OverlapSeverity.INFO, {OverlapKind.CLUSTERS})
    assert overlaps.find_overlaps(severity=OverlapSeverity.WARNING) == []


@pytest.mark.parametrize("role", [role for role in Role if role != Role.SERVICES])
def test_other_uses_of_several_clusters_are_warnings(role: Role) -> None:
    observed(factories.cluster(), role, "10.96.0.0/16")
    observed(factories.cluster(), Role.SERVICES, "10.96.0.0/12")
    (overlap,) = overlaps.find_overlaps()
    assert overlap.severity is OverlapSeverity.WARNING


def test_with_a_vm_network_of_the_same_cluster() -> None:
    cluster = factories.cluster()
    isolated = AddressSpace.objects.create(cluster=cluster, name="blue")
    factories.pool("10.0.0.0/16", within=cluster, space=isolated, name="vms")
    observed(cluster, Role.NODE, "10.0.0.7/32")
    (overlap,) = overlaps.find_overlaps()
    assert (overlap.severity, overlap.kinds) == (OverlapSeverity.WARNING, {OverlapKind.VM_NETWORK})


def test_a_clash_inside_an_overlap_of_clusters_is_one_overlap_with_both() -> None:
    first = factories.cluster()
    factories.pool("10.0.0.0/16", category="pod", mask=24)
    factories.pool("10.0.0.0/16", within=first, category="pod", mask=24)
    observed(first, Role.SERVICES, "10.0.0.0/12")
    (overlap,) = overlaps.find_overlaps()
    assert overlap.cidr == ip_network("10.0.0.0/12")
    assert overlap.kinds == {OverlapKind.CLUSTERS, OverlapKind.CLASH}
    assert len(overlap.members) == 3


def test_rest_says_what_clashes() -> None:
    cluster = factories.cluster()
    factories.pool("10.96.0.0/16", within=cluster, category="pod", mask=24, name="red")
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    api = Api("viewer")
    (row,) = api("GET", "overlaps/?severity=error&kind=clash").json()["results"]
    assert row["severity"] == "error"
    (pair,) = row["clashes"]
    assert [(member["cidr"], member["kind"], member["object"], member["pool"]) for member in pair] == [
        ("10.96.0.0/12", "ServiceCIDR", "kubernetes", ""),
        ("10.96.0.0/16", "", "", "red"),
    ]  # fmt: skip
    assert api("GET", "overlaps/?severity=info").json()["results"] == []
    assert api("GET", "overlaps/?severity=bad").status_code == 400


def test_a_cluster_is_compared_anew_only_when_its_networks_have_changed(
    django_assert_num_queries: Any,
) -> None:
    """Each watch event of a node asks."""
    cluster = factories.cluster()
    observed(cluster, Role.PODS, "10.20.1.0/24")
    node = observed(cluster, Role.NODE, "10.20.2.1/32")
    assert not overlaps.find_clashes(cluster.pk)
    with django_assert_num_queries(1):
        assert not overlaps.find_clashes(cluster.pk)
    second = observed(cluster, Role.PODS, "10.20.1.0/24")
    assert len(overlaps.find_clashes(cluster.pk)) == 1
    second.delete()
    assert not overlaps.find_clashes(cluster.pk)
    factories.pool("10.20.2.0/24", within=cluster, category="pod", mask=26)
    ((outer, inner),) = overlaps.find_clashes(cluster.pk)
    assert (outer[1].category, inner[1].object) == ("pod", node.name)
    node.delete()
    assert not overlaps.find_clashes(cluster.pk)
    with django_assert_num_queries(1):
        assert not overlaps.find_clashes(cluster.pk)
