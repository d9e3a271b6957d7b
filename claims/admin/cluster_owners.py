"""Read-only list of the VM owners that RoleBindings of clusters make; they are changed in the cluster."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import cluster_owners
from claims.admin import scoped
from claims.models import ClusterOwner
from claims.models.cluster_owners import SubjectKind
from pools.platform.admin import columns, lists
from pools.platform.admin.columns import Column


def _owner(row: ClusterOwner) -> str:
    if row.subject_kind == SubjectKind.USER:
        return row.subject
    return gettext("group %(subject)s") % {"subject": row.subject}


@admin.register(ClusterOwner)
class ClusterOwnerAdmin(lists.ListAdmin[ClusterOwner]):
    list_display = (
        Column("owner", _("user or group"), _owner),
        columns.code("role", _("role of the cluster")),
        columns.related("connection.cluster", _("cluster")),
        "namespace",
        columns.text("binding", _("RoleBinding")),
        columns.timestamp("since", _("since")),
    )
    list_filter = (scoped.cluster_filter("connection__cluster_id"),)
    search_fields = ("subject", "namespace", "binding")
    search_help_text = _("User, group, namespace or RoleBinding")
    exported = (
        "id",
        "subject_kind",
        "subject",
        "connection.cluster.name",
        "namespace",
        "role",
        "binding",
        "since",
    )
    ordering = ("connection__cluster__name", "namespace", "subject", "id")
    list_select_related = ("connection__cluster",)
    list_before_template = "cadastre/cluster_owners_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ClusterOwner]:
        return super().get_queryset(request).filter(role__in=cluster_owners.roles())

    def has_view_permission(self, request: HttpRequest, obj: ClusterOwner | None = None) -> bool:
        return request.user.has_perm("claims.view_membership")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def change_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied

    def history_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied
