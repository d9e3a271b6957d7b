"""The form field for a cluster, and the filter by cluster."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster
from pools.platform.admin import filters, related
from pools.platform.admin.forms import select


def cluster_field() -> forms.ModelChoiceField[Cluster]:
    return forms.ModelChoiceField(
        Cluster.objects.order_by("name"), label=_("Cluster"), widget=select()
    )


CLUSTERS = related.RelatedRows(lambda _request: Cluster.objects.all(), ("name",))


def cluster_filter(lookup: str = "cluster_id") -> type[filters.ChoiceFilter]:
    """Filter by cluster; `lookup` leads from a row to the id."""
    return related.by_key(_("cluster"), "cluster", CLUSTERS, lookup)
