"""Permissions of endpoints: roles are Django permissions, and each endpoint names those of its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import permissions

if TYPE_CHECKING:
    from rest_framework.request import Request


class HasPermission(permissions.BasePermission):
    """The user has the permissions that `needs` of the view lists for the method.

    A method that is not listed needs only a login (405 follows, or OPTIONS answers).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not user or not user.is_authenticated:
            return False
        needed = view.needs.get("GET" if request.method == "HEAD" else request.method, ())
        return all(user.has_perm(name) for name in needed)
