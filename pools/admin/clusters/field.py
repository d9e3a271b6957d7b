"""What forms of several rooms share: fields for a cluster, an address space and an environment, and the
warning of overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pools.core import addresses
from pools.models import AddressSpace, Cluster, Environment
from pools.platform.admin import filters, forms as fields, related
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


def _suggest(name: str) -> related.Suggest:
    """Return the function that suggests the values of a column of the environments."""

    def suggest(_request: HttpRequest, text: str) -> list[str]:
        rows = Environment.objects.filter(**{f"{name}__icontains": text}).exclude(**{name: ""})
        return list(
            rows.order_by(name).values_list(name, flat=True).distinct()[: related.SUGGESTIONS]
        )

    return suggest


_ORGS = related.offer_names("organizations", "pools.view_environment", _suggest("org"))
_ENVS = related.offer_names("environments", "pools.view_environment", _suggest("env"))


def org_field() -> fields.ParsedField:
    """An organization; a list of those that are there suggests its name."""
    widget = related.name_widget(_ORGS)
    return fields.identifier_field(label=_("Organization"), required=False, widget=widget)


def env_field(**options: Any) -> fields.ParsedField:
    """An environment of an organization, as `org_field`."""
    widget = related.name_widget(_ENVS)
    return fields.identifier_field(label=_("Environment"), widget=widget, **options)


OVERLAPS_TICK = "accept_overlaps"
_MOST_OVERLAPS = 20  # lines of the warning


def overlaps_accepted(
    form: forms.BaseForm, networks: Iterable[addresses.Network], owner: overlaps.NetworkOwner
) -> bool:
    """Return True if the networks overlap nothing, or if the user has ticked that they may.

    If not, nothing is saved, and the page of the form shows what they overlap (overlap_warning.html), and
    for which pools the register refuses them, whatever is ticked.
    """
    shown: Any = form
    shown.overlaps, shown.refusals = [], []
    for network in networks:
        for lines, find in (
            (shown.overlaps, overlaps.find_new_overlaps),
            (shown.refusals, overlaps.find_refusals),
        ):
            lines += [(network, *owned) for owned in find(network, owner)]
            del lines[_MOST_OVERLAPS:]
    shown.overlaps_accepted = OVERLAPS_TICK in form.data
    return not shown.overlaps or shown.overlaps_accepted


def tenant_filters(*columns: str) -> tuple[type[related.NamesFilter], ...]:
    """Return the filters of rows by `org` and `env`; with `columns` only by these."""

    def names(column: str) -> Callable[[HttpRequest, int], list[str]]:
        rows = Environment.objects.exclude(**{column: ""}).order_by(column)
        return lambda _request, most: list(rows.values_list(column, flat=True).distinct()[:most])

    titles = {"org": _("organization"), "env": _("environment")}
    return tuple(
        related.by_names(titles[column], column, names(column)) for column in columns or titles
    )
