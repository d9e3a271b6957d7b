"""Controllers of a cluster that write what a managed resource writes, too, and whether they run.

A Lease with a holder says that the controller runs, one without a holder that it was stopped. Without a Lease,
or without the right to read it, objects tell what the controller has written (rule `unknown-is-not-absent`:
nothing is concluded from what cannot be read).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import sync_runs
from pools.clusters.reconcile.handler import Handler, ReconcileFinding, SyncContext
from pools.core import errors, redaction
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Connection, ManagedResource, ObservedObject, Severity
from pools.platform.outbound import faults

FOUND = "other_writer"  # code of the finding and of the refusal
CADASTRE = "Cadastre"
log = logging.getLogger(__name__)
_MOST = 100  # stored objects of a kind, the last changed ones, that are searched for traces
# Objects of a kind; None if they are not known.
Reader = Callable[[Resource], Iterable[Manifest] | None]


class OtherWriterRuns(errors.Conflict):
    """Another controller of the cluster writes the same. Confirm that both may write."""

    code = FOUND


@dataclass(frozen=True)
class Trace:
    """Objects that show that the controller has written; `text` says of one object what they show.

    A `live_only` trace needs fields that are not stored.
    """

    resource: Resource
    shows: Callable[[Manifest], bool]
    text: str
    live_only: bool = False


@dataclass(frozen=True)
class OtherWriter:
    """A controller that writes what a managed resource writes; `consequence` is that of both writing."""

    managed_resource: ManagedResource
    controller: str
    lease: Resource
    traces: Sequence[Trace]
    consequence: str


@dataclass(frozen=True)
class WriterReport:
    """Whether a controller runs: the `evidence` ("" for none), or why that is `unknown` ("" if it is known)."""

    writer: OtherWriter
    evidence: str = ""
    unknown: str = ""

    @property
    def sentence(self) -> str:
        """What is wrong if Cadastre writes, too; "" if nothing is."""
        name, resource = self.writer.controller, self.writer.managed_resource
        if self.evidence:
            return (
                f"{name} writes what {resource} writes ({self.evidence}). {self.writer.consequence}"
            )
        if self.unknown:
            return f"It is not known whether {name} writes what {resource} writes: {self.unknown}."
        return ""


WRITERS: list[OtherWriter] = []  # filled by pools.extension


class Leases(Handler):
    """The Lease of a controller, which renews it each few seconds: it is not watched.

    Who holds it is read by each full sync run, and once a minute while Cadastre writes the same.
    """

    watched = False
    problems_are_findings = True

    def __init__(self, writer: OtherWriter) -> None:
        self.kind = writer.lease.kind
        self.resources: Sequence[Resource] = (writer.lease,)
        self._managed_resource = writer.managed_resource

    def is_polled(self, connection: Connection) -> bool:
        return connection.manages(self._managed_resource)

    def project(self, manifest: Manifest) -> Manifest:
        """Return identity and holder; the version is the holder, because a Lease is renewed each few seconds."""
        metadata = manifest.get("metadata") or {}
        kept = {key: metadata[key] for key in ("namespace", "name", "uid") if key in metadata}
        holder = lease_holder(manifest)
        version = "".join(holder.split())[:64] or "none"
        return {
            "metadata": kept | {"resourceVersion": version},
            "spec": {"holderIdentity": holder},
        }

    def parse(self, manifest: Manifest) -> str:
        return lease_holder(manifest)


def lease_holder(manifest: Manifest) -> str:
    """Return who holds a Lease, without secrets; "" for nobody."""
    spec = manifest.get("spec")
    holder: Any = spec.get("holderIdentity") if isinstance(spec, dict) else None
    return redaction.redact(holder) if isinstance(holder, str) else ""


def report(writer: OtherWriter, read: Reader, *, live: bool) -> WriterReport:
    """Return whether the controller runs, by its Lease, else by what it has written."""
    leases = read(writer.lease)
    for manifest in leases or ():
        if holder := lease_holder(manifest):
            name = f"{manifest['metadata'].get('namespace', '')}/{writer.lease.only_named}"
            return WriterReport(writer, f"the Lease {name} is held by {holder[:100]}")
    if leases:
        return WriterReport(writer)  # it was stopped
    is_known = leases is not None
    for trace in writer.traces:
        if trace.live_only and not live:
            continue
        objects = read(trace.resource)
        is_known = is_known and objects is not None
        for manifest in objects or ():
            if trace.shows(manifest):
                name = manifest["metadata"].get("name", "")
                return WriterReport(writer, trace.text.format(name=name))
    unknown = "" if is_known else f"the Lease {writer.lease.only_named} cannot be read"
    return WriterReport(writer, unknown=unknown)


def live_reader(client: ClusterClient) -> Reader:
    """Return a reader of what the cluster has now."""

    def read(resource: Resource) -> Iterable[Manifest] | None:
        try:
            return client.list(resource).items if client.served([resource]) else []
        except faults.ClusterFault:
            return None

    return read


def stored_reader(connection: Connection, listed: Iterable[str] = ()) -> Reader:
    """Return a reader of what the last full sync run has observed, and what was observed since.

    `listed` are kinds that a sync run in progress has listed: the first one has none before it.
    """
    complete = {*sync_runs.complete_kinds(connection.cluster_id), *listed}

    def read(resource: Resource) -> Iterable[Manifest] | None:
        rows = ObservedObject.objects.filter(
            cluster=connection.cluster_id, kind=resource.kind, missed_at=None
        )
        if resource.kind not in complete:
            return None
        return list(rows.order_by("-changed_at").values_list("manifest", flat=True)[:_MOST])

    return read


def live_reports(client: ClusterClient, managed_resources: Iterable[str]) -> list[WriterReport]:
    """Return whether other controllers write what these managed resources write, as the cluster says now."""
    names, read = set(managed_resources), live_reader(client)
    return [
        report(writer, read, live=True) for writer in WRITERS if writer.managed_resource in names
    ]


def stored_reports(
    connection: Connection, managed_resources: Iterable[str], listed: Iterable[str] = ()
) -> list[WriterReport]:
    """Return the same as last observed."""
    names, read = set(managed_resources), stored_reader(connection, listed)
    return [
        report(writer, read, live=False) for writer in WRITERS if writer.managed_resource in names
    ]


def require_confirmation(
    open_client: Callable[[], ClusterClient], managed_resources: Iterable[str]
) -> None:
    """Raise OtherWriterRuns if another controller writes what one of these resources writes.

    If the cluster does not answer, nothing is concluded: sync runs report who else writes, too.
    """
    names = {writer.managed_resource for writer in WRITERS} & set(managed_resources)
    if not names:
        return
    try:
        with open_client() as client:
            running = [each for each in live_reports(client, names) if each.evidence]
    except errors.IpamError as error:
        log.info("it is not known who else writes %s: %s", ", ".join(sorted(names)), error.message)
        return
    if running:
        texts = " ".join(each.sentence for each in running)
        raise OtherWriterRuns(f"{texts} Confirm with confirm_other_writer if both are to write.")


def findings(context: SyncContext, managed_resource: ManagedResource) -> Iterator[ReconcileFinding]:
    """Yield a finding if Cadastre and another controller write the same in the cluster."""
    if not context.connection.manages(managed_resource):
        return
    for each in stored_reports(context.connection, [managed_resource], context.complete):
        if each.evidence:
            details = {
                "managed_resource": str(managed_resource),
                "controller": each.writer.controller,
                "evidence": each.evidence,
            }
            message = f"Cadastre is not the only one: {each.sentence}"
            yield ReconcileFinding(FOUND, str(managed_resource), message, Severity.ERROR, details)


@dataclass(frozen=True)
class ResourceWriters:
    """Who writes what a managed resource is about; `note` is the evidence, or what is not known."""

    managed_resource: str
    writers: list[str]
    note: str


def writers_of(connection: Connection) -> list[ResourceWriters]:
    """Return who writes each of the resources that Cadastre could write, as last observed."""
    by_resource = {
        each.writer.managed_resource: each
        for each in stored_reports(connection, ManagedResource.values)
    }
    rows = []
    for resource in ManagedResource:
        each = by_resource.get(resource)
        writers = [CADASTRE] if connection.manages(resource) and not connection.paused else []
        if each is not None and each.evidence:
            writers.append(each.writer.controller)
        note = (each.evidence or each.unknown) if each is not None else ""
        rows.append(ResourceWriters(resource.value, writers, note))
    return rows
