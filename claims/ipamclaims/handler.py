"""Reconcile handler of IPAMClaims: it records them, or allocates addresses (managed resource `claims`).

Beside it: OVN-Kubernetes, which answers IPAMClaims where Cadastre does not
(pools/clusters/other_writers.py).

The register grants addresses in one transaction before the cluster sees them. The status is then applied by
its own field manager, never with force. Claims that could not be granted are retried by every sync run, and
after each change of a related object. The handler creates and changes objects, and never deletes them.
"""

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import Dialect
from claims.core.resources import CLUSTER_UDN, IPAM_CLAIM, IPPOOL, NAD, POD, UDN, VM, VMI
from claims.ipamclaims import allocation, findings as ipamclaim_findings, ingest, status_writer
from claims.ipamclaims.ingest import ObservedClaim
from claims.models import IPAMClaim
from claims.workloads.running import summarize_problems
from pools.clusters import other_writers, recovery_mode
from pools.clusters.other_writers import OtherWriter, Trace
from pools.clusters.reconcile import handler, ingest as reconcile_ingest, watchers
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest, Resource, lease
from pools.models import ManagedResource, ObservedObject
from pools.platform import database
from pools.platform.outbound import faults


def _is_created(manifest: Manifest) -> bool:
    """Return True for a network of which OVN-Kubernetes says that it has created it."""
    status = manifest.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        condition.get("type") == "NetworkCreated" and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, dict)
    )


def _is_answered_by_another(manifest: Manifest) -> bool:
    return any(
        owner.owns_within(("status", "ips"))
        for owner in managed_fields.parse(manifest)
        if owner.manager not in {handler.MANAGER, handler.STATUS_MANAGER}
    )


_CREATED = "it has created the network {name}"
OVN_KUBERNETES = OtherWriter(
    ManagedResource.CLAIMS,
    "OVN-Kubernetes",
    lease("ovn-kubernetes-master"),
    (
        Trace(CLUSTER_UDN, _is_created, _CREATED),
        Trace(UDN, _is_created, _CREATED),
        Trace(
            IPAM_CLAIM,
            _is_answered_by_another,
            "another field manager writes the status of the IPAMClaim {name}",
        ),
    ),
    "Both answer IPAMClaims: Cadastre grants an address before a pod exists, OVN-Kubernetes does not know of it and"
    " may give it to another pod, so that two run with one address. Leave claims off where OVN-Kubernetes answers.",
)


_STRUCTURE = Structure(
    lists={("metadata", "finalizers"): (), ("metadata", "ownerReferences"): ("uid",)}
)
_RELATED = (CLUSTER_UDN, UDN, NAD, IPPOOL, VM, VMI)
_BATCH = 500  # claims per transaction
_INTERNAL_ERROR = "The allocation failed with an internal error; see the log of the worker"

log = logging.getLogger(__name__)


class IPAMClaimHandler(handler.Handler):
    """The reconcile handler of IPAMClaims; all of its state is in the database."""

    kind = ipamclaim.KIND
    resources: Sequence[Resource] = (IPAM_CLAIM,)
    prompt = True
    follows = tuple(resource.kind for resource in (*_RELATED, POD, OVN_KUBERNETES.lease))

    def parse(self, manifest: Manifest) -> ObservedClaim:
        claim = ipamclaim.parse(manifest)
        return ObservedClaim(claim, written_here=status_writer.is_written_here(manifest))

    def ingest(
        self, context: handler.SyncContext, parsed_objects: Sequence[handler.ParsedObject]
    ) -> None:
        claims_managed = context.connection.manages(ManagedResource.CLAIMS)
        ingest.ingest_claims(
            context.cluster,
            [observed.parsed for observed in parsed_objects],
            claims_managed=claims_managed,
        )
        for observed in parsed_objects:
            if problems := observed.parsed.claim.problems:
                observed.row.problem_code, observed.row.problem = summarize_problems(problems)

    def forget(self, context: handler.SyncContext, rows: Sequence[ObservedObject]) -> None:
        ingest.forget(context.cluster, [row.uid for row in rows])

    def desired(self, context: handler.SyncContext) -> Iterator[handler.Write]:
        load_dialect = functools.cache(
            lambda: dialects.dialect(context.client.schema(_resource(context)))
        )
        cluster_id = context.cluster.pk
        pods_known = watchers.is_known(context, POD.kind) and watchers.is_known(context, VMI.kind)
        if not context.connection.manages(ManagedResource.CLAIMS):
            with context.transaction():
                ingest.update_owner_pods(cluster_id, pods_known=pods_known)
            return
        with context.transaction():
            ingest.set_vm_uids(cluster_id)
        if self._ready(context):
            _grant_waiting(context, load_dialect)
        with context.transaction():
            ingest.update_owner_pods(cluster_id, pods_known=pods_known)
        status_writer.write_events(context)
        register_claims = status_writer.register_claims(cluster_id)
        if register_claims:
            context.notes[self.kind] = status_writer.unwritable_claims(
                register_claims, load_dialect()
            )
        unwritten_claims = status_writer.claims_with_unwritten_status(cluster_id)
        now = database.now()
        resource = _resource(context)
        for claim in register_claims:
            make = partial(_spec, context=context, claim=claim, dialect=load_dialect())
            yield handler.Write(
                resource, claim.name, make, namespace=claim.namespace, structure=_STRUCTURE
            )
        for claim in unwritten_claims:
            make = partial(status_writer.status_manifest, claim, dialect=load_dialect(), now=now)
            yield handler.Write(
                resource,
                claim.name,
                make,
                namespace=claim.namespace,
                structure=_STRUCTURE,
                subresource="status",
                manager=handler.STATUS_MANAGER,
            )

    def findings(self, context: handler.SyncContext) -> Iterable[handler.ReconcileFinding]:
        knows_vms = watchers.is_known(context, VM.kind)
        yield from ipamclaim_findings.cluster_findings(
            context,
            claims_managed=context.connection.manages(ManagedResource.CLAIMS),
            owners=[VM.kind, *([VMI.kind] if watchers.is_known(context, VMI.kind) else [])]
            if knows_vms
            else [],
            unwritable=context.notes.get(self.kind, ()),
        )

        yield from other_writers.findings(context, ManagedResource.CLAIMS)

    def _ready(self, context: handler.SyncContext) -> bool:
        """Return True if all objects that may hold an address are known (cilium/cilium#21482).

        A kind that was never observed in the cluster is not required: its CRD may not be installed.
        """
        observed_rows = ObservedObject.objects.filter(
            cluster=context.cluster, kind__in=[self.kind, *(resource.kind for resource in _RELATED)]
        )
        kinds = observed_rows.order_by().values_list("kind", flat=True).distinct()
        return all(watchers.is_known(context, kind) for kind in kinds)


def _grant_waiting(context: handler.SyncContext, load_dialect: Callable[[], Dialect]) -> None:
    """Grant addresses to the waiting claims; an error of one claim does not affect the others."""
    waiting = allocation.waiting_claims(context.cluster.pk)
    if not waiting:
        return
    dialect = load_dialect()
    problems_by_uid = _problems_by_uid(context, waiting)

    def grant(claims: Sequence[IPAMClaim]) -> None:
        allocation.grant_addresses(
            claims, dialect, author=context.author, problems_by_uid=problems_by_uid
        )

    for _, group in itertools.groupby(waiting, key=lambda claim: claim.network_id):
        network_claims = list(group)
        for first in range(0, len(network_claims), _BATCH):
            with context.transaction():
                if not recovery_mode.may_allocate():
                    return
                for failed_claim, error in reconcile_ingest.isolate_failures(
                    network_claims[first : first + _BATCH], grant
                ):
                    log.error(
                        "no addresses could be allocated for the claim %s",
                        failed_claim,
                        exc_info=error,
                    )
                    with reconcile_ingest.isolate_object(
                        context, IPAMClaimHandler.kind, str(failed_claim)
                    ):
                        allocation.refuse_claim(failed_claim, dialect, _INTERNAL_ERROR)


def _problems_by_uid(context: handler.SyncContext, waiting: Sequence[IPAMClaim]) -> dict[str, str]:
    """Return the parse errors of these claims' objects, by uid."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=IPAMClaimHandler.kind)
    problems = rows.exclude(problem_code="").values_list("uid", "problem")
    uids = {claim.uid for claim in waiting}
    return {uid: text for uid, text in problems if uid in uids}


def _spec(
    current: Manifest | None, context: handler.SyncContext, claim: IPAMClaim, dialect: Dialect
) -> Manifest | None:
    if current is None and claim.uid:  # younger than the list, or deleted
        with contextlib.suppress(faults.NotFound):
            current = context.client.get(_resource(context), claim.name, claim.namespace)
    return status_writer.spec_manifest(claim, current, dialect)


def _resource(context: handler.SyncContext) -> Resource:
    return context.served[IPAMClaimHandler.kind]
