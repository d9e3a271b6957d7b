"""VM networks of the demo fleet: a working one with typical problems, and two unusable ones."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pgtrigger
from django.contrib.auth.models import User

from claims.access import memberships
from claims.address_index import index
from claims.core.entries import EntrySpec
from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.core.networks.udn import UDN
from claims.entries import entries, ippools
from claims.imports import drafts
from claims.ipamclaims import findings
from claims.models import (
    NAD,
    EntryEvent,
    IPAMClaim,
    IPAMClaimEvent,
    IPPool,
    IPPoolEvent,
    Membership,
    MembershipEvent,
    Network,
    NetworkEvent,
    VMImport,
    Wave,
    WaveEvent,
    Workload,
)
from claims.models.networks import EntrySource
from claims.models.workloads import WorkloadKind
from claims.networks import networks
from claims.waves import waves
from pools.models import Cluster, Finding, ImportEvent
from pools.platform import database
from pools.register.demo import demo

BLUE, LEGACY, RETIRED = "cluster_udn_tenant-blue", "cluster_udn_legacy", "cluster_udn_retired"
OWNER = "demo-owner"  # the user of this name, if any, owns the VMs of the namespace shop
_COUNT = 60
_NAME = "kubernetes.io/metadata.name"


def steps() -> Iterator[demo.DemoStep]:
    """Yield the steps of the demo with their age in days."""
    cluster = demo.FRANKFURT
    yield demo.DemoStep(12, cluster, _networks)
    yield demo.DemoStep(11, cluster, _entries)
    yield demo.DemoStep(10, cluster, _workloads)
    yield demo.DemoStep(9, cluster, _claims)
    yield demo.DemoStep(2, cluster, _duplicates)
    yield demo.DemoStep(1, cluster, _owner)
    yield demo.DemoStep(0.9, cluster, _import)
    yield demo.DemoStep(0.8, cluster, _wave)
    # After the sync runs: to them the cluster has no IPAMClaims, and no finding about one lasts.
    yield demo.DemoStep(0.0005, cluster, _leaked_claim)


def forget(cluster: Cluster) -> None:
    """Delete all VM networks of a cluster with their events."""
    ids = list(IPPool.objects.filter(cluster=cluster).values_list("pk", flat=True))
    imports = list(VMImport.objects.filter(cluster=cluster).values_list("pk", flat=True))
    Workload.objects.filter(network__cluster=cluster).delete()
    for model in (Wave, VMImport, IPAMClaim, IPPool, Network, Membership):
        model.objects.filter(cluster=cluster).delete()
    with pgtrigger.ignore():
        EntryEvent.objects.filter(ippool_id__in=ids).delete()
        ImportEvent.objects.filter(pgh_obj_id__in=imports).delete()
        for event in (NetworkEvent, IPPoolEvent, IPAMClaimEvent, MembershipEvent, WaveEvent):
            event.objects.filter(cluster_id=cluster.pk).delete()


# --- steps ----------------------------------------------------------------------------------------


def _networks(cluster: Cluster) -> None:
    blue = UDN(
        name=BLUE,
        kind="cudn",
        object_name="tenant-blue",
        topology="layer2",
        role="primary",
        ipam_mode="Enabled",
        lifecycle="Persistent",
        subnets=("10.128.0.0/22",),
        infrastructure_subnets=("10.128.0.0/28",),
        namespace_selector={
            "matchExpressions": [
                {"key": _NAME, "operator": "In", "values": ["bank", "shop"]},
            ]
        },
    )
    network = networks.create_network(
        cluster, blue, author=demo.AUTHOR, description="VMs of two teams"
    )
    for namespace in ("shop", "bank"):
        NAD.objects.create(
            network=network,
            namespace=namespace,
            name="tenant-blue",
            role="primary",
            allow_persistent_ips=True,
            subnets=network.subnets,
        )
    legacy = UDN(
        name=LEGACY,
        kind="cudn",
        object_name="legacy",
        topology="layer3",
        role="primary",
        ipam_mode="Enabled",
        subnets=("10.132.0.0/20",),
    )
    networks.create_network(
        cluster, legacy, author=demo.AUTHOR, description="Cannot hold static VMs"
    )


def _entries(cluster: Cluster) -> None:
    blue = ippools.create(cluster, "tenant-blue", BLUE, author=demo.AUTHOR)
    _add(blue, [_entry(number) for number in range(1, _COUNT + 1)])
    legacy = ippools.create(cluster, "legacy", LEGACY, author=demo.AUTHOR)
    _add(legacy, [EntrySpec("02:42:0a:84:00:01", ("10.132.0.10/20",), "old-1", "bank")])
    ippools.create(cluster, "retired", RETIRED, author=demo.AUTHOR, note="Its network is gone")


def _duplicates(cluster: Cluster) -> None:
    """Add a MAC with two entries, and two addresses with two MACs each."""
    blue = IPPool.objects.get(cluster=cluster, network__name=BLUE)
    _add(
        blue,
        [
            EntrySpec(_mac(5), (_ip(90),), "shop-05-copy", "shop", "cloned with its MAC"),
            EntrySpec(_mac(91), (_ip(7),), "bank-91", "bank"),
            EntrySpec(_mac(92), (_ip(40),), "bank-92", "bank"),
        ],
    )


def _add(ippool: IPPool, specs: Sequence[EntrySpec]) -> None:
    entries.add(ippool.pk, specs, source=EntrySource.HAND, author=demo.AUTHOR)


def _workloads(cluster: Cluster) -> None:
    """Add workloads: most match the register, one has another address, one is not registered."""
    network = Network.objects.get(cluster=cluster, name=BLUE)
    rows = [_workload(network, _vm(number), _mac(number), _ip(number)) for number in range(1, 25)]
    rows.append(_workload(network, _vm(25), _mac(25), _ip(200)))
    rows.append(_workload(network, "shop-adhoc", "02:42:0a:80:ff:01", _ip(201)))
    index.write(workloads=Workload.objects.bulk_create(rows))


def _workload(network: Network, name: str, mac: str, ip: str) -> Workload:
    return Workload(
        network=network,
        kind=WorkloadKind.VMI,
        namespace="shop",
        name=name,
        uid=f"demo-vmi-{name}",
        vm_uid=f"demo-vm-{name}",
        mac=mac,
        ips=[ip],
        node="fra-node-001",
        phase="Running",
        pods=[f"virt-launcher-{name}"],
        since=database.now(),
    )


def _claims(cluster: Cluster) -> None:
    """Add bound claims, one with a conflicting address, and one whose VM is deleted."""
    network = Network.objects.get(cluster=cluster, name=BLUE)
    now = database.now()
    rows = [_bound_claim(network, _vm(number), _mac(number), _ip(number)) for number in range(1, 7)]
    failed = _claim(network, "bank", "bank-99", "02:42:0a:80:ff:02")
    failed.ips_requested = [_ip(7)]
    refusal = dialects.condition(
        ClaimOutcome.IP_CONFLICT, dialects.ip_conflict_message([_ip(7)]), dialects.PROPOSED
    )
    failed.conditions = dialects.merge_conditions([], refusal, now=now)
    leaked = _bound_claim(network, "shop-77", "02:42:0a:80:ff:03", _ip(210))
    leaked.owner_pod, leaked.deleted_at = "", now
    leaked.finalizers = ["kubevirt.io/persistent-ipam"]
    rows = IPAMClaim.objects.bulk_create([*rows, failed, leaked])
    index.write(claims=rows)


def _leaked_claim(cluster: Cluster) -> None:
    leaked = IPAMClaim.objects.get(cluster=cluster, deleted_at__isnull=False)
    Finding.objects.create(
        cluster=cluster,
        kind=ipamclaim.KIND,
        code=findings.LEAKED,
        subject=str(leaked),
        message="Its VM is deleted; its finalizer keeps the claim.",
        since=database.now(),
    )


def _bound_claim(network: Network, vm: str, mac: str, ip: str) -> IPAMClaim:
    claim = _claim(network, "shop", vm, mac)
    condition = dialects.condition(
        ClaimOutcome.ALLOCATED, dialects.allocated_message([ip]), dialects.SHIPPED
    )
    claim.conditions = dialects.merge_conditions([], condition, now=database.now())
    claim.ips, claim.owner_pod = [ip], f"virt-launcher-{vm}"
    return claim


def _claim(network: Network, namespace: str, vm: str, mac: str) -> IPAMClaim:
    return IPAMClaim(
        cluster=network.cluster,
        network=network,
        namespace=namespace,
        name=f"{vm}.{network.name.replace('_', '-')}",
        interface="default",
        vm=vm,
        vm_uid=f"demo-vm-{vm}",
        mac=mac,
    )


# As somebody brings it: a MAC address is twice in the file, an address outside of the network, a VM without one.
_VMS = """\
VM,Namespace,MAC,IP
erp-01,shop,00:50:56:9a:10:01,10.128.2.11
erp-02,shop,00:50:56:9a:10:02,10.128.2.12
erp-03,shop,00:50:56:9a:10:03,10.128.2.13
erp-db,shop,00:50:56:9a:10:04,10.129.2.14
erp-test,shop,00:50:56:9a:10:03,10.128.2.15
erp-old,shop,00:50:56:9a:10:06,
"""


def _import(cluster: Cluster) -> None:
    """Add a draft of an import with bad rows."""
    network = Network.objects.get(cluster=cluster, name=BLUE)
    new = VMImport.new(cluster=cluster, network=network)
    drafts.IMPORTS.create([("erp.csv", _VMS.encode())], new, author=demo.AUTHOR)


def _wave(cluster: Cluster) -> None:
    """Add a wave of registered VMs and of those of the import, which are not ready."""
    wave = waves.create(
        cluster,
        "Web shop and ERP",
        planned_at=database.now() + timedelta(days=3),
        note="The web shop and its ERP move together.",
        author=demo.AUTHOR,
    )
    names = [("shop", _vm(number)) for number in range(1, 6)]
    waves.add(wave.pk, names, author=demo.AUTHOR)
    waves.add_import(wave.pk, VMImport.objects.filter(cluster=cluster).get(), author=demo.AUTHOR)


def _owner(cluster: Cluster) -> None:
    user = User.objects.filter(username=OWNER).first()
    if user is not None:
        memberships.create(cluster, ["shop"], author=demo.AUTHOR, user=user)


def _entry(number: int) -> EntrySpec:
    """Return the entry of a VM; the first half of the VMs is in the namespace shop."""
    namespace = "shop" if number <= _COUNT // 2 else "bank"
    return EntrySpec(_mac(number), (_ip(number),), _vm(number), namespace)


def _vm(number: int) -> str:
    return f"{'shop' if number <= _COUNT // 2 else 'bank'}-{number:02}"


def _mac(number: int) -> str:
    return f"02:42:0a:80:00:{number:02x}"


def _ip(number: int) -> str:
    return f"10.128.{1 + number // 200}.{20 + number % 200}/22"
