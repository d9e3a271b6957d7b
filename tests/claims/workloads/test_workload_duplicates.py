"""A MAC address or an address of two workloads: a finding, an alert, a reason in the lists, and no ready wave."""

import pytest

from claims.access import memberships
from claims.models import IPPool, Network
from claims.waves import readiness, waves
from claims.workloads import adoption
from pools.models import Alert, Finding, Now
from pools.platform.conditions import evaluation
from tests.claims import worlds
from tests.claims.networks import ovn
from tests.claims.workloads.kubevirt import MAC, KubeVirt
from tests.claims.worlds import BY
from tests.edges.api import Api

RESTORED = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dr"}}
OTHER = "02:00:00:00:00:0b"
FOUND = "workload_duplicate"


def results(network: Network, api: Api | None = None) -> dict[str, tuple[str, set[str]]]:
    """Of each workload its result and the codes of its reasons, as REST answers."""
    answer = (api or Api())("GET", f"networks/{network.pk}/workloads/")
    rows = [row for row in answer.json()["results"] if row["workload"]]
    return {
        f"{row['workload']['namespace']}/{row['workload']['name']}": (
            row["result"], {reason["code"] for reason in row["reasons"]}
        )
        for row in rows
    }  # fmt: skip


def alerts() -> list[str]:
    """The counts in the title of each alert of duplicates."""
    evaluation.evaluate()
    rows = Alert.objects.filter(code="duplicate_address", ended_at=None)
    return [title.rpartition(": ")[2] for title in rows.values_list("title", flat=True)]


def findings() -> dict[str, str]:
    return dict(Finding.objects.filter(code=FOUND).values_list("subject", "message"))


def not_ready(network: Network, *vms: tuple[str, str]) -> set[str]:
    wave = waves.create(network.cluster, f"wave of {len(vms)}", author=BY)
    waves.add(wave.pk, list(vms), author=BY)
    machines = readiness.wave_readiness(wave).machines
    assert all(machine.status == "not-ready" for machine in machines)
    return {code for machine in machines for code, _ in machine.reasons}


@pytest.mark.exhaustive
def test_a_restored_copy_with_the_mac_of_the_original(cluster: KubeVirt) -> None:
    cluster.put(RESTORED)
    cluster.put(ovn.nad("prod", "dr"))
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    copy = cluster.vm("web", "Stopped", namespace="dr")
    cluster.passed()
    network = cluster.network()
    worlds.claim(network, "web", "10.0.0.5/16", namespace="default")
    worlds.claim(network, "web", "10.0.0.3/16", namespace="dr")
    cluster.passed()
    assert set(findings()) == {"default/web", "dr/web"}
    assert "template of the VM dr/web" in findings()["default/web"]
    assert results(network) == {"default/web": ("different", {"duplicate_mac"})}
    assert alerts() == ["1 MAC"]
    assert "duplicate_mac" in not_ready(network, ("default", "web"))
    assert "duplicate_mac" in not_ready(network, ("default", "web"), ("dr", "web"))

    cluster.vmi(copy, "10.0.0.3")
    cluster.passed()
    assert results(network) == dict.fromkeys(
        ("default/web", "dr/web"), ("different", {"duplicate_mac"})
    )
    (plan,) = {adoption.plan(network, result="different").count(adoption.CHANGE)}
    assert plan == 0  # nobody follows the entry of the other


@pytest.mark.exhaustive
def test_a_copy_whose_mac_is_changed_is_none(cluster: KubeVirt) -> None:
    cluster.put(RESTORED)
    cluster.put(ovn.nad("prod", "dr"))
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    cluster.vm("web", "Stopped", namespace="dr")
    cluster.passed()
    assert len(findings()) == 2
    cluster.vm("web", "Stopped", namespace="dr", mac=OTHER)
    cluster.passed()
    assert findings() == {}
    assert alerts() == []


@pytest.mark.exhaustive
def test_a_network_that_comes_after_the_stopped_vm(cluster: KubeVirt) -> None:
    cluster.put(RESTORED)
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    cluster.vm("web", "Stopped", namespace="dr")
    cluster.passed()
    assert findings() == {}
    cluster.put(ovn.nad("prod", "dr"))
    cluster.passed()
    cluster.passed()
    assert set(findings()) == {"default/web", "dr/web"}


@pytest.mark.exhaustive
def test_two_running_vms_with_one_address(cluster: KubeVirt) -> None:
    for name, mac in (("web", MAC), ("db", OTHER)):
        cluster.vmi(cluster.vm(name, mac=mac), "10.0.0.5")
    cluster.passed()
    cluster.passed()
    assert set(findings()) == {"default/web", "default/db"}
    reasons = {"not_registered", "duplicate_ip"}
    assert results(cluster.network()) == dict.fromkeys(findings(), ("unknown", reasons))
    assert alerts() == ["1 IP"]


def test_two_pods_with_one_address(cluster: KubeVirt) -> None:
    for name, mac in (("a", MAC), ("b", OTHER)):
        cluster.pod(name, {"default/prod": {"ip_addresses": ["10.0.0.9/16"], "mac_address": mac}})
    cluster.passed()
    assert "the workload default/b" in findings()["default/a"]
    assert alerts() == ["1 IP"]


@pytest.mark.exhaustive
def test_an_entry_of_another_vm_whose_ippool_is_gone(cluster: KubeVirt) -> None:
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    cluster.passed()
    network = cluster.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.7/16", vm="db", namespace="shop")
    IPPool.objects.update(gone_at=Now())
    cluster.passed()
    assert "shop/db" in findings()["default/web"]
    assert alerts() == ["1 MAC"]
    owner = Api("vm-owner")
    memberships.create(network.cluster, ["default"], author=BY, user=owner.user)
    assert "duplicate_mac" in results(network, owner)["default/web"][1]
    answer = owner("GET", f"networks/{network.pk}/workloads/").content.decode()
    assert (
        "shop" not in answer
    )  # who may not see the other one is told that it is used, not by whom


@pytest.mark.exhaustive
def test_a_refused_request_makes_nothing_a_duplicate(cluster: KubeVirt) -> None:
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    cluster.passed()
    network = cluster.network()
    worlds.claim(network, "web", "10.0.0.5/16", namespace="default")
    worlds.claim(network, "db", namespace="shop", ips_requested=["10.0.0.5/16"], mac=MAC)
    cluster.passed()
    assert not results(network)["default/web"][1] & {"duplicate_mac", "duplicate_ip"}
    assert findings() == {}
