"""Limit the pages of VM networks to the namespaces that a user may see.

A ModelAdmin that derives from `Scoped` limits its list, counts, search, export, autocomplete and the
choices of its forms. A row of another namespace is a 404, like a row that does not exist. The filters
here offer visible objects only. Custom views use `rows` and `request_scope`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import ForeignKey, ManyToManyField, Model, QuerySet
from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.models import IPPool, Network
from pools.models import Cluster
from pools.platform.admin import lists

Row = TypeVar("Row", bound=Model)
MOST = 500  # choices that a filter or a form offers


def request_scope(request: HttpRequest) -> namespaces.Scope:
    """Return the scope of the request's user; it is determined once per request."""
    scope: namespaces.Scope | None = getattr(request, "claims_scope", None)
    if scope is None:
        scope = namespaces.scope(request.user)
        request.claims_scope = scope  # type: ignore[attr-defined]
    return scope


def rows(request: HttpRequest, model: type[Row]) -> QuerySet[Row]:
    """Return all rows of a table that the user may see."""
    return namespaces.visible(model._default_manager.all(), request_scope(request))


def row_or_404(queryset: QuerySet[Row], object_id: object) -> Row:
    """Return the row with this id, or raise Http404.

    The error is the same for a hidden row, a missing row and an invalid id.
    """
    row = queryset.filter(pk=lists.parse_id(str(object_id))).first()
    if row is None:
        raise Http404(gettext("There is no such object."))
    return row


class Scoped(lists.ReadOnlyAdmin[Row]):
    """Base of the lists of VM networks; name it before other bases."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        return namespaces.visible(super().get_queryset(request), request_scope(request))

    def row_or_404(self, request: HttpRequest, object_id: object) -> Row:
        return row_or_404(self.get_queryset(request), object_id)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **options: Any
    ) -> Any:
        options.setdefault("queryset", rows(request, db_field.related_model))
        return super().formfield_for_foreignkey(db_field, request, **options)

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **options: Any
    ) -> Any:
        options.setdefault("queryset", rows(request, db_field.related_model))
        return super().formfield_for_manytomany(db_field, request, **options)


class ScopedClusterFilter(lists.ChoiceFilter):
    """Filter by cluster; `lookup` leads from a row to its cluster id."""

    title = _("cluster")
    parameter_name = "cluster"
    lookup = "cluster_id"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        clusters = rows(request, Cluster).order_by("name").values_list("pk", "name")
        return [(str(pk), name) for pk, name in clusters]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.lookup: self.selected_id()}) if self.value() else queryset


class NetworkFilter(lists.ChoiceFilter):
    """Filter by network; `lookup` leads from a row to its network id."""

    title = _("network")
    parameter_name = "network"
    lookup = "network_id"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        networks = (
            rows(request, Network).select_related("cluster").order_by("cluster__name", "name")
        )
        return [(str(network.pk), str(network)) for network in networks[:MOST]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.lookup: self.selected_id()}) if self.value() else queryset


class IPPoolFilter(NetworkFilter):
    """Filter by IPPool; `lookup` leads from a row to its IPPool id."""

    title = _("IPPool")
    parameter_name = "ippool"
    lookup = "ippool_id"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        ippools = rows(request, IPPool).select_related("cluster").order_by("cluster__name", "name")
        return [(str(ippool.pk), str(ippool)) for ippool in ippools[:MOST]]
