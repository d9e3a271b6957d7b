"""What forms of several rooms share: fields for a cluster, an address space and an environment, the warning of
overlaps, and what an input of a CIDR asks while somebody types: what it overlaps, and what is free.
"""

import re
from collections.abc import Callable, Iterable
from ipaddress import ip_network
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import addresses, errors
from pools.models import AddressSpace, Category, Cluster, Environment, Pool
from pools.platform.admin import filters, forms as fields, pages, related
from pools.register import overlaps
from pools.register.plan import free_space

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


class NewCidrsForm(forms.BaseForm):
    """A form that is invalid, without an error, while its new CIDRs overlap others and nobody accepted that.

    Name it before the other bases of the form.
    """

    takes_cidrs = True

    def new_cidrs(self) -> Iterable[addresses.Network]:
        """Return the CIDRs of a valid form that may overlap others."""
        raise NotImplementedError

    def owner(self) -> overlaps.NetworkOwner:
        """Return who gets them."""
        raise NotImplementedError

    def is_valid(self) -> bool:
        if not super().is_valid():
            return False
        cidrs = list(self.new_cidrs())
        return not cidrs or overlaps_accepted(self, cidrs, self.owner())


def tenant_filters(*columns: str) -> tuple[type[related.NamesFilter], ...]:
    """Return the filters of rows by `org` and `env`; with `columns` only by these."""

    def names(column: str) -> Callable[[HttpRequest, int], list[str]]:
        rows = Environment.objects.exclude(**{column: ""}).order_by(column)
        return lambda _request, most: list(rows.values_list(column, flat=True).distinct()[:most])

    titles = {"org": _("organization"), "env": _("environment")}
    return tuple(
        related.by_names(titles[column], column, names(column)) for column in columns or titles
    )


# --- what an input of a CIDR asks while somebody types -------------------------------------------

_MOST_CIDRS = 20  # CIDRs of a form that are checked
_CIDR_NAME = re.compile(r"(^|-)(cidr|to|cluster_prefix|subnets)$")
_NEW_NETWORK = "new network"  # no address space has a name with a blank


class OwnerForm(forms.Form):
    """Who is to have the CIDRs: the fields of the form that they are typed in, or the row that it changes."""

    pool = forms.ModelChoiceField(Pool.objects.select_related("cluster", "space"), required=False)
    cluster = cluster_field(required=False)
    space = space_field()
    category = forms.ChoiceField(choices=Category.choices, required=False)

    def owner(self) -> overlaps.NetworkOwner | None:
        """Return the owner of the CIDRs, or None for the fleet, and while no cluster is chosen."""
        values = self.cleaned_data
        if values.get("pool"):
            return overlaps.owner_of_pool(values["pool"])
        cluster, space = values.get("cluster"), values.get("space")
        if "cluster_prefix" in self.data:
            return overlaps.owner_of_prefix(cluster)
        if space:
            return overlaps.owner_of_container(space)
        if cluster is None:
            return None
        if "subnets" in self.data:
            return overlaps.owner_of_new_network(cluster, _NEW_NETWORK)
        return overlaps.owner_of_new_pool(cluster, values.get("category") or "")

    def address_space(self) -> AddressSpace | None:
        """Return the address space in whose containers free CIDRs are searched; None is the fleet."""
        values = self.cleaned_data
        pool, cluster = values.get("pool"), values.get("cluster")
        if pool or cluster:
            spaces = AddressSpace.objects.select_related("cluster").filter(name=AddressSpace.OWN)
            return spaces.filter(cluster=pool.cluster if pool else cluster).first()
        space: AddressSpace | None = values.get("space")
        return space


def check(request: HttpRequest) -> HttpResponse:
    """Show what the CIDRs typed so far overlap; one that is not complete yet says nothing."""
    pages.require(request, "pools.view_pool")
    form = OwnerForm(request.GET)
    form.is_valid()
    networks: list[addresses.Network] = []
    problems = []
    for text in _typed_cidrs(request)[:_MOST_CIDRS]:
        try:
            networks.append(addresses.parse_cidr(text, source=addresses.InputSource.TEXT))
        except errors.InvalidInput as error:
            if "host_bits_set" in {problem.code for problem in error.problems}:
                networks.append(ip_network(text, strict=False))
                problems.append(f"{text}: {error.message}")
    owner = form.owner()
    if owner is not None:
        overlaps_accepted(form, networks, owner)
    context = {"form": form, "typing": True, "problems": problems}
    return render(request, "cadastre/overlap_list_card.html", context)


def _typed_cidrs(request: HttpRequest) -> list[str]:
    texts = (" ".join(values) for name, values in request.GET.lists() if _CIDR_NAME.search(name))
    return [text for line in texts for text in line.split()]


class LengthForm(forms.Form):
    length = forms.IntegerField(min_value=1, max_value=128)


def free(request: HttpRequest) -> HttpResponse:
    """Offer the first free CIDRs of a prefix length, each as a button that fills the field in."""
    pages.require(request, "pools.view_pool", "pools.view_container")
    form, lengths = OwnerForm(request.GET), LengthForm(request.GET)
    form.is_valid()
    offers: list[tuple[addresses.Network, str]] = []
    if not lengths.is_valid():
        text = gettext("Enter a prefix length from 1 to 128.")
    else:
        space, length = form.address_space(), lengths.cleaned_data["length"]
        offers = free_space.offer_prefixes(length, space)
        if offers:
            text = ""
        elif free_space.has_parents(length, space):
            text = gettext("No /%(length)s is free.") % {"length": length}
        else:
            text = gettext("No network container is larger than a /%(length)s.")
            text %= {"length": length}
    return render(request, "cadastre/free_cidrs.html", {"offers": offers, "text": text})


def next_free(request: HttpRequest, pool: Pool) -> HttpResponse:
    """Answer with the lowest free block of the pool, `{"addresses"}`, or why there is none, `{"problem"}`."""
    family = request.GET.get("family")
    block = free_space.next_free_block(pool, int(family) if family in {"4", "6"} else None)
    if block is None:
        return JsonResponse({"problem": gettext("Nothing is free in this pool.")})
    text = block.network_address if block.prefixlen == block.max_prefixlen else block
    return JsonResponse({"addresses": [str(text)]})
