"""The handler of CadastrePools: says in their status what the register has, and protects them while in use."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from pools.cluster_api import claim_writes, observed
from pools.cluster_api.observed import PoolBinding
from pools.clusters.reconcile import handler, ingest
from pools.core import errors
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Outcome, Reason
from pools.core.cluster_api.contract import ObjectName, PoolKey, PoolObject
from pools.core.kubernetes import differences
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import ManagedResource, ObservedObject
from pools.platform import database
from pools.register import usage

_CONDITIONS = ("conditions",)


class CadastrePools(handler.Handler):
    """The handler of the kind CadastrePool, or of GlobalCadastrePool, which has no namespace."""

    prompt = True
    follows = (contract.CLAIM_KIND, contract.ADDRESS_KIND)

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.resources: Sequence[Resource] = (contract.POOLS[kind],)

    def parse(self, manifest: Manifest) -> PoolObject:
        return contract.parse_pool(manifest)

    def desired(self, context: handler.SyncContext) -> Iterator[handler.Write]:
        if not context.connection.manages(ManagedResource.CLUSTER_API):
            return
        rows = ObservedObject.objects.filter(cluster=context.cluster, kind=self.kind)
        manifests = {
            PoolKey(self.kind, row.namespace, row.name): row.manifest
            for row in rows.exclude(problem_code="unstorable").order_by("namespace", "name")
        }
        pool_objects = {key: observed.parse_pool(manifest) for key, manifest in manifests.items()}
        bindings = observed.bind(context.cluster, pool_objects)
        bound = {b.pool.pk: b.pool for b in bindings.values() if isinstance(b, PoolBinding)}
        usages = usage.usage_by_pool(bound.values())
        now = database.now()
        resource = contract.POOLS[self.kind]
        for key, manifest in manifests.items():
            if contract.has_paused_annotation(manifest):
                continue
            with ingest.isolate_object(context, self.kind, "/".join(filter(None, key[1:]))):
                yield from _finalizer_writes(context, resource, key, manifest)
                binding = bindings[key]
                counts = (
                    usages[binding.pool.pk][binding.family]
                    if isinstance(binding, PoolBinding)
                    else None
                )
                make_status = partial(_status, binding=binding, counts=counts, now=now)
                write = handler.Write(
                    resource,
                    key.name,
                    make_status,
                    namespace=key.namespace,
                    subresource="status",
                    manager=handler.STATUS_MANAGER,
                    structure=claim_writes.STRUCTURE,
                )
                if differences.find_differences(
                    make_status(manifest) or {}, manifest, structure=write.structure
                ):
                    yield write


def _finalizer_writes(
    context: handler.SyncContext, resource: Resource, key: PoolKey, manifest: Manifest
) -> Iterator[handler.Write]:
    name = ObjectName(key.namespace, key.name)
    is_protected = contract.has_finalizer(manifest, contract.POOL_FINALIZER)
    if contract.is_deleting(manifest):
        if is_protected:
            make = partial(_unprotected, context=context, key=key)
            yield claim_writes.object_write(resource, name, make, how="replace")
    elif not is_protected:
        yield claim_writes.object_write(resource, name, _protected)


def _identity(current: Manifest) -> Manifest:
    names = {
        name: value
        for name, value in contract.metadata(current).items()
        if name in {"namespace", "name"}
    }
    return {"apiVersion": contract.API_VERSION, "kind": current["kind"], "metadata": names}


def _protected(current: Manifest | None) -> Manifest | None:
    if current is None or contract.is_deleting(current):
        return None
    manifest = _identity(current)
    manifest["metadata"]["finalizers"] = [contract.POOL_FINALIZER]
    return manifest


def _unprotected(
    current: Manifest | None, context: handler.SyncContext, key: PoolKey
) -> Manifest | None:
    """Return the pool without its finalizer once the cluster has no IPAddress of it."""
    addresses = observed.served_resource(context, contract.ADDRESSES)
    is_absent = observed.is_absent(context.connection, contract.ADDRESS_KIND)
    if current is None or not (addresses or is_absent) or not contract.is_deleting(current):
        return None
    released = contract.without_finalizer(current, contract.POOL_FINALIZER)
    if released is None:
        return None
    if addresses and any(
        contract.pool_key(manifest) == key
        for manifest in context.client.list(addresses, namespace=key.namespace).items
    ):
        return None
    return released


def _status(
    current: Manifest | None,
    binding: PoolBinding | errors.IpamError,
    counts: usage.Usage | None,
    now: datetime,
) -> Manifest | None:
    if current is None:
        return None
    outcome = Outcome()
    if isinstance(binding, errors.IpamError):
        outcome = Outcome(Reason.POOL_NOT_READY, binding.message)
    condition = conditions.standard_condition(outcome, _CONDITIONS, current, now)
    status: Manifest = {"conditions": [condition]}
    if counts is not None:
        status["addresses"] = {
            name: str(getattr(counts, name))  # an IPv6 pool has more than an integer of JSON holds
            for name in ("capacity", "held", "cooling", "reserved", "free")
        }
    return _identity(current) | {"status": status}
