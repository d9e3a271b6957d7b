"""The form fields for a cluster and an address space, and the filter by cluster."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from pools.models import AddressSpace, Cluster
from pools.platform.admin import filters, related

CLUSTERS = related.RelatedRows(lambda _request: Cluster.objects.all(), ("name",))
_SPACES = related.RelatedRows(
    lambda _request: AddressSpace.objects.all(), ("cluster__name", "name")
)
_OFFERED_CLUSTERS = related.offer("clusters", "pools.view_cluster", CLUSTERS)
_OFFERED_SPACES = related.offer("spaces", "pools.view_cluster", _SPACES)


def cluster_field(**options: Any) -> related.RelatedField:
    rows = options.pop("queryset", Cluster.objects.all())
    return related.RelatedField(
        _OFFERED_CLUSTERS, rows.order_by("name"), **{"label": _("Cluster"), **options}
    )


def space_field(**options: Any) -> related.RelatedField:
    """The field of an address space; empty is the fleet."""
    rows = AddressSpace.objects.select_related("cluster").order_by("cluster__name", "name")
    return related.RelatedField(
        _OFFERED_SPACES, rows, label=_("Address space"), required=False, **options
    )


def cluster_filter(lookup: str = "cluster_id") -> type[filters.ChoiceFilter]:
    """Filter by cluster; `lookup` leads from a row to the id."""
    return related.by_key(_("cluster"), "cluster", CLUSTERS, lookup)
