"""The form field for a cluster, and the filter by cluster."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster
from pools.platform.admin import filters
from pools.platform.admin.forms import select


def cluster_field() -> forms.ModelChoiceField[Cluster]:
    return forms.ModelChoiceField(
        Cluster.objects.order_by("name"), label=_("Cluster"), widget=select()
    )


def cluster_choices(_request: HttpRequest) -> Iterable[tuple[int, str]]:
    return Cluster.objects.values_list("pk", "name")


def cluster_filter(lookup: str = "cluster_id") -> type[filters.ChoiceFilter]:
    """Filter by cluster; `lookup` leads from a row to the id."""
    return filters.by_id(_("cluster"), "cluster", cluster_choices, lookup)
