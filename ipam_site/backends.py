"""What users may do beside their own permissions and those of their groups."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import backends
from django.db.models import Model

from claims.access import cluster_owners


class ClusterOwners(backends.BaseBackend):
    """VM owners whom a cluster makes have the permissions of the role; nobody signs in with it."""

    def get_group_permissions(self, user_obj: Any, obj: Model | None = None) -> set[str]:
        return set() if obj is not None else set(cluster_owners.rights(user_obj))

    def has_perm(self, user_obj: Any, perm: str, obj: Model | None = None) -> bool:
        """As Django's own, which gathers all permissions anew for each question: a page asks dozens."""
        return obj is None and perm in cluster_owners.rights(user_obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return any(name.startswith(f"{app_label}.") for name in cluster_owners.rights(user_obj))
