"""Permissions of users in addition to their own and those of their groups."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import backends
from django.db.models import Model

from claims.access import cluster_owners


class ClusterOwners(backends.BaseBackend):
    """Grants VM owners by RoleBindings of clusters their permissions; it authenticates nobody."""

    def get_group_permissions(self, user_obj: Any, obj: Model | None = None) -> set[str]:
        return set() if obj is not None else set(cluster_owners.rights(user_obj))

    def has_perm(self, user_obj: Any, perm: str, obj: Model | None = None) -> bool:
        """Return True if the user has the permission.

        Django's own method collects all permissions for each call, and a page makes dozens.
        """
        return obj is None and perm in cluster_owners.rights(user_obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return any(name.startswith(f"{app_label}.") for name in cluster_owners.rights(user_obj))
