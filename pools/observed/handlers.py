"""Handlers of the kinds that use addresses: one class, and for each kind how it is read and parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
)
from pools.core import errors
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Manifest, Resource
from pools.core.observed import cluster_networks, external_addresses, secondary_networks
from pools.core.observed.uses import ObservedUses
from pools.models import ObservedObject
from pools.observed import cidrs
from pools.platform import documents

Parser = Callable[[Manifest], ObservedUses]


class ObservedKind(Handler):
    """A kind of which the addresses are read.

    Kinds of which every cluster has many objects or changes that say nothing of addresses (Services; nodes report
    each other minute), or next to none, or that change with each pod (pools of whereabouts), are not watched.
    """

    problems_are_findings = True

    def __init__(
        self,
        *versions: Resource,
        parser: Parser,
        watched: bool = True,
        relevant: Callable[[Manifest], bool] = lambda _manifest: True,
        projection: Callable[[Manifest], Manifest] = lambda manifest: manifest,
    ) -> None:
        self.kind = versions[0].kind
        self.resources: Sequence[Resource] = versions
        self.watched = watched
        self._parser, self._relevant, self._projection = parser, relevant, projection

    def is_relevant(self, manifest: Manifest) -> bool:
        return self._relevant(manifest)

    def project(self, manifest: Manifest) -> Manifest:
        """Return the part that is parsed, without managedFields."""
        metadata = manifest.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
        return self._projection(manifest)

    def parse(self, manifest: Manifest) -> ObservedUses:
        return self._parser(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        cidrs.store(
            context.cluster,
            self.kind,
            [(observed.row, observed.parsed) for observed in parsed_objects],
        )

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        cidrs.forget(context.cluster, self.kind, rows)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from cidrs.find_problems(context, self.kind)
        yield from cidrs.find_clashes(context, self.kind)


def parse_kubeadm_config(manifest: Manifest) -> ObservedUses:
    """Return the subnets in the ConfigMap kube-system/kubeadm-config."""
    return _parse_text(manifest, "ClusterConfiguration", cluster_networks.parse_kubeadm)


def parse_kube_proxy_config(manifest: Manifest) -> ObservedUses:
    """Return the pod CIDRs in the ConfigMap kube-system/kube-proxy."""
    return _parse_text(manifest, "config.conf", cluster_networks.parse_kube_proxy)


def parse_eks_kube_proxy_config(manifest: Manifest) -> ObservedUses:
    """Return the pod CIDRs in the ConfigMap kube-system/kube-proxy-config of EKS."""
    return _parse_text(manifest, "config", cluster_networks.parse_kube_proxy)


def _parse_text(manifest: Manifest, key: str, parser: Parser) -> ObservedUses:
    data = manifest.get("data")
    text = data.get(key) if isinstance(data, dict) else None
    if text is None:
        return ObservedUses()
    path = f"data.{key}"
    try:
        if not isinstance(text, str):
            message = "write it as a text in quotes"
            raise errors.InvalidInput.for_field(path, "wrong_type", message, text)
        return parser(documents.load_yaml(text)[0].data)
    except errors.InvalidInput as error:
        problem = errors.FieldProblem(path, error.code, error.problems[0].message)
        return ObservedUses(problems=(problem,))


ALL: Sequence[Handler] = (
    ObservedKind(
        resources.SERVICE_CIDR,
        resources.SERVICE_CIDR_V1BETA1,
        resources.SERVICE_CIDR_V1ALPHA1,
        parser=cluster_networks.parse_service_cidr,
        watched=False,
    ),
    ObservedKind(resources.KUBEADM_CONFIG, parser=parse_kubeadm_config, watched=False),
    ObservedKind(resources.KUBE_PROXY_CONFIG, parser=parse_kube_proxy_config, watched=False),
    ObservedKind(
        resources.EKS_KUBE_PROXY_CONFIG, parser=parse_eks_kube_proxy_config, watched=False
    ),
    ObservedKind(
        resources.SERVER_NODE,
        parser=cluster_networks.parse_server_node,
        relevant=cluster_networks.has_server_arguments,
        projection=cluster_networks.project_server_node,
        watched=False,
    ),
    ObservedKind(
        resources.CONTROL_PLANE_POD,
        parser=cluster_networks.parse_control_plane,
        relevant=cluster_networks.has_flags,
        projection=cluster_networks.project_control_plane,
        watched=False,
    ),
    ObservedKind(
        resources.OPENSHIFT_NETWORK, parser=cluster_networks.parse_openshift, watched=False
    ),
    ObservedKind(
        resources.OBSERVED_NODE,
        parser=cluster_networks.parse_node,
        projection=cluster_networks.project_node,
        watched=False,
    ),
    ObservedKind(
        resources.SERVICE,
        parser=external_addresses.parse_service,
        relevant=external_addresses.has_addresses,
        projection=external_addresses.project_service,
        watched=False,
    ),
    ObservedKind(
        resources.CILIUM_LOAD_BALANCER_POOL,
        resources.CILIUM_LOAD_BALANCER_POOL_V2ALPHA1,
        parser=external_addresses.parse_cilium_load_balancer_pool,
    ),
    ObservedKind(resources.METALLB_POOL, parser=external_addresses.parse_metallb_pool),
    ObservedKind(
        resources.METALLB_ADDRESS_POOL,
        resources.METALLB_ADDRESS_POOL_V1ALPHA1,
        parser=external_addresses.parse_metallb_pool,
    ),
    ObservedKind(
        resources.WHEREABOUTS_POOL,
        parser=secondary_networks.parse_whereabouts_pool,
        projection=secondary_networks.project_whereabouts_pool,
        watched=False,
    ),
    ObservedKind(resources.EGRESS_IP, parser=external_addresses.parse_egress_ip),
    ObservedKind(
        resources.CILIUM_EGRESS_GATEWAY_POLICY,
        parser=external_addresses.parse_egress_gateway_policy,
    ),
    ObservedKind(
        resources.CALICO_IP_POOL, resources.CALICO_IP_POOL_V3, parser=cluster_networks.parse
    ),
    ObservedKind(
        resources.CALICO_IP_RESERVATION,
        resources.CALICO_IP_RESERVATION_V3,
        parser=cluster_networks.parse_reservation,
    ),
)
