"""Reconcile handlers of VirtualMachines, VirtualMachineInstances and pods: attachments to networks.

The objects are only read, and only in clusters that serve NADs. Pods are stored if they run a VM or are
attached to more than the cluster's default network; all objects are stored as projections. An invalid
annotation is recorded as a problem of its object; the rest of the object is used. MAC addresses and addresses that
others of the network use, too, are findings.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Q

from claims.address_index import duplicates
from claims.address_index.duplicates import Duplicate
from claims.core import resources
from claims.core.workloads import attachments, vm_objects
from claims.core.workloads.attachments import Instance, Machine, Pod
from claims.core.workloads.network_selection import DEFAULT_NETWORK, ignored_request
from claims.models import IndexEntry, Workload
from claims.models.workloads import WorkloadKind
from claims.workloads import running
from claims.workloads.running import WorkloadChanges
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import Handler, ParsedObject, ReconcileFinding, SyncContext
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Finding, ObservedObject, Severity

DUPLICATE = "workload_duplicate"


def duplicate_findings(
    context: SyncContext, handler_kind: str, kind: WorkloadKind
) -> Iterator[ReconcileFinding]:
    """Yield a finding for each VM, pod or template of a VM that has duplicates."""
    conflicting = Q(duplicate_mac=True) | Q(duplicate_ip=True)
    rows = IndexEntry.objects.filter(
        conflicting, network__cluster=context.cluster, workload__kind=kind
    )
    ids = sorted(set(rows.values_list("workload_id", flat=True)))
    workloads = Workload.objects.select_related("network").in_bulk(ids)
    by_name: dict[str, list[Workload]] = {}
    for pk in ids:
        by_name.setdefault(str(workloads[pk]), []).append(workloads[pk])
    duplicates_by_id = dict(
        ingest.find_together(
            context,
            handler_kind,
            ids,
            lambda batch: duplicates.of_workloads(batch).items(),
            name=lambda pk: str(workloads[pk]),
        )
    )
    yield from ingest.find_each(
        context,
        handler_kind,
        by_name,
        lambda name: _finding(
            name, [(row, duplicates_by_id.get(row.pk, ())) for row in by_name[name]]
        ),
    )


def _finding(
    name: str, workloads: Sequence[tuple[Workload, Sequence[Duplicate]]]
) -> Iterator[ReconcileFinding]:
    kind = WorkloadKind(workloads[0][0].kind)
    parts = [
        text
        for workload, workload_duplicates in workloads
        for text in (
            f"on the network {workload.network.name}:",
            *(
                duplicates.describe(duplicate)
                for duplicate in workload_duplicates
                if not duplicate.note
            ),
        )
    ]
    label = "template of the VM" if kind == WorkloadKind.TEMPLATE else kind.label
    message = f"The {label} {name} has duplicates {' '.join(parts)}"
    yield ReconcileFinding(DUPLICATE, name, message[:990], Severity.ERROR)


class _Attached(Handler):
    """Handler of a kind of objects whose attachments to networks are workloads."""

    changes: str  # name of the changed objects in WorkloadChanges
    workload_kind: WorkloadKind
    projection: Manifest

    def project(self, manifest: Manifest) -> Manifest:
        return vm_objects.project(manifest, self.projection)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        self.update(context, parsed_objects)

    def update(
        self, context: SyncContext, parsed_objects: Sequence[ParsedObject]
    ) -> running.ClusterNetworks:
        """Update the workloads of the objects, and record their problems."""
        changes: dict[str, Any] = {
            self.changes: {observed.row.uid: observed.parsed for observed in parsed_objects}
        }
        networks = running.update_workloads(context.cluster.pk, WorkloadChanges(**changes))
        for observed in parsed_objects:
            observed.row.problem_code, observed.row.problem = running.summarize_problems(
                observed.parsed.problems
            )
        return networks

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        running.update_workloads(context.cluster.pk, WorkloadChanges(deleted=rows))

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from duplicate_findings(context, self.kind, self.workload_kind)


class VirtualMachines(_Attached):
    """VirtualMachines; they distinguish a stopped VM from one that does not exist, and have MAC addresses."""

    kind = resources.VM.kind
    resources: Sequence[Resource] = (resources.VM,)
    changes, workload_kind, projection = "machines", WorkloadKind.TEMPLATE, vm_objects.MACHINE

    def parse(self, manifest: Manifest) -> Machine:
        return attachments.parse_machine(manifest)


class VirtualMachineInstances(_Attached):
    """VirtualMachineInstances: the running VMs."""

    kind = resources.VMI.kind
    resources: Sequence[Resource] = (resources.VMI,)
    changes, workload_kind, projection = "instances", WorkloadKind.VMI, vm_objects.INSTANCE

    def parse(self, manifest: Manifest) -> Instance:
        return attachments.parse_instance(manifest)


class Pods(_Attached):
    """Launcher pods of VMs, and other pods that are attached to a network."""

    kind = resources.POD.kind
    resources: Sequence[Resource] = (resources.POD,)
    changes, workload_kind, projection = "pods", WorkloadKind.POD, vm_objects.POD

    def is_relevant(self, manifest: Manifest) -> bool:
        return attachments.is_attached(manifest)

    def parse(self, manifest: Manifest) -> Pod:
        return attachments.parse_pod(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        """Ingest pods; a pod on a network that is not known yet stays pending and is ingested again."""
        networks = self.update(context, parsed_objects)
        for observed in parsed_objects:
            pod: Pod = observed.parsed
            observed.row.pending = not pod.over and networks.lacks(pod)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from super().findings(context)
        yield from _ignored_requests(context)


IGNORED = "requested_addresses_ignored"


def _ignored_requests(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Report pods that asked for addresses or a MAC and got others; after a watch event, as the last full sync did."""
    if context.from_watch:
        for row in Finding.objects.filter(cluster=context.cluster, kind=Pods.kind, code=IGNORED):
            yield ReconcileFinding(
                row.code, row.subject, row.message, Severity(row.severity), row.details
            )
        return
    annotated = ObservedObject.objects.filter(
        cluster=context.cluster,
        kind=Pods.kind,
        missed_at=None,
        manifest__metadata__annotations__has_keys=[DEFAULT_NETWORK, attachments.POD_NETWORKS],
    ).order_by("namespace", "name")
    pods = annotated.values_list("namespace", "name", "manifest__metadata__annotations")
    yield from ingest.find_each(
        context, Pods.kind, pods.iterator(), _ignored_request, name=lambda pod: f"{pod[0]}/{pod[1]}"
    )


def _ignored_request(pod: tuple[str, str, dict[str, Any]]) -> Iterator[ReconcileFinding]:
    namespace, name, texts = pod
    ignored = ignored_request(texts, texts[attachments.POD_NETWORKS])
    if ignored is None:
        return
    requested, got = (", ".join(addresses) for addresses in ignored)
    message = (
        f"The pod {namespace}/{name} asked for {requested} and got {got}: OVN-Kubernetes ignores requests for"
        " addresses and MACs unless it runs with enable-preconfigured-udn-addresses."
    )
    details = {"requested": ignored[0], "got": ignored[1]}
    yield ReconcileFinding(IGNORED, f"{namespace}/{name}", message, details=details)
