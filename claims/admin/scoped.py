"""Limit the pages of VM networks to the namespaces that a user may see.

A ModelAdmin that derives from `Scoped` limits its list, counts, search, export, autocomplete and the
choices of its forms. A row of another namespace is a 404, like a row that does not exist. The filters
here offer visible objects only. Custom views use `rows` and `request_scope`.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from django import forms
from django.db.models import ForeignKey, ManyToManyField, Model, QuerySet
from django.http import Http404, HttpRequest
from django.urls import reverse_lazy
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.entries import entries
from claims.models import NAD, IPPool, Network
from pools.models import Cluster
from pools.platform.admin import display, filters, forms as fields, lists, related

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


class Scoped(lists.ListAdmin[Row]):
    """Base of the lists of VM networks; name it before other bases."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        return namespaces.visible(super().get_queryset(request), request_scope(request))

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


def addresses_widget(**attrs: str) -> forms.Widget:
    """Return an input for addresses of a network, with a button that fills in the next free ones."""
    url: Any = reverse_lazy("admin:claims_network_free")  # forms are made before the URLs
    return fields.addresses_text(**{"data-free": url, **attrs})


def mark_links(request: HttpRequest, listed: list[Any]) -> None:
    """Mark rows whose user may open their clusters, for `cluster_link`."""
    for row in listed:
        row.shown_links = request_scope(request).everything


def cluster_link(row: Any) -> str:
    """Return the row's cluster as a link for those who may open it, else its name."""
    return display.row_link(row.cluster) if row.shown_links else row.cluster.name


def addresses(values: Sequence[str | None]) -> SafeString:
    """Return addresses and MACs, one below the other; None and "" are left out."""
    shown = [display.address(value) for value in values if value]
    return display.stack(shown, wraps=False)


# --- filters and fields that offer what the user may see; `lookup` leads from a row to the id --------


_CLUSTERS = related.RelatedRows(lambda request: rows(request, Cluster), ("name",))
NETWORKS = related.RelatedRows(lambda request: rows(request, Network), ("cluster__name", "name"))
IPPOOLS = related.RelatedRows(lambda request: rows(request, IPPool), ("cluster__name", "name"))


def _suggest_namespaces(request: HttpRequest, text: str) -> list[str]:
    """Return the namespaces that entries and clusters name, or those of a VM owner."""
    scope = request_scope(request)
    names = {name for of_cluster in scope.namespaces.values() for name in of_cluster}
    if scope.everything:
        seen = NAD.objects.order_by("namespace").values_list("namespace", flat=True).distinct()
        names = {*entries.used_namespaces(related.MOST_NAMES), *seen[: related.MOST_NAMES]}
    return sorted(name for name in names if text in name)


OFFERED_NAMESPACES = related.offer_names("namespaces", "claims.view_network", _suggest_namespaces)
OFFERED_LOGICAL_NETWORKS = related.offer_names(
    "logical-networks",
    "claims.view_network",
    lambda request, text: list(
        rows(request, Network)
        .filter(ippool=None, name__contains=text)
        .order_by("name")
        .values_list("name", flat=True)
        .distinct()[: related.SUGGESTIONS]
    ),
)
OFFERED_CLUSTERS = related.offer("vm-clusters", "claims.view_wave", _CLUSTERS)
OFFERED_NETWORKS = related.offer("networks", "claims.view_network", NETWORKS)
OFFERED_IPPOOLS = related.offer("ippools", "claims.view_ippool", IPPOOLS)


def cluster_filter(lookup: str = "cluster_id") -> type[filters.ChoiceFilter]:
    return related.by_key(_("cluster"), "cluster", _CLUSTERS, lookup)


def network_filter(lookup: str = "network_id") -> type[filters.ChoiceFilter]:
    return related.by_key(_("network"), "network", NETWORKS, lookup)


def namespace_filter(model: type[Model]) -> type[related.NamesFilter]:
    """Return the filter of rows of a model by the namespaces of those that the user may see."""

    def names(request: HttpRequest, most: int) -> list[str]:
        used = rows(request, model).exclude(namespace="").order_by("namespace")
        return list(used.values_list("namespace", flat=True).distinct()[:most])

    return related.by_names(_("namespace"), "namespace", names)
