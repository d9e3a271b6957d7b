"""Read-only list of the VM owners that RoleBindings of clusters make; they are changed in the cluster."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import cluster_owners
from claims.admin import scoped
from claims.models import ClusterOwner
from claims.models.cluster_owners import Subject
from pools.platform.admin import display, lists


class OwnerClusterFilter(scoped.ScopedClusterFilter):
    lookup = "connection__cluster_id"


@admin.register(ClusterOwner)
class ClusterOwnerAdmin(lists.ReadOnlyAdmin[ClusterOwner]):
    list_display = (
        "shown_owner",
        "shown_role",
        "shown_cluster",
        "namespace",
        "shown_binding",
        "shown_since",
    )
    list_display_links = None
    list_filter = (OwnerClusterFilter,)
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
    sortable_by = ()
    list_before_template = "cadastre/cluster_owners_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ClusterOwner]:
        rows = super().get_queryset(request).filter(role__in=cluster_owners.roles())
        return rows.select_related("connection__cluster")

    def has_view_permission(self, request: HttpRequest, obj: ClusterOwner | None = None) -> bool:
        return request.user.has_perm("claims.view_membership")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def change_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied

    def history_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied

    @admin.display(description=_("user or group"))
    def shown_owner(self, row: ClusterOwner) -> str:
        return (
            row.subject
            if row.subject_kind == Subject.USER
            else (gettext("group %(subject)s") % {"subject": row.subject})
        )

    @admin.display(description=_("role of the cluster"))
    def shown_role(self, row: ClusterOwner) -> SafeString:
        return format_html('<code class="cad-mono">{}</code>', row.role)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, row: ClusterOwner) -> SafeString:
        return display.row_link(row.connection.cluster)

    @admin.display(description=_("RoleBinding"))
    def shown_binding(self, row: ClusterOwner) -> str:
        return row.binding

    @admin.display(description=_("since"))
    def shown_since(self, row: ClusterOwner) -> SafeString:
        return display.timestamp(row.since)
