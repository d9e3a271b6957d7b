"""A condition says what stands in the way of a claim, and rule `refused-claim-is-tried-again`."""

import pytest

from claims.address_index import index
from claims.models import Entry, IndexEntry, Workload
from pools.models import FailureEvent
from pools.platform import events
from pools.register.allocator import allocation
from tests import factories
from tests.claims import worlds
from tests.claims.ipamclaims.conftest import both, decentralized
from tests.claims.ipamclaims.world import BY, MAC, OTHER_MAC, SHIPPED, World, manifest

TWO_LEFT = ["fd00::5/128", "fd00::6/127"]  # reserved subnets of fd00::/125 that leave ::3 and ::4
CONFLICT = "Requested IP 10.0.0.5 is already assigned in the network"


@pytest.mark.exhaustive
@decentralized
@pytest.mark.parametrize("holder", ["claim", "entry", "mac", "workload", "pod", "gateway", "edge"])
def test_an_address_that_another_has(world: World, holder: str) -> None:
    network = world.network(default_gateways=["10.0.0.5"] if holder == "gateway" else [])
    requested = "10.0.0.255" if holder == "edge" else "10.0.0.5"
    if holder == "claim":
        world.follow_claim("vm9", ips=["10.0.0.5"])
    elif holder in {"entry", "mac"}:
        fields = {"vm": "vm9", "namespace": "blue"} if holder == "entry" else {}
        worlds.entry(worlds.ippool(network), OTHER_MAC, "10.0.0.5/24", **fields)
    elif holder == "workload":
        worlds.workload(network, "vm9", OTHER_MAC, "10.0.0.5/24")
    elif holder == "pod":
        worlds.workload(network, "web", OTHER_MAC, "10.0.0.5/24", kind="pod")
    before = world.held()
    world.follow_claim(mac=MAC, ips=[requested])
    assert world.condition() == (
        "IPAllocated", "False", "IPAlreadyExists", CONFLICT.replace("10.0.0.5", requested),
    )  # fmt: skip
    assert world.status()["ips"] == []
    assert world.held() == before
    assert "blue/vm1.podnet" in world.subjects_by_code()["ipamclaim_refused"]
    (event,) = FailureEvent.objects.all()
    assert (event.holder_id, event.code) == ("blue/vm1", "already_allocated")
    assert world.passed()["written"] == 0
    assert FailureEvent.objects.count() == 1


@decentralized
def test_an_address_is_free_again(world: World) -> None:
    """A claim with an old error is tried again when the conflict clears."""
    network = world.network()
    entry = worlds.entry(worlds.ippool(network), OTHER_MAC, "10.0.0.5/24")
    world.follow_claim(mac=MAC, ips=["10.0.0.5"])
    failed = world.status()["conditions"][0]["lastTransitionTime"]
    with events.recorded_by(BY):
        index.remove(entries=[entry.pk])
        Entry.objects.all().delete()
    world.passed()
    assert world.status()["ips"] == ["10.0.0.5/24"]
    assert world.condition()[1:3] == ("True", "SuccessfulAllocation")
    assert world.status()["conditions"][0]["lastTransitionTime"] >= failed
    assert world.held() == {"10.0.0.5": "blue/vm1"}
    assert "ipamclaim_refused" not in world.subjects_by_code()


@pytest.mark.exhaustive
@both
def test_an_entry_whose_address_another_uses(world: World, definition: str) -> None:
    network = world.network()
    worlds.workload(network, "vm9", OTHER_MAC, "10.0.0.5/24")
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    world.follow_claim()
    reason = "IPAddressConflict" if definition == SHIPPED else "IPAlreadyExists"
    assert world.condition()[2:] == (reason, CONFLICT)


@pytest.mark.exhaustive
@decentralized
@pytest.mark.parametrize("holder", ["claim", "entry", "workload"])
def test_a_mac_that_another_vm_has(world: World, holder: str) -> None:
    network = world.network()
    if holder == "claim":
        world.follow_claim("vm9", mac=MAC)
    elif holder == "entry":
        worlds.entry(worlds.ippool(network), MAC, "10.0.0.9/24", vm="vm9", namespace="blue")
    else:
        worlds.workload(network, "vm9", MAC, "10.0.0.9/24")
    world.follow_claim(mac=MAC, ips=["10.0.0.5"])
    message = f"Requested MAC {MAC} is already assigned in the network"
    assert world.condition()[1:] == ("False", "MACAlreadyExists", message)
    assert "10.0.0.5" not in world.held()


@pytest.mark.exhaustive
@decentralized
def test_of_two_that_ask_for_one_address_the_first_gets_it(world: World) -> None:
    world.network()
    world.claim("vm1", mac=MAC, ips=["10.0.0.5"])
    world.claim("vm2", mac=OTHER_MAC, ips=["10.0.0.5"])
    world.follow_claim("vm3", mac=MAC)
    assert world.held() == {"10.0.0.5": "blue/vm1"}
    assert world.condition("vm2.podnet")[2] == "IPAlreadyExists"
    assert world.condition("vm3.podnet")[2] == "MACAlreadyExists"


@pytest.mark.exhaustive
@decentralized
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"ips": ["10.9.0.5"]}, "Requested IP 10.9.0.5 is outside the subnets of the network (10.0.0.0/24)"),
        ({"mac": "nonsense"}, "spec.mac: must be a MAC address such as 00:1a:4b:12:34:56"),
        ({"ips": ["10.0.0.5", "10.0.0.6"]}, "spec.ips: a claim has at most one address of each family"),
    ],
)  # fmt: skip
def test_requests_that_can_never_be_granted(world: World, spec: dict[str, object], text: str) -> None:  # fmt: skip
    world.network()
    world.claim(**spec)
    world.run()
    assert world.condition()[1:] == ("False", "InternalError", text)
    assert world.run().kinds["IPAMClaim"]["written"] == 0
    assert world.held() == {}
    world.follow_claim()
    assert world.status()["ips"] == ["10.0.0.3/24"]


@pytest.mark.exhaustive
@both
def test_a_full_subnet_and_space_that_frees(world: World) -> None:
    """Nothing of one family is kept when the other one is full (rule `all-or-nothing`)."""
    world.network("10.0.0.0/24", "fd00::/125", reserved_subnets=TWO_LEFT)
    for number in (1, 2, 3):
        world.claim(f"vm{number}")
    world.passed()
    assert world.condition("vm3.podnet")[1:] == (
        "False", "SubnetExhausted", "The network has no free IPv6 address",
    )  # fmt: skip
    assert set(world.held().values()) == {"blue/vm1", "blue/vm2"}
    gone = world.there("vm1.podnet")
    world.server.remove("ipamclaims", "vm1.podnet", "blue")
    world.tell(("DELETED", gone))
    assert world.status("vm3.podnet")["ips"][1] == "fd00::3/125"
    assert set(world.held().values()) == {"blue/vm2", "blue/vm3"}


@both
def test_a_full_subnet_says_what_cools(world: World, definition: str) -> None:
    """The history has the refusal once, though what cools changes."""
    world.network("10.0.0.0/24", "fd00::/125", reserved_subnets=TWO_LEFT, cooldown=3600)
    for number in (1, 2):
        world.claim(f"vm{number}")
    world.passed()
    for number, cooling in ((3, "1 block is"), (4, "2 blocks are")):
        name = f"vm{number - 2}.podnet"
        gone = world.there(name)
        world.server.remove("ipamclaims", name, "blue")
        world.tell(("DELETED", gone))
        world.follow_claim(f"vm{number}")
        for waiting in range(3, number + 1):
            status, reason, message = world.condition(f"vm{waiting}.podnet")[1:]
            assert (status, reason) == ("False", "SubnetExhausted")
            full = f"The network has no free IPv6 address. {cooling} in cooldown;"
            assert message.startswith(f"{full} the next one becomes free at 20")
        assert world.passed()["written"] == 0
    assert FailureEvent.objects.count() == 2


@pytest.mark.exhaustive
@decentralized
def test_a_requested_address_is_not_kept_when_the_other_family_is_full(world: World) -> None:
    world.network("10.0.0.0/24", "fd00::/125", reserved_subnets=TWO_LEFT)
    for number in range(4):
        world.claim(f"vm{number}", ips=[f"10.0.0.{10 + number}"])
    world.follow_claim("vm9", ips=["fd00::4"])
    assert world.status("vm9.podnet")["ips"] == ["10.0.0.3/24", "fd00::4/125"]
    assert world.status("vm0.podnet")["ips"] == ["10.0.0.10/24", "fd00::3/125"]
    reasons = {world.condition(f"vm{number}.podnet")[2] for number in (1, 2, 3)}
    assert reasons == {"SubnetExhausted"}
    assert set(world.held()) == {"10.0.0.3", "10.0.0.10", "fd00::3", "fd00::4"}
    assert world.cooling() == []


@decentralized
def test_claims_that_ask_come_before_those_that_take_anything(world: World) -> None:
    world.network("10.0.0.0/29")
    world.claim("vm1")
    world.follow_claim("vm2", ips=["10.0.0.3"])
    assert world.held() == {"10.0.0.3": "blue/vm2", "10.0.0.4": "blue/vm1"}


@pytest.mark.exhaustive
def test_many_claims_for_few_addresses(world: World) -> None:
    world.network("10.0.0.0/29")
    for number in range(8):
        world.claim(f"vm{number}")
    world.passed()
    assert len(world.held()) == 4
    assert len(world.subjects_by_code()["ipamclaim_refused"]) == 4
    assert Workload.objects.count() == 0


@pytest.mark.exhaustive
@decentralized
@pytest.mark.parametrize("holder", ["held", "cooling"])
def test_an_address_that_the_pool_has_given_to_another(world: World, holder: str) -> None:
    pool = world.network(cooldown=3600).pool
    assert pool is not None
    block = factories.take(pool, allocation.Holder("device", "printer"), cidr="10.0.0.5/32")
    if holder == "cooling":
        factories.give_back(block)
    world.follow_claim(ips=["10.0.0.5"])
    assert world.condition()[2:] == ("IPAlreadyExists", CONFLICT)
    assert "blue/vm1" not in world.held().values()


@pytest.mark.exhaustive
@decentralized
def test_an_address_of_an_older_vm_of_the_same_name(world: World) -> None:
    """Its claim is left over; the new VM is another one."""
    world.network()
    world.follow_claim(name="vm1.old", uid="old", ips=["10.0.0.5"], mac=MAC)
    world.claim(uid="new", ips=["10.0.0.5"])
    world.follow_claim(name="vm1.mac", uid="new", mac=MAC)
    assert world.condition()[2:] == ("IPAlreadyExists", CONFLICT)
    assert world.condition("vm1.mac")[2] == "MACAlreadyExists"
    assert world.held() == {"10.0.0.5": "blue/vm1"}


@pytest.mark.exhaustive
@decentralized
@pytest.mark.parametrize(
    ("subnets", "mac", "gateway"),
    [
        (("10.0.0.0/24",), "0a:58:0a:00:00:01", "10.0.0.1"),
        (("fd00::/64",), "0a:58:cb:2a:2b:4d", "fd00::1"),
        (("fd00::/64", "10.0.0.0/24"), "0a:58:0a:00:00:01", "10.0.0.1"),
    ],
)
@pytest.mark.parametrize("source", ["claim", "vm"])
def test_the_mac_of_the_gateway(
    world: World, subnets: tuple[str, ...], mac: str, gateway: str, source: str
) -> None:
    world.network(*subnets)
    if source == "vm":
        uid = world.machine(networks=("cluster_udn_blue",), mac=mac)
        world.claim(uid=uid)
    else:
        world.claim(mac=mac)
    world.passed()
    message = f"Requested MAC {mac} is that of the network's gateway {gateway}"
    assert world.condition()[1:] == ("False", "MACAlreadyExists", message)
    assert world.held() == {}
    assert FailureEvent.objects.get().code == "reserved_address"


def _without_vm(world: World, name: str) -> None:
    claim = manifest(name, name=name, mac=MAC)
    claim["metadata"] = {"name": name, "namespace": "blue"}
    world.server.put(claim)


@decentralized
def test_two_claims_of_one_mac_that_name_no_vm(world: World) -> None:
    """What is known of neither does not make them one VM's."""
    world.network()
    _without_vm(world, "first")
    _without_vm(world, "second")
    world.passed()
    assert world.condition("first")[2] == "SuccessfulAllocation"
    assert world.condition("second")[2] == "MACAlreadyExists"
    flags = dict(IndexEntry.objects.values_list("claim__name", "duplicate_mac"))
    assert flags == {"first": True, "second": True}


@decentralized
def test_two_claims_of_one_mac_that_one_vm_owns(world: World) -> None:
    world.network()
    world.claim(mac=MAC)
    world.follow_claim(name="vm1.again", mac=MAC)
    assert world.condition("vm1.again")[2] == "SuccessfulAllocation"
    assert not IndexEntry.objects.filter(duplicate_mac=True).exists()
