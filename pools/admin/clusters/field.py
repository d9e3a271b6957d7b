"""What forms of several rooms share: fields for a cluster and an address space, and the warning of overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pools.core import addresses
from pools.models import AddressSpace, Cluster, Environment
from pools.platform.admin import filters, related
from pools.register import overlaps

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


OVERLAPS_TICK = "accept_overlaps"
_MOST_OVERLAPS = 20  # lines of the warning


def overlaps_accepted(
    form: forms.Form, networks: Iterable[addresses.Network], owner: overlaps.NetworkOwner
) -> bool:
    """Return True if the networks overlap nothing, or if the user has ticked that they may.

    If not, nothing is saved, and the page of the form shows what they overlap (overlap_warning.html).
    """
    found = [
        (network, other, present)
        for network in networks
        for other, present in overlaps.find_new_overlaps(network, owner)
    ]
    shown: Any = form
    shown.overlaps, shown.overlaps_accepted = found[:_MOST_OVERLAPS], OVERLAPS_TICK in form.data
    return not found or shown.overlaps_accepted


def tenant_filters(*columns: str) -> tuple[type[related.NamesFilter], ...]:
    """Return the filters of rows by `org` and `env`; with `columns` only by these."""

    def names(column: str) -> Callable[[HttpRequest, int], list[str]]:
        rows = Environment.objects.exclude(**{column: ""}).order_by(column)
        return lambda _request, most: list(rows.values_list(column, flat=True).distinct()[:most])

    titles = {"org": _("organization"), "env": _("environment")}
    return tuple(
        related.by_names(titles[column], column, names(column)) for column in columns or titles
    )
