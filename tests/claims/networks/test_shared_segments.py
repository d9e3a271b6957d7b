"""Two localnet networks on one physical network and VLAN share their addresses."""

import pytest

from claims.models import IndexEntry, Network
from pools.models import Alert, Finding
from pools.platform.conditions import evaluation
from tests.claims import worlds
from tests.claims.networks.ovn import Manifest, Ovn, nad
from tests.edges.api import Api

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
SUBNET = "10.77.0.0/24"


def localnet(name: str, **config: object) -> Manifest:
    values = {
        "name": name, "topology": "localnet", "role": None, "subnets": SUBNET,
        "physicalNetworkName": "physnet", "vlanID": 7,
    }  # fmt: skip
    return nad(name, "default", **(values | config))


def duplicates() -> set[str]:
    flagged = IndexEntry.objects.filter(duplicate_ip=True)
    return {f"{row.network.name} {row.address}" for row in flagged.select_related("network")}


@pytest.mark.exhaustive
def test_one_address_on_both_is_a_duplicate(ovn: Ovn) -> None:
    for name in ("left", "right"):
        ovn.put(localnet(name))
    ovn.passed()
    (finding,) = Finding.objects.filter(code="shared_segment")
    assert "left and right are one segment" in finding.message
    assert SUBNET in finding.message
    remaining, right = ovn.network("left"), ovn.network("right")
    first = worlds.claim(remaining, "web", "10.77.0.1/24", namespace="default")
    worlds.claim(right, "db", "10.77.0.1/24", namespace="default")
    worlds.claim(right, "other", "10.77.0.9/24", namespace="default")
    assert duplicates() == {"left 10.77.0.1", "right 10.77.0.1"}
    shown = Api()("GET", f"ipamclaims/{first.pk}/").json()
    assert shown["state"] == "conflict"
    assert shown["duplicates"][0]["with"][0]["vm"] == "db"
    evaluation.evaluate()
    (alert,) = Alert.objects.filter(code="duplicate_address")
    assert str(alert).endswith(": 2 IPs")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "config", [{"vlanID": 8}, {"vlanID": None}, {"physicalNetworkName": "other"}]
)
def test_another_vlan_or_physical_network_is_another_segment(
    ovn: Ovn, config: dict[str, object]
) -> None:
    ovn.put(localnet("left"))
    ovn.put(localnet("right", **config))
    ovn.passed()
    assert not Finding.objects.filter(code="shared_segment").exists()
    for name, mac in (("left", A), ("right", B)):
        worlds.workload(ovn.network(name), name, mac, "10.77.0.1")
    assert duplicates() == set()


@pytest.mark.exhaustive
def test_a_segment_that_is_shared_later_and_not_any_more(ovn: Ovn) -> None:
    ovn.put(localnet("left"))
    ovn.put(localnet("right", vlanID=8))
    ovn.passed()
    for name, mac in (("left", A), ("right", B)):
        worlds.workload(ovn.network(name), name, mac, "10.77.0.1")
    ovn.put(localnet("right"))
    ovn.passed()
    assert duplicates() == {"left 10.77.0.1", "right 10.77.0.1"}
    ovn.put(localnet("right", vlanID=9))
    ovn.passed()
    assert duplicates() == set()
    assert Network.objects.count() == 2
