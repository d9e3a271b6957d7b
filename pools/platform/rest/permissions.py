"""Roles are Django permissions; each endpoint names the one that a method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import permissions

if TYPE_CHECKING:
    from rest_framework.request import Request


class HasPermission(permissions.BasePermission):
    """The user has the permissions that the view's `needs` names for the method.

    A method that is not named needs a login only (405 follows, or OPTIONS answers).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not user or not user.is_authenticated:
            return False
        needed = view.needs.get("GET" if request.method == "HEAD" else request.method, ())
        return all(user.has_perm(name) for name in needed)
