"""The CIDRs that objects of a cluster use: their handlers, rows and metrics, and findings about clashes and unreadable values.

The handlers are one class, and for each kind how it is read and parsed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
)
from pools.core import errors
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Manifest, Resource
from pools.core.observed import cluster_networks, secondary_networks
from pools.core.observed.uses import ObservedUses
from pools.models import AddressSpace, Cluster, ObservedCIDR, ObservedObject, Severity
from pools.platform import documents
from pools.platform.metrics.registry import Value, value
from pools.register import overlaps

CLASH = "address_clash"
UNREADABLE = "object_not_readable"
_CLASHES = "clashes of observed CIDRs"  # key of context.notes
_Pair = tuple[overlaps.Owned, overlaps.Owned]


def find_problems(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object of the kind of which something cannot be read."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=kind)
    unreadable = rows.exclude(problem_code="").order_by("namespace", "name").defer("manifest")
    yield from ingest.find_each(context, kind, unreadable, _problem, name=_name)


def _name(row: ObservedObject) -> str:
    return f"{row.namespace}/{row.name}" if row.namespace else row.name


def _problem(row: ObservedObject) -> Iterator[ReconcileFinding]:
    message = (
        f"{row.kind} {_name(row)} cannot be read: {row.problem} What can be read of it counts."
    )
    yield ReconcileFinding(UNREADABLE, _name(row), message, details={"code": row.problem_code})


def find_clashes(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object of the kind whose addresses clash with others of the cluster.

    A clash of two objects is a finding of the kind whose network is inside, or that comes first.
    """
    # Watch events of CiliumNodes are frequent, and in multi-pool mode few of them have observed CIDRs.
    if not ObservedCIDR.objects.filter(space__cluster=context.cluster, kind=kind).exists():
        return
    if _CLASHES not in context.notes:
        context.notes[_CLASHES] = overlaps.find_clashes(context.cluster.pk)
    clashes = [pair for pair in context.notes[_CLASHES] if _reporting_owner(pair).kind == kind]
    yield from ingest.find_each(
        context, kind, clashes, _clash, name=lambda pair: str(_reporting_owner(pair))
    )


def _reporting_owner(pair: _Pair) -> overlaps.NetworkOwner:
    (_, outer), (_, inner) = pair
    return inner if inner.kind else outer


def _clash(pair: _Pair) -> Iterator[ReconcileFinding]:
    (wide, wide_owner), (narrow, narrow_owner) = pair
    relation = "is also used by" if wide == narrow else f"lies inside {wide} of"
    message = (
        f"{narrow} of {narrow_owner} ({narrow_owner.category}) {relation} {wide_owner} "
        f"({wide_owner.category}): the same address can be used twice in the cluster."
    )
    details = {
        "cidrs": [str(wide), str(narrow)],
        "owners": [str(wide_owner), str(narrow_owner)],
    }
    subject = f"{narrow} {narrow_owner}, {wide} {wide_owner}"
    yield ReconcileFinding(CLASH, subject, message, Severity.ERROR, details)


_BATCH = 2000  # rows in one statement
INVALID = "observed_object_invalid"  # problem code of an object of which a part cannot be read


@dataclass(frozen=True)
class _Key:
    uid: str
    role: str
    cidr: str


def store(
    cluster: Cluster, kind: str, objects: Sequence[tuple[ObservedObject, ObservedUses]]
) -> None:
    """Replace what the objects use, and note in their rows what cannot be read of them."""
    for row, observed in objects:
        if observed.problems:
            row.problem_code = INVALID
            row.problem = "; ".join(
                f"{problem.field}: {problem.message}" for problem in observed.problems
            )[:1000].replace("\0", "")
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    desired = {
        _Key(row.uid, use.role.value, str(use.cidr)): ObservedCIDR(
            space=space,
            kind=kind,
            namespace=row.namespace,
            name=row.name,
            uid=row.uid,
            role=use.role.value,
            cidr=str(use.cidr),
            detail=use.detail,
        )
        for row, observed in objects
        for use in observed.uses
    }
    stale = []
    for pk, uid, role, cidr, *texts in ObservedCIDR.objects.filter(
        space=space, kind=kind, uid__in=[row.uid for row, _ in objects]
    ).values_list("pk", "uid", "role", "cidr", "namespace", "name", "detail"):
        key = _Key(uid, role, str(cidr))
        fresh = desired.get(key)
        if fresh is not None and [fresh.namespace, fresh.name, fresh.detail] == texts:
            del desired[key]
        else:
            stale.append(pk)
    ObservedCIDR.objects.filter(pk__in=stale).delete()
    ObservedCIDR.objects.bulk_create(desired.values(), batch_size=_BATCH)


def forget(cluster: Cluster, kind: str, rows: Iterable[ObservedObject]) -> None:
    """Remove what deleted objects used."""
    ObservedCIDR.objects.filter(
        space__cluster=cluster,
        space__name=AddressSpace.OWN,
        kind=kind,
        uid__in=[row.uid for row in rows],
    ).delete()


def values() -> Iterator[Value]:
    """Yield the observed CIDRs by cluster and kind, and the clashes of each cluster."""
    cidrs = ObservedCIDR.objects.order_by().values_list("space__cluster__name", "kind")
    for cluster, kind, count in cidrs.annotate(count=Count("pk")):
        yield value("ipam_observed_cidrs", count, cluster=cluster, kind=kind)
    clashes = Count("findings", filter=Q(findings__code=CLASH))
    for cluster, count in (
        Cluster.objects.order_by().annotate(count=clashes).values_list("name", "count")
    ):
        yield value("ipam_address_clashes_detected", count, cluster=cluster)


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
        store(
            context.cluster,
            self.kind,
            [(observed.row, observed.parsed) for observed in parsed_objects],
        )

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        forget(context.cluster, self.kind, rows)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from find_problems(context, self.kind)
        yield from find_clashes(context, self.kind)


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
        parser=cluster_networks.parse_service,
        relevant=cluster_networks.has_addresses,
        projection=cluster_networks.project_service,
        watched=False,
    ),
    ObservedKind(
        resources.CILIUM_LOAD_BALANCER_POOL,
        resources.CILIUM_LOAD_BALANCER_POOL_V2ALPHA1,
        parser=cluster_networks.parse_cilium_load_balancer_pool,
    ),
    ObservedKind(resources.METALLB_POOL, parser=cluster_networks.parse_metallb_pool),
    ObservedKind(
        resources.METALLB_ADDRESS_POOL,
        resources.METALLB_ADDRESS_POOL_V1ALPHA1,
        parser=cluster_networks.parse_metallb_pool,
    ),
    ObservedKind(
        resources.WHEREABOUTS_POOL,
        parser=secondary_networks.parse_whereabouts_pool,
        projection=secondary_networks.project_whereabouts_pool,
        watched=False,
    ),
    ObservedKind(resources.EGRESS_IP, parser=cluster_networks.parse_egress_ip),
    ObservedKind(
        resources.CILIUM_EGRESS_GATEWAY_POLICY,
        parser=cluster_networks.parse_egress_gateway_policy,
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
