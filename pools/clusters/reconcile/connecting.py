"""Access to a registered cluster: its credentials, its client, the check of its identity, and the kinds it serves."""

import os
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import IntegrityError, transaction

from pools.clusters.client import kubeconfig
from pools.clusters.client.api_client import ClusterClient, Discovery
from pools.clusters.reconcile import apply, watchers
from pools.clusters.reconcile.handler import Handler, ReconcileFinding, SyncContext
from pools.clusters.reconcile.sync_runs import KindCounts
from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import Connection, ManagedResource, ObservedObject
from pools.platform.outbound import faults, secrets
from pools.platform.outbound.credentials import Access

OpenClient = Callable[[Connection], ClusterClient]


class IdentityChanged(faults.ClusterFault):
    """Another cluster than the registered one answers at this address; nothing was changed."""

    code = "identity_changed"


def secret_owner(cluster_id: int) -> str:
    """Return the owner to which the sealed credentials of a cluster are bound."""
    return f"cluster:{cluster_id}"


def cluster_access(connection: Connection) -> Access:
    """Return the address and the credentials of a cluster. Raises SecretUnreadable."""
    if connection.in_cluster:
        return kubeconfig.service_account_access(os.environ)
    ring = secrets.key_ring()
    return Access.load(ring.open(connection.sealed, owner=secret_owner(connection.cluster_id)))


def client_for(connection: Connection) -> ClusterClient:
    """Return a client of the cluster's API server."""
    return ClusterClient(
        cluster_access(connection),
        cluster=connection.cluster.name,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_CLUSTERS,
    )


def verify_identity(connection: Connection, client: ClusterClient) -> str:
    """Return the uid of kube-system. Raises IdentityChanged if it is not the registered one."""
    identity = client.identity()
    if connection.identity and identity != connection.identity:
        raise IdentityChanged(
            f"Another cluster than the registered one answers at {connection.server}."
        )
    return identity


def store_identity(connection: Connection, identity: str) -> None:
    """Store the identity of the cluster at the first contact. Raises SameCluster."""
    try:
        with transaction.atomic():
            Connection.objects.filter(pk=connection.pk, identity="").update(identity=identity)
    except IntegrityError as error:
        # Not under which name: the message is stored, and read by tokens that may not know the other cluster.
        raise errors.SameCluster(
            "This cluster is registered under another name, which a test of the connection shows."
        ) from error
    connection.identity = identity


# An absent kind is a fault only if a managed resource writes it. If objects of it were observed before, it
# is a finding: nothing is concluded from the absence, and nothing is released.
NOT_SERVED = "kind_not_served"


def store_served_kinds(
    context: SyncContext, handlers: Sequence[Handler], discovery: Discovery
) -> None:
    """Store which of the kinds of other projects are served; an absent kind is no longer watched."""
    unknown = {resource.kind for resource in discovery.faults}
    before = context.connection.served or {}
    served = {
        handler.kind: _served_version(handler, discovery)
        for handler in handlers
        # Kinds whose API group failed are unchanged; those that every cluster serves say nothing.
        if handler.kind not in unknown and not handler.resources[0].everywhere
    } | {kind: read for kind, read in before.items() if kind in unknown}
    if context.dry_run or served == context.connection.served:
        return
    absent = sorted(kind for kind, read in served.items() if not read["api_version"])
    with context.transaction():
        watchers.drop(context.connection.pk, absent)
        Connection.objects.filter(pk=context.connection.pk).update(served=served)
    context.connection.served = served


def _served_version(handler: Handler, discovery: Discovery) -> dict[str, str]:
    """Return the apiVersion that is read ("" if the kind is absent), and the data that it shows."""
    versions = (
        resource.api_version for resource in handler.resources if resource in discovery.served
    )
    shows = handler.resources[0].shows or handler.kind
    return {"api_version": next(versions, ""), "shows": shows}


def record_absent_kind(
    context: SyncContext, handler: Handler, discovery: Discovery, counts: KindCounts
) -> None:
    """Record an absent kind in its counts. Raises the fault of its API group if the group failed."""
    for resource in handler.resources:
        if fault := discovery.faults.get(resource):
            raise fault
    counts.not_served = True
    names = [handler.kind]
    names += [
        resource.only_with.kind for resource in handler.resources if resource.only_with is not None
    ]
    kinds = " or ".join(dict.fromkeys(names))
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=handler.kind)
    findings = []
    if number := rows.count():
        counts.code = faults.KindNotServed.code
        counts.message = (
            f"The cluster no longer serves {kinds}. The observed objects stay "
            f"({number} object{'s' * (number > 1)}), and nothing is released."
        )
        findings.append(ReconcileFinding(NOT_SERVED, handler.kind, counts.message))
    if managed_resources := resources.resources_writing(
        handler.kind, context.connection.managed_resources
    ):
        counts.not_served = False
        counts.code, counts.message = (
            faults.KindNotServed.code,
            missing_kind_message(handler.kind, managed_resources),
        )
    if not context.dry_run:
        with context.transaction():
            apply.store_findings(context.cluster.pk, handler.kind, findings, add=bool(findings))


def missing_kind_message(kind: str, managed_resources: Sequence[str]) -> str:
    """Return the message that managed resources require a kind that the cluster does not serve."""
    switches = " and ".join(
        f'"{managed_resource}" ({ManagedResource(managed_resource).label})'
        for managed_resource in managed_resources
    )
    verb, pronoun = ("are", "them") if len(managed_resources) > 1 else ("is", "it")
    return (
        f"The cluster does not serve {kind}, but {switches} {verb} switched on: install the CRD of "
        f"{kind}, or switch {pronoun} off."
    )
