"""VM owners from clusters: users and groups in RoleBindings to the roles in IPAM_VM_OWNER_ROLES.

Beside it: handlers of RoleBindings and of OpenShift's groups, which define VM owners of a cluster's
namespaces.

A connected cluster defines VM owners of its own namespaces. They get no other role, and nothing is
written to users and groups here. Permissions are computed for each request, so that they begin and end
with the binding, in whatever order users, groups and bindings are created.

Both kinds are only read, and only in clusters that serve NADs. The rows of a cluster are computed from
all observed objects: a binding that is missing in one complete list grants nothing any more. If
Cadastre may not read the objects, the rows stay as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from claims.core import directory_groups, resources
from claims.core.workloads import vm_objects
from claims.models import ClusterGroupMember, ClusterOwner
from claims.models.cluster_owners import Role, SubjectKind
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import Handler, SyncContext, Write
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Connection, Now, ObservedObject
from pools.platform import database

Row = TypeVar("Row", ClusterOwner, ClusterGroupMember)
OWNERS = str(Role.VM_OWNER)  # the group with the permissions of the role has the role's name


def roles() -> frozenset[str]:
    """Return the names of cluster roles that make VM owners; empty if clusters make none."""
    return frozenset(settings.IPAM_VM_OWNER_ROLES)


# The rows that make a user a VM owner: by user name, by a group here, or by a group of the cluster. Names
# are compared exactly. The group vm-owner is excluded, because it stands for the role itself.
OF_USER = f"""
    SELECT o.id FROM claims_clusterowner o
    WHERE o.role = ANY (%s::text[]) AND (
        o.subject_kind = '{SubjectKind.USER}' AND o.subject = %s::text
        OR o.subject_kind = '{SubjectKind.GROUP}' AND (
            o.subject IN (
                SELECT g.name FROM auth_group g JOIN auth_user_groups ug ON ug.group_id = g.id
                WHERE ug.user_id = %s::bigint AND g.name <> '{OWNERS}')
            OR EXISTS (
                SELECT FROM claims_clustergroupmember m
                WHERE m.connection_id = o.connection_id AND m."group" = o.subject
                    AND m.username = %s::text)))
"""  # noqa: S608  # constants of this module


def query_parameters(user: Any) -> list[object]:
    """Return the parameters of `OF_USER` for a user."""
    name = user.get_username()
    return [sorted(roles()), name, user.pk, name]


def of_user(user: Any) -> QuerySet[ClusterOwner]:
    """Return the rows that make the user a VM owner."""
    if not user.is_active:  # anonymous users are inactive
        return ClusterOwner.objects.none()
    return ClusterOwner.objects.filter(pk__in=RawSQL(OF_USER, query_parameters(user)))  # noqa: S611  # as above


def in_effect() -> QuerySet[ClusterOwner]:
    """Return the rows that make somebody a VM owner."""
    return ClusterOwner.objects.filter(role__in=roles())


def members_in_effect() -> QuerySet[ClusterGroupMember]:
    """Return the members of groups of clusters whom these rows make VM owners."""
    same = {"connection": OuterRef("connection"), "subject": OuterRef("group")}
    rows = in_effect().filter(subject_kind=SubjectKind.GROUP, **same)
    return ClusterGroupMember.objects.filter(Exists(rows))


def rights(user: Any) -> frozenset[str]:
    """Return the permissions (`app.codename`) that a user has as a VM owner from a cluster.

    The result is cached on the user object, which lives as long as the request.
    """
    permissions: frozenset[str] | None = getattr(user, "_cluster_owner_rights", None)
    if permissions is None:
        names = database.rows(_RIGHTS, [OWNERS, *query_parameters(user)]) if user.is_active else []
        permissions = frozenset(name for (name,) in names)
        limit = getattr(user, "usable_permissions", None)  # that of a token
        if limit is not None:
            permissions = frozenset(limit(permissions))
        user._cluster_owner_rights = permissions
    return permissions


_RIGHTS = f"""
    SELECT c.app_label || '.' || p.codename
    FROM auth_group g JOIN auth_group_permissions gp ON gp.group_id = g.id
    JOIN auth_permission p ON p.id = gp.permission_id
    JOIN django_content_type c ON c.id = p.content_type_id
    WHERE g.name = %s::text AND EXISTS ({OF_USER})
"""  # noqa: S608  # as above


# --- from the cluster -----------------------------------------------------------------------------


def follow_bindings(connection: Connection, kind: str) -> list[tuple[ClusterOwner, Exception]]:
    """Sync the VM owners of a cluster with its RoleBindings as last observed; return those that failed alone."""
    desired: dict[tuple[str, ...], ClusterOwner] = {}
    for uid, manifest in _observed_manifests(connection, kind):
        binding = directory_groups.parse_binding(manifest)
        for subject_kind, subject in binding.subjects if binding.role in roles() else ():
            desired[uid, subject_kind, subject] = ClusterOwner(
                connection=connection,
                uid=uid,
                binding=binding.name,
                namespace=binding.namespace,
                role=binding.role,
                subject_kind=subject_kind,
                subject=subject,
                since=Now(),
            )
    # A RoleBinding's role and name are immutable; a new binding has a new uid.
    rows = ClusterOwner.objects.filter(connection=connection)
    return _follow(rows, ("uid", "subject_kind", "subject"), desired)


def follow_groups(connection: Connection, kind: str) -> list[tuple[ClusterGroupMember, Exception]]:
    """Sync the members of the cluster's groups that a RoleBinding names; return those that failed alone."""
    group_owners = ClusterOwner.objects.filter(
        connection=connection, subject_kind=SubjectKind.GROUP
    )
    groups = sorted(set(group_owners.values_list("subject", flat=True)))
    desired: dict[tuple[str, ...], ClusterGroupMember] = {}
    for _, manifest in _observed_manifests(connection, kind, names=groups):
        members = directory_groups.parse_group(manifest)
        for user in members.users:
            desired[members.name, user] = ClusterGroupMember(
                connection=connection, group=members.name, username=user
            )
    rows = ClusterGroupMember.objects.filter(connection=connection)
    return _follow(rows, ("group", "username"), desired)


def _follow(
    rows: QuerySet[Row], keys: tuple[str, ...], desired: Mapping[tuple[str, ...], Row]
) -> list[tuple[Row, Exception]]:
    """Delete the rows whose key is not desired, create the missing ones, and return those that failed alone."""
    existing_ids = {tuple(key): pk for pk, *key in rows.values_list("pk", *keys)}
    rows.filter(pk__in=[pk for key, pk in existing_ids.items() if key not in desired]).delete()

    def create(batch: Sequence[Row]) -> None:
        rows.model._default_manager.bulk_create(batch)

    missing = [desired[key] for key in sorted(desired.keys() - existing_ids.keys())]
    return ingest.isolate_failures(missing, create)


def _observed_manifests(
    connection: Connection, kind: str, names: Iterable[str] | None = None
) -> Iterable[tuple[str, Any]]:
    """Return (uid, manifest) of the objects in the last complete list or in watch events since."""
    rows = ObservedObject.objects.filter(
        cluster=connection.cluster_id, kind=kind, missed_at=None, problem_code=""
    )
    if names is not None:
        rows = rows.filter(name__in=names)
    return rows.order_by("uid").values_list("uid", "manifest")


class RoleBindings(Handler):
    """RoleBindings to roles that make VM owners."""

    kind = resources.ROLE_BINDING.kind
    resources: Sequence[Resource] = (resources.ROLE_BINDING,)

    def is_relevant(self, manifest: Manifest) -> bool:
        binding = directory_groups.parse_binding(manifest)
        return binding.role in roles() and bool(binding.subjects)

    def project(self, manifest: Manifest) -> Manifest:
        return vm_objects.project(manifest, vm_objects.ROLE_BINDING)

    def parse(self, manifest: Manifest) -> Any:
        return directory_groups.parse_binding(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.transaction():
            for owner, error in follow_bindings(context.connection, self.kind):
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
        return directory_groups.parse_group(manifest)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        with context.transaction():
            for member, error in follow_groups(context.connection, self.kind):
                ingest.record_failure(context, self.kind, member.group, error)
        return ()
