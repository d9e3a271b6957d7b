"""Memberships: VM owners of namespaces of a cluster.

VM owners have the permissions of the group `vm-owner`. A user joins that group with the first
membership and leaves it with the last. A group of users with a membership is given the permissions
itself, so that they apply to later members too. VM owners from clusters are not stored in these tables
(claims/access/cluster_owners.py).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError

from claims.access import cluster_owners
from claims.access.namespaces import EVERY_NAMESPACE
from claims.models import Membership
from pools.core import errors, holders
from pools.models import Cluster
from pools.platform import database, events

MAX_NAMESPACES = 1000  # of one membership
MAX_GROUP_LENGTH = 150
OWNERS = cluster_owners.OWNERS


def parse_namespaces(value: object, field: str) -> list[str]:
    """Return the namespaces, sorted.

    The list must not be empty, and a namespace may occur only once. Raises InvalidInput wrong_type, required, too_long, k8s_name, duplicate_key.
    """
    if not isinstance(value, list):
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of namespaces is expected", value
        )
    if not value:
        raise errors.InvalidInput.for_field(field, "required", "at least one namespace is required")
    if len(value) > MAX_NAMESPACES:
        raise errors.InvalidInput.for_field(
            field, "too_long", f"may have at most {MAX_NAMESPACES} namespaces"
        )
    namespaces: list[str] = []
    for index, raw_name in enumerate(value):
        path = f"{field}.{index}"
        name = holders.parse_label(raw_name, field=path)
        if name in namespaces:
            raise errors.InvalidInput.for_field(path, "duplicate_key", "occurs twice", name)
        namespaces.append(name)
    return sorted(namespaces)


def create(
    cluster: Cluster,
    namespaces: Iterable[str],
    *,
    author: events.Author,
    user: Any = None,
    group: str = "",
) -> Membership:
    """Make a user, or all users of a group, VM owner; a group that does not exist is created.

    Raises AlreadyExists for a second membership in a cluster; InvalidInput `required` unless exactly
    one of `user` and `group` is set.
    """
    if (user is None) == (not group):
        raise errors.InvalidInput.for_field("user", "required", "select either a user or a group")
    with events.recorded_by(author):
        group_row = Group.objects.get_or_create(name=group)[0] if group else None
        membership = Membership(
            user=user, group=group_row, cluster=cluster, namespaces=list(namespaces)
        )
        _save(membership)
        if group_row is None:
            add_to_role(user)
        else:
            _change_permissions(group_row, grant=True)
            # Users who join the group later get the flag from the administrator who adds them.
            group_row.user_set.filter(is_staff=False).update(is_staff=True)
    return membership


def change(
    membership: Membership,
    namespaces: Iterable[str],
    *,
    author: events.Author,
    version: database.Version = None,
) -> Membership:
    """Replace the namespaces of a membership. Raises NotFound, VersionMismatch."""
    with events.recorded_by(author):
        rows = Membership.objects.select_for_update(of=("self",))
        locked = rows.filter(pk=membership.pk).first()
        if locked is None:
            raise errors.NotFound("There is no such object.")
        database.require_version(locked, version)
        membership.namespaces = list(namespaces)
        _save(membership)
    return membership


def delete(membership: Membership, *, author: events.Author) -> None:
    """Delete a membership; with the last one, revoke the permissions of the role."""
    with events.recorded_by(author):
        user, group = membership.user, membership.group
        if user is not None:  # before what belongs to it, as its deletion and its form
            list(User.objects.filter(pk=user.pk).select_for_update(no_key=True))
        membership.delete()
        if user is not None and not Membership.objects.filter(user=user).exists():
            _remove_from_role(user)
        if group is not None and not Membership.objects.filter(group=group).exists():
            _change_permissions(group, grant=False)


def set_namespaces(
    user: User, namespaces: Mapping[Cluster, Iterable[str]], *, author: events.Author
) -> None:
    """Make a user VM owner of exactly these namespaces, by cluster, beside those of groups and RoleBindings."""
    with events.recorded_by(author):
        desired = {cluster: sorted({*names}) for cluster, names in namespaces.items() if names}
        for membership in Membership.objects.filter(user=user).select_related("cluster", "user"):
            names = desired.pop(membership.cluster, None)
            if names is None:
                delete(membership, author=author)
            elif membership.namespaces != names:
                change(membership, names, author=author)
        for cluster, names in desired.items():
            create(cluster, names, user=user, author=author)


def owns_every_namespace(user: Any) -> bool:
    """Return True if no membership would give the user anything."""
    rows = Permission.objects.filter(group__name=OWNERS).select_related("content_type")
    names = [f"{row.content_type.app_label}.{row.codename}" for row in rows]
    return bool(user.has_perms([EVERY_NAMESPACE, *names]))


def _save(membership: Membership) -> None:
    same = {"user": membership.user, "group": membership.group, "cluster": membership.cluster}
    already_exists = errors.AlreadyExists(
        f"{membership.user or membership.group} is already a VM owner in this cluster: change the"
        " namespaces of that membership."
    )
    if Membership.objects.filter(**same).exclude(pk=membership.pk).exists():
        raise already_exists
    try:
        database.save(membership)
    except IntegrityError as error:  # a concurrent request
        raise already_exists from error


def add_to_role(user: User) -> None:
    user.groups.add(Group.objects.get_or_create(name=OWNERS)[0])
    if not user.is_staff:
        user.is_staff = True  # required for the admin site
        user.save(update_fields=["is_staff"])


def _remove_from_role(user: User) -> None:
    user.groups.remove(*Group.objects.filter(name=OWNERS))
    has_permissions = user.is_superuser or user.groups.exists() or user.user_permissions.exists()
    if user.is_staff and not has_permissions:
        user.is_staff = False
        user.save(update_fields=["is_staff"])


def _change_permissions(group: Group, *, grant: bool) -> None:
    """Give the permissions of the role to a group, or take them away; not for a role of the site itself."""
    if not _is_role(group):
        change_rows = group.permissions.add if grant else group.permissions.remove
        change_rows(*Permission.objects.filter(group__name=OWNERS))


def _is_role(group: Group) -> bool:
    """Return True for a role of the site itself, whose permissions no membership changes."""
    codename = EVERY_NAMESPACE.partition(".")[2]
    return group.name == OWNERS or group.permissions.filter(codename=codename).exists()
