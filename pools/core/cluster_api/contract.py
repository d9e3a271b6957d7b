"""The objects of Cluster API's contract for IPAM providers, as values; names are those of the contract.

Beside it: the kinds of Cluster API that are read and written, in both versions of its contract, and our
pools.

Source: the IPAM provider contract in the book of kubernetes-sigs/cluster-api. The finalizers are those of its
reference provider (cluster-api-ipam-provider-in-cluster, pkg/ipamutil), so that a claim that clusterctl
moved is released by whoever serves it then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pools.core import addresses, errors, holders, object_reader
from pools.core.kubernetes.resources import Resource

GROUP = "ipam.cadastre.dev"  # of the pool objects that deploy/crds ships
API_VERSION = f"{GROUP}/v1alpha1"
POOL_KIND = "CadastrePool"
GLOBAL_POOL_KIND = "GlobalCadastrePool"
POOL_KINDS = (POOL_KIND, GLOBAL_POOL_KIND)
CLAIM_KIND = "IPAddressClaim"
ADDRESS_KIND = "IPAddress"
CLUSTER_KIND = "Cluster"
HOLDER_KIND = "ipaddressclaim"  # of blocks that claims hold

RELEASE_FINALIZER = "ipam.cluster.x-k8s.io/ReleaseAddress"  # on claims
PROTECT_FINALIZER = "ipam.cluster.x-k8s.io/ProtectAddress"  # on addresses
POOL_FINALIZER = "ipam.cluster.x-k8s.io/ProtectPool"  # on pools
PAUSED = "cluster.x-k8s.io/paused"
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"

Manifest = Mapping[str, Any]


class ObjectName(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class PoolKey(NamedTuple):
    """Kind, namespace and name of a pool object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {ObjectName(self.namespace, self.name)}"


@dataclass(frozen=True)
class AddressClaim:
    """An IPAddressClaim of one of our pools; `cluster` is "" if it belongs to no Cluster."""

    name: ObjectName
    uid: str
    pool: PoolKey
    cluster: str
    is_paused: bool
    is_deleting: bool
    has_finalizer: bool
    labels: Mapping[str, Any]


@dataclass(frozen=True)
class PoolObject:
    """A CadastrePool or GlobalCadastrePool: which pool of the register it names.

    `family`, `prefix` and `gateway` are None where the register's pool decides.
    """

    key: PoolKey
    uid: str
    pool_name: str
    family: int | None
    prefix: int | None
    gateway: addresses.Address | None
    is_deleting: bool


def metadata(manifest: Manifest) -> Mapping[str, Any]:
    """Return the metadata of an object; empty if it is no object."""
    return section(manifest, "metadata")


def section(manifest: Manifest, name: str) -> Mapping[str, Any]:
    """Return a field that is an object; empty if it is something else."""
    value = manifest.get(name)
    return value if isinstance(value, Mapping) else {}


def object_name(manifest: Manifest) -> ObjectName:
    fields = metadata(manifest)
    return ObjectName(str(fields.get("namespace") or ""), str(fields.get("name") or ""))


def has_finalizer(manifest: Manifest, finalizer: str) -> bool:
    return finalizer in (metadata(manifest).get("finalizers") or ())


def without_finalizer(manifest: Manifest, finalizer: str) -> dict[str, Any] | None:
    """Return a copy of the object without the finalizer; None if it does not have it."""
    if not has_finalizer(manifest, finalizer):
        return None
    remaining = [name for name in metadata(manifest).get("finalizers") or () if name != finalizer]
    return {**manifest, "metadata": {**metadata(manifest), "finalizers": remaining}}


def is_deleting(manifest: Manifest) -> bool:
    return bool(metadata(manifest).get("deletionTimestamp"))


def has_paused_annotation(manifest: Manifest) -> bool:
    """Return True if the annotation is present, whatever its value."""
    return PAUSED in section(metadata(manifest), "annotations")


def is_cluster_paused(manifest: Manifest) -> bool:
    """Return True for a Cluster that is paused by its spec or by annotation."""
    return section(manifest, "spec").get("paused") is True or has_paused_annotation(manifest)


def pool_key(manifest: Manifest) -> PoolKey | None:
    """Return the pool that spec.poolRef of a claim or address names; None for another provider's."""
    reference = section(section(manifest, "spec"), "poolRef")
    kind = reference.get("kind")
    if reference.get("apiGroup") != GROUP or kind not in POOL_KINDS:
        return None
    namespace = "" if kind == GLOBAL_POOL_KIND else object_name(manifest).namespace
    return PoolKey(str(kind), namespace, str(reference.get("name") or ""))


def parse_claim(manifest: Manifest) -> AddressClaim:
    """Return an IPAddressClaim whose poolRef names one of our pools; raises InvalidInput otherwise."""
    key = pool_key(manifest)
    if key is None or not key.name:
        raise errors.InvalidInput.for_field("spec.poolRef", "required", "names no pool")
    fields = metadata(manifest)
    labels = section(fields, "labels")
    return AddressClaim(
        name=object_name(manifest),
        uid=str(fields.get("uid") or ""),
        pool=key,
        cluster=str(section(manifest, "spec").get("clusterName") or labels.get(CLUSTER_NAME) or ""),
        is_paused=has_paused_annotation(manifest),
        is_deleting=is_deleting(manifest),
        has_finalizer=has_finalizer(manifest, RELEASE_FINALIZER),
        labels=labels,
    )


def parse_pool(manifest: Manifest) -> PoolObject:
    """Return a pool object. Raises InvalidInput with the path of each invalid field."""
    report = object_reader.ProblemReport(strict=False)
    body = object_reader.Fields(dict(manifest), "", report)
    spec = body.section("spec")
    pool_name = spec.parse("poolName", holders.parse_name)
    family = spec.parse("family", _family) if spec.has("family") else None
    prefix = spec.parse("prefix", _prefix) if spec.has("prefix") else None
    gateway = spec.parse("gateway", addresses.parse_address) if spec.has("gateway") else None
    if gateway is not None and family is not None and gateway.version != family:
        report.add("spec.gateway", "mixed_family", f"is no IPv{family} address", str(gateway))
    report.raise_any()
    name = object_name(manifest)
    return PoolObject(
        key=PoolKey(str(manifest.get("kind")), *name),
        uid=str(metadata(manifest).get("uid") or ""),
        pool_name=pool_name or "",
        family=family,
        prefix=prefix,
        gateway=gateway,
        is_deleting=is_deleting(manifest),
    )


def _family(value: object, path: str) -> int:
    if not isinstance(value, int) or value not in {4, 6}:
        raise errors.InvalidInput.for_field(path, "family", "must be 4 or 6", value)
    return value


def _prefix(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 128:
        raise errors.InvalidInput.for_field(path, "prefix_length", "must be 1 to 128", value)
    return value


def parse_address(manifest: Manifest) -> str:
    """Return spec.address of an IPAddress in canonical form; raises InvalidInput."""
    text = section(manifest, "spec").get("address")
    return str(addresses.parse_address(text, field="spec.address"))


def address_of(manifest: Manifest) -> str:
    """Return spec.address of an IPAddress in canonical form, or as written if it is invalid."""
    try:
        return parse_address(manifest)
    except errors.InvalidInput:
        return str(section(manifest, "spec").get("address") or "")


def belongs_to(address: Manifest, claim: AddressClaim) -> bool:
    """Return True if an IPAddress is the claim's: same name, its claimRef and its pool."""
    reference = section(section(address, "spec"), "claimRef")
    return (
        object_name(address) == claim.name
        and reference.get("name") == claim.name.name
        and pool_key(address) == claim.pool
    )


_IPAM_GROUP = "ipam.cluster.x-k8s.io"
_SHOWS = "addresses of Cluster API"


def _resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group, version, plural, kind, namespaced=namespaced, shows=_SHOWS, reads_for=_SHOWS
    )


# The version that is preferred first.
CLAIMS = tuple(
    _resource(_IPAM_GROUP, version, "ipaddressclaims", CLAIM_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
ADDRESSES = tuple(
    _resource(_IPAM_GROUP, version, "ipaddresses", ADDRESS_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
CLUSTERS = tuple(
    _resource("cluster.x-k8s.io", version, "clusters", CLUSTER_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
POOLS = {
    POOL_KIND: _resource(GROUP, "v1alpha1", "cadastrepools", POOL_KIND, namespaced=True),
    GLOBAL_POOL_KIND: _resource(
        GROUP,
        "v1alpha1",
        "globalcadastrepools",
        GLOBAL_POOL_KIND,
        namespaced=False,
    ),
}
