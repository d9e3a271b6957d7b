"""RoleBindings, and the groups of OpenShift: whom a cluster makes VM owners of its namespaces.

Both are only read, and only where NADs are served. What is wanted is one table for each cluster, made
anew of all that was seen: a binding that one complete list lacks makes nobody an owner any more. Where
we may not read them, what was known stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from claims.access import cluster_owners
from claims.core import resources, role_bindings
from claims.core.workloads import projection
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import Handler, SyncContext, Write
from pools.core.kubernetes.resources import Resource


class RoleBindings(Handler):
    """Those of the roles that make VM owners."""

    kind = resources.ROLE_BINDING.kind
    resources: Sequence[Resource] = (resources.ROLE_BINDING,)

    def is_relevant(self, manifest: Manifest) -> bool:
        return role_bindings.counts(manifest, cluster_owners.roles())

    def project(self, manifest: Manifest) -> Manifest:
        return projection.role_binding(manifest)

    def parse(self, manifest: Manifest) -> Any:
        return role_bindings.binding(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.holding():
            cluster_owners.follow_bindings(context.connection, self.kind)
        return ()


class Groups(Handler):
    """Groups of user.openshift.io; those that a binding names have members here."""

    kind = resources.GROUP.kind
    follows = (resources.ROLE_BINDING.kind,)
    resources: Sequence[Resource] = (resources.GROUP,)

    def project(self, manifest: Manifest) -> Manifest:
        return projection.group(manifest)

    def parse(self, manifest: Manifest) -> Any:
        return role_bindings.members(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.holding():
            cluster_owners.follow_groups(context.connection, self.kind)
        return ()
