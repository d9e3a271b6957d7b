"""Memberships: who is a VM owner in which namespaces of a cluster.

What an owner may do with what they see are the permissions of the group `vm-owner`. A user joins
that group with the first membership and leaves it with the last; a group of users gets its
permissions itself, so that whoever joins the group has them too. Whom a cluster makes a VM owner is
written nowhere of this: claims/access/cluster_owners.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError

from claims.access import cluster_owners
from claims.access.namespaces import EVERY_NAMESPACE
from claims.models import Membership
from pools.core import errors, holders
from pools.models import Cluster
from pools.platform import database, events

MOST = 1000  # namespaces of one membership
LONGEST_GROUP = 150
OWNERS = cluster_owners.OWNERS


def parse_namespaces(value: object, field: str) -> list[str]:
    """At least one namespace, each once, sorted.

    Raises InvalidInput wrong_type, required, too_long, k8s_name, duplicate_key.
    """
    if not isinstance(value, list):
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of namespaces is expected", value
        )
    if not value:
        raise errors.InvalidInput.for_field(field, "required", "name a namespace")
    if len(value) > MOST:
        raise errors.InvalidInput.for_field(
            field, "too_long", f"may have at most {MOST} namespaces"
        )
    namespaces: list[str] = []
    for index, raw_name in enumerate(value):
        path = f"{field}.{index}"
        name = holders.parse_name(raw_name, field=path, kind="label")
        if name in namespaces:
            raise errors.InvalidInput.for_field(path, "duplicate_key", "is named twice", name)
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
    """A user, or all users of a group (made if there is none of that name), becomes VM owner.

    Raises AlreadyExists for a second membership in a cluster; InvalidInput `required` unless one of
    user and group is given.
    """
    if (user is None) == (not group):
        raise errors.InvalidInput.for_field("user", "required", "name a user or a group")
    with events.recorded(author):
        group_row = Group.objects.get_or_create(name=group)[0] if group else None
        membership = Membership(
            user=user, group=group_row, cluster=cluster, namespaces=list(namespaces)
        )
        _save(membership)
        if group_row is None:
            _let_in(user)
        else:
            _give_rights(group_row)
            # Whoever joins later gets the flag from whoever lets them in.
            group_row.user_set.filter(is_staff=False).update(is_staff=True)
    return membership


def change(
    membership: Membership, namespaces: Iterable[str], *, author: events.Author
) -> Membership:
    """Other namespaces."""
    with events.recorded(author):
        membership.namespaces = list(namespaces)
        _save(membership)
    return membership


def delete(membership: Membership, *, author: events.Author) -> None:
    """They see the namespaces no more; with the last membership the role's rights go."""
    with events.recorded(author):
        user, group = membership.user, membership.group
        membership.delete()
        if user is not None and not Membership.objects.filter(user=user).exists():
            _let_out(user)
        if group is not None and not Membership.objects.filter(group=group).exists():
            _take_rights(group)


def _save(membership: Membership) -> None:
    same = {"user": membership.user, "group": membership.group, "cluster": membership.cluster}
    words = "is a VM owner in this cluster already: change the namespaces of that membership"
    twice = errors.AlreadyExists(f"{membership.user or membership.group} {words}.")
    if Membership.objects.filter(**same).exclude(pk=membership.pk).exists():
        raise twice
    try:
        database.save(membership)
    except IntegrityError as error:  # two at the same time
        raise twice from error


def _let_in(user: User) -> None:
    user.groups.add(Group.objects.get_or_create(name=OWNERS)[0])
    if not user.is_staff:
        user.is_staff = True  # who may open the admin site at all
        user.save(update_fields=["is_staff"])


def _let_out(user: User) -> None:
    user.groups.remove(*Group.objects.filter(name=OWNERS))
    others = user.is_superuser or user.groups.exists() or user.user_permissions.exists()
    if user.is_staff and not others:
        user.is_staff = False
        user.save(update_fields=["is_staff"])


def _rights() -> list[Permission]:
    return list(Permission.objects.filter(group__name=OWNERS))


def _give_rights(group: Group) -> None:
    if not _is_role(group):
        group.permissions.add(*_rights())


def _take_rights(group: Group) -> None:
    if not _is_role(group):
        group.permissions.remove(*_rights())


def _is_role(group: Group) -> bool:
    """Whether the site's own roles are meant, whose rights no membership changes."""
    codename = EVERY_NAMESPACE.partition(".")[2]
    return group.name == OWNERS or group.permissions.filter(codename=codename).exists()
