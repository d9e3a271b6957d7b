"""Rule `bad-object-fails-alone` in findings: an object whose finding fails is named, the others are reported.

The table has, for each handler with findings about objects, a world of two objects with one finding each; the
finding of the object "bad" raises. The handlers without such findings are listed, too: a new one has to be added.
"""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from claims.core import resources
from claims.core.workloads.attachments import POD_NETWORKS
from claims.core.workloads.network_selection import DEFAULT_NETWORK
from claims.models import NAD, IPPool
from pools.cilium import node_status
from pools.clusters.reconcile import registry
from pools.clusters.reconcile.handler import Handler, ReconcileFinding, SyncContext
from pools.core.cilium import ciliumnode
from pools.core.errors import CIDROverlap
from pools.models import Cluster, Connection, ManagedResource, Mode, Now, ObservedObject
from pools.observed.cidrs import ObservedKind
from tests import factories
from tests.claims import worlds
from tests.claims.networks.ovn import nad
from tests.handlers import fleet, node_world
from tests.reconcile import small

NAMES = ("bad", "good")
_uids = itertools.count(1)


def observed(
    cluster: Cluster,
    kind: str,
    name: str,
    manifest: Any = None,
    *,
    namespace: str = "",
    **more: Any,
) -> ObservedObject:
    return ObservedObject.objects.create(
        cluster=cluster, kind=kind, api_version="v1", namespace=namespace, name=name,
        uid=f"uid-{next(_uids)}", resource_version="1",
        manifest=manifest or {"metadata": {"name": name}},
        first_seen_at=Now(), changed_at=Now(), **more,
    )  # fmt: skip


def _pools_not_in_cluster(cluster: Cluster) -> None:
    for number, name in enumerate(NAMES):
        factories.pool(f"10.{number}.0.0/16", mask=24, category="pod", within=cluster, name=name)


def _pools_not_in_register(cluster: Cluster) -> None:
    Connection.objects.update(mode=Mode.MANAGED, managed_resources=[ManagedResource.POOLS])
    for name in NAMES:
        manifest = fleet.manifest(name, "10.9.0.0/16")
        manifest["metadata"]["managedFields"] = [
            {"manager": "cadastre", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
        ]
        observed(cluster, "CiliumPodIPPool", name, manifest)


def _pools_that_overlap(cluster: Cluster) -> None:
    factories.pool("10.0.0.0/8", mask=24, category="pod", within=cluster, name="other")
    observed(cluster, "CiliumPodIPPool", "other")
    for number, name in enumerate(NAMES):
        manifest = fleet.manifest(name, f"10.{number}.0.0/16")
        observed(cluster, "CiliumPodIPPool", name, manifest, problem_code=CIDROverlap.code)


def _nodes(cluster: Cluster) -> None:
    factories.pool("10.0.0.0/16", mask=24, category="pod", within=cluster, name="a")
    for number, name in enumerate(NAMES):
        manifest = node_world.manifest(name, lists={"a": [f"10.9.{number}.0/24"]})
        observed(cluster, "CiliumNode", name, manifest, pending=True)


def _networks(kind: str) -> Callable[[Cluster], None]:
    def build(cluster: Cluster) -> None:
        for name in NAMES:
            condition = {"type": "NetworkCreated", "status": "False", "reason": "x", "message": "y"}
            worlds.network(
                name, of=cluster, kind=kind, object_name=name, conditions=[condition], uid=name
            )

    return build


def _networks_without_object(cluster: Cluster) -> None:
    for name in NAMES:
        worlds.network(name, of=cluster, object_name=name)


def _nads(cluster: Cluster) -> None:
    for name in NAMES:
        network = worlds.network(f"net-{name}", of=cluster, object_name="another", uid=name)
        config = json.loads(nad(name, "shop", name=f"net-{name}")["spec"]["config"])
        NAD.objects.create(network=network, namespace="shop", name=name, uid=name, config=config)


def _segments(cluster: Cluster) -> None:
    for vlan, pair in enumerate((("bad", "z1"), ("good", "z2"))):
        for name in pair:
            network = worlds.network(
                name, of=cluster, topology="localnet", role="secondary", subnets=("10.7.0.0/24",)
            )
            config = json.loads(
                nad(name, topology="localnet", physicalNetworkName="p", vlanID=vlan + 1)["spec"][
                    "config"
                ]
            )
            NAD.objects.create(
                network=network, namespace="shop", name=name, uid=name, config=config
            )


def _ippools(cluster: Cluster) -> None:
    for name in NAMES:
        created = worlds.ippool(worlds.network(f"net-{name}", of=cluster), name)
        IPPool.objects.filter(pk=created.pk).update(gone_at=Now())


def _unregistered_ippools(cluster: Cluster) -> None:
    for name in NAMES:
        fields = {"f:spec": {"f:network-name": {}}}
        managed = [{"manager": "cadastre", "operation": "Apply", "fieldsV1": fields}]
        manifest = {"metadata": {"name": name, "managedFields": managed}, "spec": {}}
        observed(cluster, "IPPool", name, manifest)


def _refused_claims(cluster: Cluster) -> None:
    network = worlds.network("net", of=cluster)
    condition = {
        "type": "IPsAllocated", "status": "False", "reason": "IPAllocationFailed", "message": "full",
    }  # fmt: skip
    for name in NAMES:
        worlds.claim(network, name, conditions=[condition], name=name)


def _claims_with_duplicates(cluster: Cluster) -> None:
    network = worlds.network("net", of=cluster)
    for name in NAMES:
        worlds.claim(network, name, "10.0.0.5/24", name=name)


def _misnamed_claims(cluster: Cluster) -> None:
    network = worlds.network("net", of=cluster)
    for name in NAMES:
        worlds.claim(network, "web", name=name)


def _workloads(kind: str) -> Callable[[Cluster], None]:
    def build(cluster: Cluster) -> None:
        network = worlds.network("net", of=cluster)
        for name in NAMES:
            worlds.workload(network, name, "02:00:00:00:00:01", "10.0.0.5/24", kind=kind)

    return build


def _ignored_requests(cluster: Cluster) -> None:
    for name in NAMES:
        network = {"ip_address": "10.0.0.9/24", "ip_addresses": ["10.0.0.9/24"], "role": "primary"}
        texts = {
            DEFAULT_NETWORK: json.dumps(
                [{"name": "default", "namespace": "x", "ips": ["10.0.0.5/24"]}]
            ),
            POD_NETWORKS: json.dumps({"shop/net": network}),
        }
        observed(
            cluster,
            "Pod",
            name,
            {"metadata": {"name": name, "annotations": texts}},
            namespace="shop",
        )


def _unreadable(kind: str) -> Callable[[Cluster], None]:
    def build(cluster: Cluster) -> None:
        for name in NAMES:
            observed(cluster, kind, name, problem_code="not_an_address", problem="x")

    return build


CUDN, UDN = resources.CLUSTER_UDN.kind, resources.UDN.kind
OBSERVED = [handler.kind for handler in registry.HANDLERS if isinstance(handler, ObservedKind)]
CASES: list[tuple[str, str, Callable[[Cluster], None]]] = [
    ("CiliumPodIPPool", "pool_not_in_cluster", _pools_not_in_cluster),
    ("CiliumPodIPPool", "pool_not_in_register", _pools_not_in_register),
    ("CiliumPodIPPool", "cidr_overlap", _pools_that_overlap),
    ("CiliumNode", "orphaned_pod_cidr", _nodes),
    (CUDN, "network_not_created", _networks("cudn")),
    (CUDN, "network_not_in_cluster", _networks_without_object),
    (UDN, "network_not_created", _networks("udn")),
    (resources.NAD.kind, "network_name_taken", _nads),
    (resources.NAD.kind, "shared_segment", _segments),
    ("IPPool", "ippool_gone", _ippools),
    ("IPPool", "ippool_not_in_register", _unregistered_ippools),
    ("IPAMClaim", "ipamclaim_refused", _refused_claims),
    ("IPAMClaim", "ipamclaim_duplicate", _claims_with_duplicates),
    ("IPAMClaim", "ipamclaim_name", _misnamed_claims),
    (resources.VM.kind, "workload_duplicate", _workloads("vm")),
    (resources.VMI.kind, "workload_duplicate", _workloads("vmi")),
    (resources.POD.kind, "workload_duplicate", _workloads("pod")),
    (resources.POD.kind, "requested_addresses_ignored", _ignored_requests),
    *((kind, "object_not_readable", _unreadable(kind)) for kind in OBSERVED),
    (resources.NAD.kind, "object_not_readable", _unreadable(resources.NAD.kind)),
]


@pytest.fixture
def context() -> SyncContext:
    return small.context(factories.cluster())


def _handler(kind: str) -> Handler:
    (handler,) = (handler for handler in registry.HANDLERS if handler.kind == kind)
    return handler


def _findings(handler: Handler, context: SyncContext, code: str) -> list[str]:
    context.connection.refresh_from_db()
    context.complete.add(handler.kind)
    return [finding.subject for finding in handler.findings(context) if finding.code == code]


def _refuse_bad(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    make = ReconcileFinding.__init__

    def poisoned(
        self: ReconcileFinding, finding_code: str, subject: str, *rest: Any, **more: Any
    ) -> None:
        if finding_code == code and "bad" in subject:
            raise KeyError("bad")
        make(self, finding_code, subject, *rest, **more)

    monkeypatch.setattr(ReconcileFinding, "__init__", poisoned)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "code", "build"), CASES, ids=[f"{k} {c}" for k, c, _ in CASES])
def test_the_others_are_reported_and_the_object_is_named(
    kind: str,
    code: str,
    build: Callable[[Cluster], None],
    context: SyncContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build(context.cluster)
    handler = _handler(kind)
    subjects = _findings(handler, context, code)
    assert sorted("bad" in subject for subject in subjects) == [False, True]
    _refuse_bad(monkeypatch, code)
    assert _findings(handler, context, code) == [
        subject for subject in subjects if "bad" not in subject
    ]
    (name,) = context.failures[kind]
    assert "bad" in name


@pytest.mark.parametrize(
    ("module", "name"), [(node_status, "_locate_cidrs"), (ciliumnode, "parse")]
)
def test_a_node_that_breaks_the_computation_of_all_nodes_is_named(
    module: Any, name: str, context: SyncContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nodes(context.cluster)
    compute = getattr(module, name)

    def broken(*arguments: Any) -> Any:
        node = arguments[-1]
        if "bad" in (node["metadata"]["name"] if isinstance(node, dict) else node.name):
            raise KeyError("bad")
        return compute(*arguments)

    monkeypatch.setattr(module, name, broken)
    handler = _handler("CiliumNode")
    assert _findings(handler, context, "orphaned_pod_cidr") == ["10.9.1.0/24 good"]
    assert list(context.failures["CiliumNode"]) == ["bad"]


def test_each_handler_with_findings_has_a_case() -> None:
    with_findings = {
        handler.kind
        for handler in registry.HANDLERS
        if type(handler).findings is not Handler.findings
    }
    assert with_findings - {kind for kind, _, _ in CASES} == {"IPAddressClaim"}  # a count of claims
