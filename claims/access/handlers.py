"""Handlers of RoleBindings and of OpenShift's groups, which define VM owners of a cluster's namespaces.

Both kinds are only read, and only in clusters that serve NADs. The rows of a cluster are computed from
all observed objects: a binding that is missing in one complete list grants nothing any more. If
Cadastre may not read the objects, the rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from claims.access import cluster_owners
from claims.core import resources, role_bindings
from claims.core.workloads import vm_objects
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import Handler, SyncContext, Write
from pools.core.kubernetes.resources import Manifest, Resource


class RoleBindings(Handler):
    """RoleBindings to roles that make VM owners."""

    kind = resources.ROLE_BINDING.kind
    resources: Sequence[Resource] = (resources.ROLE_BINDING,)

    def is_relevant(self, manifest: Manifest) -> bool:
        return role_bindings.grants_role(manifest, cluster_owners.roles())

    def project(self, manifest: Manifest) -> Manifest:
        return vm_objects.project(manifest, vm_objects.ROLE_BINDING)

    def parse(self, manifest: Manifest) -> Any:
        return role_bindings.parse_binding(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.transaction():
            for owner, error in cluster_owners.follow_bindings(context.connection, self.kind):
                name = f"{owner.namespace}/{owner.binding}"
                ingest.record_failure(context, self.kind, name, error)
        return ()


class Groups(Handler):
    """Groups of user.openshift.io; members are stored for groups that a RoleBinding names."""

    kind = resources.GROUP.kind
    follows = (resources.ROLE_BINDING.kind,)
    resources: Sequence[Resource] = (resources.GROUP,)

    def project(self, manifest: Manifest) -> Manifest:
        return vm_objects.project(manifest, vm_objects.GROUP)

    def parse(self, manifest: Manifest) -> Any:
        return role_bindings.parse_group(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.transaction():
            cluster_owners.follow_groups(context.connection, self.kind)
        return ()
