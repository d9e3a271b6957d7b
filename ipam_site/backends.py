"""Sign-in with a password of this site, and permissions in addition to those of users and their groups."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import backends
from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Model, OuterRef
from django.http import HttpRequest

from claims.access import cluster_owners
from pools.models import DirectoryAccount


class Accounts(backends.ModelBackend):
    """Django's accounts, of which those of a directory sign in there, and never with a password of this site."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> Any:
        user = super().authenticate(request, username, password, **kwargs)
        if user is not None and DirectoryAccount.objects.filter(user_id=user.pk).exists():
            return None
        return user

    def get_user(self, user_id: int) -> User | None:
        """Return the user of a session with preferences and what decides on its second factor, in one query."""
        factors = Authenticator.objects.filter(user_id=OuterRef("pk")).values("pk")
        users = User.objects.select_related("directory_account", "preferences")
        user = users.annotate(authenticator_ids=ArraySubquery(factors)).filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


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
