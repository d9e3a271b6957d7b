"""The admin site: django-unfold's, with the pages that belong to no table."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from django.urls import URLPattern
from unfold import forms, sites

from claims.services import cluster_owners


class SignIn(forms.AuthenticationForm):
    """For staff, and for VM owners whom a cluster makes: no flag of a user tells of these."""

    def confirm_login_allowed(self, user: Any) -> None:
        if cluster_owners.rights(user):
            AuthenticationForm.confirm_login_allowed(self, user)
        else:
            super().confirm_login_allowed(user)


class Site(sites.UnfoldAdminSite):
    index_title = "Overview"
    index_template = "cadastre/overview.html"
    login_form = SignIn

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) or bool(cluster_owners.rights(request.user))

    def extra_urls(self) -> list[URLPattern]:
        """Addresses directly below /admin/."""
        from pools.admin import urls  # noqa: PLC0415  # its modules register with this site

        return urls.of(self)
