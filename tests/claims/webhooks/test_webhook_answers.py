"""An answer of a webhook names nothing of other namespaces; the log of decisions has the full text."""

import json
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from claims.access import namespaces
from claims.core.networks import static_vms
from claims.core.workloads import vm_addresses
from claims.ipamclaims import status_writer
from claims.models import NAD, Decision, IPPool, Network
from pools.models import Block, PoolCIDR
from pools.platform import database
from pools.register import pools
from pools.webhooks import register, views
from tests import factories
from tests.claims import worlds
from tests.claims.ippools import fleet, test_ippool_webhook
from tests.claims.webhooks.doors import Door, bring, see, world
from tests.core.vm_world import MAC, Manifest, pod, vm_manifest
from tests.edges import webhooks

CANARIES = re.compile("bank|ledger")


@pytest.fixture
def pool() -> IPPool:
    """With an entry for a VM of another namespace."""
    result = world()
    worlds.entry(result, MAC, "10.0.0.5/16", vm="ledger", namespace="bank")
    return result


def warnings(answer: Manifest) -> str:
    return " ".join(answer["warnings"])


def test_an_entry_of_another_namespace_names_nobody(pool: IPPool) -> None:
    door = Door(pool.cluster)
    see(door.cluster, vm_manifest())
    answer = warnings(door.ask(pod()))
    assert f"the entry of {MAC} belongs to another VM, not to blue/vm-server" in answer
    assert "bank" not in answer
    assert "ledger" not in answer
    decision = Decision.objects.latest("pk")
    assert decision.code == "entry_of_another_vm"
    assert "belongs to bank/ledger" in decision.message


def test_a_vm_that_is_made_names_nobody(pool: IPPool) -> None:
    answer = warnings(Door(pool.cluster, "mutate-vms").ask(vm_manifest()))
    assert "another VM" in answer
    assert "bank" not in answer


def test_an_entry_of_the_same_namespace_is_named(pool: IPPool) -> None:
    pool.entries.update(namespace="blue", vm="other")
    door = Door(pool.cluster)
    see(door.cluster, vm_manifest())
    assert "belongs to blue/other" in warnings(door.ask(pod()))


def test_holders_with_a_namespace_are_not_named() -> None:
    created = factories.pool("10.9.0.0/24", category="vm")
    factories.take(created)
    Block.objects.filter(pool_id=created.pk, state="held").update(holder_id="bank/ledger")
    registered = register.find_pool(created.cluster_id, created.name)
    assert registered is not None
    ((_, _, used),) = register.find_used_blocks(registered.whole_cidrs)
    assert "bank" not in str(used)
    assert str(used).startswith("1 held or cooling block: vm (")


# --- each reason ----------------------------------------------------------------------------------

OTHER, GATEWAYS = "02:03:04:05:06:08", "0a:58:0a:00:00:01"
Scenario = Callable[[IPPool], Manifest | None]


def _entry(*ips: str, mac: str = MAC, **more: Any) -> Scenario:
    def build(pool: IPPool) -> None:
        worlds.entry(pool, mac, *ips, **({"vm": "vm-server", "namespace": "blue"} | more))

    return build


def _without_nad(pool: IPPool) -> None:
    NAD.objects.filter(namespace="blue").delete()


def _nad_missing(pool: IPPool) -> None:
    _without_nad(pool)
    foreign = worlds.ippool(Network.objects.get(name="bank_net"), "foreign")
    worlds.entry(foreign, MAC, "10.1.0.5/16", vm="vm-server", namespace="blue")


def _network(**values: Any) -> Scenario:
    def build(pool: IPPool) -> None:
        Network.objects.filter(pk=pool.network_id).update(**values)

    return build


def _no_interface(pool: IPPool) -> Manifest:
    created = vm_manifest()
    created["spec"]["template"]["spec"]["networks"].pop()
    return created


def _several_entries(pool: IPPool) -> Manifest:
    for mac, last in ((MAC, 5), (OTHER, 6)):
        worlds.entry(pool, mac, f"10.0.0.{last}/16", vm="vm-server", namespace="blue")
    return vm_manifest(mac=None)


def _unusable_entry(pool: IPPool) -> None:
    pool.problems = [{"mac": MAC, "message": "10.9.0.1 is in no subnet"}]
    pool.save()


def _kept_mac(pool: IPPool) -> Manifest:
    _entry("10.0.0.5/16", mac=GATEWAYS)(pool)
    return vm_manifest(mac=GATEWAYS)


def _claims(*names: str, vm: str = "vm-server") -> Scenario:
    def build(pool: IPPool) -> None:
        for last, name in enumerate(names, 20):
            worlds.claim(pool.network, vm, name=name, ips_requested=[f"10.0.0.{last}/16"])

    return build


DECLINED: dict[str, Scenario] = {
    "no_primary_network": _without_nad,
    "nad_missing": _nad_missing,
    "several_networks": lambda pool: bring(worlds.network("second", of=pool.cluster)) and None,
    "not_layer2": _network(topology="layer3"),
    "not_persistent": lambda _: NAD.objects.update(allow_persistent_ips=False) and None,
    "no_interface": _no_interface,
    "entry_of_another_vm": _entry("10.0.0.5/16", vm="ledger", namespace="bank"),
    "mac_differs": _entry("10.0.0.5/16", mac=OTHER),
    "ambiguous_entries": _several_entries,
    "unusable_entry": _unusable_entry,
    "unusable_mac": _kept_mac,
    "no_entry": lambda _: None,
    "ambiguous_claims": _claims("vm-server.one", "vm-server.two"),
    "claim_of_another_vm": _claims("vm-server.podnet", vm="other"),
    "too_many_addresses": _entry("10.0.0.5/16", "10.0.0.6/16"),
    "family_missing": lambda pool: (
        _network(subnets=["10.0.0.0/16", "fd00::/64"])(pool),
        NAD.objects.update(subnets=["10.0.0.0/16", "fd00::/64"]),
        _entry("10.0.0.5/16")(pool),
    )[0],
    "outside_subnet": _entry("10.5.0.5/16"),
    "unusable_address": _entry("10.0.0.2/16"),
}


@pytest.fixture
def shared_network() -> IPPool:
    """A network of the namespaces blue and bank; bank's VM ledger has an entry, a claim, and runs."""
    pool = world()
    bring(pool.network, "bank")
    udn = {"kind": "udn", "namespace": "bank"}
    worlds.network("bank_net", of=pool.cluster, subnets=("10.1.0.0/16",), **udn)
    worlds.entry(pool, "02:00:00:00:00:77", "10.0.0.77/16", vm="ledger", namespace="bank")
    worlds.claim(pool.network, "ledger", "10.0.0.77/16", namespace="bank")
    worlds.workload(pool.network, "ledger", "02:00:00:00:00:77", "10.0.0.77/16", namespace="bank")
    return pool


@pytest.mark.sample(6)
@pytest.mark.parametrize("address", ["mutate-pods", "mutate-vms"])
@pytest.mark.parametrize("code", DECLINED)
def test_no_reason_names_another_namespace(code: str, address: str, shared_network: IPPool) -> None:
    vm = DECLINED[code](shared_network) or vm_manifest()
    door = Door(shared_network.cluster, address)
    if address == "mutate-pods":
        see(door.cluster, vm)
        answer = door.ask(pod())
    else:
        answer = door.ask(vm)
    decision = Decision.objects.latest("pk")
    assert decision.code == code
    assert "patch" not in answer
    assert not CANARIES.search(json.dumps(answer))
    if CANARIES.search(decision.message):  # what is read by others, too, leaves it out
        assert code in vm_addresses.NAMING_OTHERS
        assert not CANARIES.search(vm_addresses.NAMING_OTHERS[code])
        scope = namespaces.Scope(namespaces={door.cluster.pk: frozenset({"blue"})})
        assert not namespaces.visible(Decision.objects.all(), scope).exists()


def test_each_reason_has_a_case() -> None:
    files = [str(module.__file__) for module in (vm_addresses, static_vms)]
    text = "".join(pathlib.Path(file).read_text() for file in files)
    codes = {static_vms.TOO_MANY, static_vms.MISSING}
    codes |= set(re.findall(r'DeclinedError\(\s*"(\w+)"', text))
    assert codes == DECLINED.keys()


def test_an_event_on_a_pod_names_nobody(pool: IPPool) -> None:
    door = Door(pool.cluster)
    see(door.cluster, vm_manifest())
    door.ask(pod())
    moment = database.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    launcher = pod(name="vm-server", namespace="blue", creationTimestamp=moment)
    launcher["metadata"]["name"] = "virt-launcher-vm-server-abc"
    see(door.cluster, launcher)
    (refusal,) = status_writer.refusals(door.cluster.pk)
    assert refusal.reason == "EntryOfAnotherVm"
    assert not CANARIES.search(refusal.message)


def test_an_ippool_is_warned_without_the_reason_of_a_range(shared_network: IPPool) -> None:
    cidr = PoolCIDR.objects.get(pool=shared_network.network.pool_id)
    reserved = factories.entry("10.0.0.0/16", "10.0.5.0-10.0.5.9").reserved[0]
    pools.reserve(cidr.pk, reserved, author=worlds.BY, reason="for bank/ledger")
    entries = {OTHER: ["10.0.5.1/16"], MAC: ["10.0.0.77/16"]}
    new = fleet.manifest(shared_network.name, entries, network=shared_network.network.name)
    key = views.make(shared_network.cluster, author=worlds.BY)
    answer = test_ippool_webhook.ask(key, new)
    assert "a reserved range" in warnings(answer)
    assert "a running VM or pod" in warnings(answer)
    assert not CANARIES.search(warnings(answer))


def test_a_pool_is_warned_without_names_of_vms_and_their_networks() -> None:
    worlds.network("bank_net", subnets=("10.9.0.0/24",))
    settings = {"category": "pod", "mask": 24, "name": "pods"}
    created = factories.pool("10.8.0.0/24", **settings, within=worlds.cluster())
    factories.take(created, factories.holder("ledger"))  # without a namespace
    door = webhooks.Door(created.cluster)
    answer = door.ask(webhooks.manifest("other", "10.9.0.0/24"))
    assert "overlaps 10.9.0.0/24 of a VM network of prod" in " ".join(answer["warnings"])
    assert not CANARIES.search(json.dumps(answer))
    refused = door.ask(None, webhooks.manifest("pods", "10.8.0.0/24"))
    assert "in use" in json.dumps(refused)
    assert not CANARIES.search(json.dumps(refused))
