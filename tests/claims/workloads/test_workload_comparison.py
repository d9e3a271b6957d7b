"""Workloads beside entries and claims: what differs, and what is doubled."""

from typing import Any

import pytest

from claims.models import IPPool, Network
from claims.waves import readiness, waves
from claims.workloads import adoption, results
from pools.models import Alert, Cluster, Finding, Now, ObservedObject
from pools.platform.conditions import evaluation
from tests.claims import worlds
from tests.claims.networks import ovn
from tests.claims.workloads.kubevirt import MAC, KubeVirt
from tests.claims.worlds import BY
from tests.edges.api import Api
from tests.kube.manifests import build

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
FIVE, SIX = "10.0.0.5/24", "10.0.0.6/24"


def compared_rows(network: Network) -> list[tuple[str, set[str]]]:
    """Result and codes of the reasons but duplicates, in the order of the rows."""
    rows = list(results.visible_rows().filter(network=network).order_by(*results.ORDER).values())
    shapes = results.render_rows(rows)
    for shape in shapes:
        differs = {"other_mac", "other_vm", "address_not_running", "address_not_registered"}
        codes = {reason["code"] for reason in shape["reasons"]}
        assert (shape["result"] == "different") == bool(codes & differs)
    result = [
        (shape["result"], {code for reason in shape["reasons"] if not (code := reason["code"]).startswith("duplicate")})
        for shape in shapes
    ]  # fmt: skip
    counts = results.result_counts(network.pk)
    found = [item[0] for item in result]
    assert counts == {name: found.count(name) for name in results.ComparisonResult.values}
    return result


def vm(cluster: Cluster, name: str, status: str, namespace: str = "blue") -> None:
    ObservedObject.objects.create(
        cluster=cluster, kind="VirtualMachine", namespace=namespace, name=name, uid=f"vm-{name}",
        resource_version="1", manifest={"status": {"printableStatus": status}},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("entry", "runs", "result", "codes"),
    [
        ({}, (A, FIVE), "matching", set()),
        ({"vm": "db", "namespace": "blue"}, (A, FIVE), "matching", set()),
        ({"vm": "db"}, (A, FIVE), "matching", set()),
        ({}, (A,), "matching", {"no_address_seen"}),
        ({}, (None, FIVE), "matching", {"no_mac_seen"}),
        ({}, (A, SIX), "different", {"address_not_running", "address_not_registered"}),
        ({}, (A, FIVE, SIX), "different", {"address_not_registered"}),
        ({}, (B, FIVE), "different", {"other_mac"}),
        ({"vm": "db", "namespace": "blue"}, (B, SIX), "different", {"other_mac", "address_not_running", "address_not_registered"}),
        ({"vm": "web", "namespace": "blue"}, (A, FIVE), "different", {"other_vm"}),
        ({"vm": "db", "namespace": "red"}, (A, FIVE), "different", {"other_vm"}),
    ],
)  # fmt: skip
def test_an_entry_beside_what_runs(
    entry: dict[str, str], runs: Any, result: str, codes: set[str], network: Network
) -> None:
    worlds.entry(worlds.ippool(network), A, FIVE, **entry)
    worlds.workload(network, "db", *runs)
    assert compared_rows(network) == [(result, codes)]


@pytest.mark.parametrize("ips", [(FIVE, "fd00::5/64"), ("fd00::5/64", "10.0.0.5")])
def test_addresses_are_compared_as_a_set(ips: tuple[str, ...]) -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    worlds.entry(worlds.ippool(network), A, FIVE, "fd00::5/64")
    worlds.workload(network, "db", A, *ips)
    matches = results.visible_rows().filter(network=network).get()
    assert matches.result == "matching"


def test_nothing_runs(network: Network) -> None:
    ippool = worlds.ippool(network)
    for name, status in (("stopped", "Stopped"), ("elsewhere", "Running")):
        vm(network.cluster, name, status)
    for last, name in enumerate(("stopped", "elsewhere", "nobody", "")):
        worlds.entry(ippool, f"02:00:00:00:00:{last:02}", f"10.0.0.{9 + last}/24", vm=name, namespace="blue")  # fmt: skip
    codes = ["vm_stopped", "vm_not_attached", "vm_unknown", "vm_not_named"]
    assert compared_rows(network) == [("missing", {code}) for code in codes]


def test_nothing_is_registered() -> None:
    network, other = worlds.network(), worlds.network("cluster_udn_red", subnets=("10.0.0.0/24",))
    worlds.entry(worlds.ippool(other, "red"), A, FIVE, vm="db", namespace="blue")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "web", B, SIX, kind="pod")
    assert compared_rows(network) == [("unknown", {"not_registered"})] * 2
    assert compared_rows(other) == [("missing", {"vm_unknown"})]


def test_two_interfaces_of_a_vm_are_told_apart_by_mac(network: Network) -> None:
    ippool = worlds.ippool(network)
    for mac, ip in ((A, FIVE), (B, SIX)):
        worlds.entry(ippool, mac, ip, vm="db", namespace="blue")
    worlds.workload(network, "db", A, FIVE, interface="one")
    assert [status for status, _ in compared_rows(network)] == ["matching", "missing"]
    worlds.workload(network, "db", C, SIX, interface="two")
    assert compared_rows(network) == [("matching", set()), ("different", {"other_mac"})]


def test_claims_count_where_no_entry_speaks(network: Network) -> None:
    worlds.claim(network, "db", FIVE)
    worlds.claim(network, "web", SIX)
    worlds.claim(network, "asked", ips_requested=["10.0.0.7/24"])
    worlds.claim(network, "empty")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "asked", C, "10.0.0.8/24")
    codes = {"address_not_running", "address_not_registered"}
    assert compared_rows(network) == [
        ("matching", set()),
        ("missing", {"vm_unknown"}),
        ("different", codes),
    ]
    worlds.entry(worlds.ippool(network), A, SIX, vm="db", namespace="blue")
    assert [status for status, _ in compared_rows(network)] == ["different", "missing", "different"]


def test_an_address_of_a_claim_that_another_runs_with(network: Network) -> None:
    worlds.claim(network, "web", FIVE)
    worlds.workload(network, "db", A, FIVE)
    assert compared_rows(network) == [("different", {"other_vm"})]


# --- A MAC address or an address of two workloads: a finding, an alert, a reason in the lists, and
# no ready wave
RESTORED = build("v1", "Namespace", "dr")
OTHER = "02:00:00:00:00:0b"
FOUND = "workload_duplicate"


def api_results(network: Network, api: Api | None = None) -> dict[str, tuple[str, set[str]]]:
    """Of each workload its result and the codes of its reasons, as REST answers."""
    answer = (api or Api())("GET", f"networks/{network.pk}/workloads/")
    rows = [row for row in answer.json()["results"] if row["workload"]]
    pairs = [(row["result"], {reason["code"] for reason in row["reasons"]}) for row in rows]
    names = [f"{row['workload']['namespace']}/{row['workload']['name']}" for row in rows]
    return dict(zip(names, pairs, strict=True))


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
    assert api_results(network) == {"default/web": ("different", {"duplicate_mac"})}
    assert alerts() == ["1 MAC"]
    assert "duplicate_mac" in not_ready(network, ("default", "web"))
    assert "duplicate_mac" in not_ready(network, ("default", "web"), ("dr", "web"))

    cluster.vmi(copy, "10.0.0.3")
    cluster.passed()
    both = ("default/web", "dr/web")
    assert api_results(network) == dict.fromkeys(both, ("different", {"duplicate_mac"}))
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
    assert api_results(cluster.network()) == dict.fromkeys(findings(), ("unknown", reasons))
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
    owner = worlds.owner(network.cluster, "default")
    assert "duplicate_mac" in api_results(network, owner)["default/web"][1]
    # Who may not see the other one is told that it is used, not by whom.
    answer = owner("GET", f"networks/{network.pk}/workloads/").content.decode()
    assert "shop" not in answer


@pytest.mark.exhaustive
def test_a_refused_request_makes_nothing_a_duplicate(cluster: KubeVirt) -> None:
    cluster.vmi(cluster.vm("web"), "10.0.0.5")
    cluster.passed()
    network = cluster.network()
    worlds.claim(network, "web", "10.0.0.5/16", namespace="default")
    worlds.claim(network, "db", namespace="shop", ips_requested=["10.0.0.5/16"], mac=MAC)
    cluster.passed()
    assert not api_results(network)["default/web"][1] & {"duplicate_mac", "duplicate_ip"}
    assert findings() == {}
