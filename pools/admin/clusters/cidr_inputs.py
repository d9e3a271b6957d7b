"""What an input of a CIDR asks while somebody types: what it overlaps, and what is free."""

from __future__ import annotations

import re
from ipaddress import ip_network

from django import forms
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext

from pools.admin.clusters import field
from pools.core import addresses, errors
from pools.models import AddressSpace, Category, Pool
from pools.platform.admin import pages
from pools.register import overlaps
from pools.register.plan import free_space

MOST = 20  # CIDRs of a form that are checked
_CIDR_NAME = re.compile(r"(^|-)(cidr|to|cluster_prefix|subnets)$")
_NEW_NETWORK = "new network"  # no address space has a name with a blank


class OwnerForm(forms.Form):
    """Who is to have the CIDRs: the fields of the form that they are typed in, or the row that it changes."""

    pool = forms.ModelChoiceField(Pool.objects.select_related("cluster", "space"), required=False)
    cluster = field.cluster_field(required=False)
    space = field.space_field()
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
    for text in _typed_cidrs(request)[:MOST]:
        try:
            networks.append(addresses.parse_cidr(text, source=addresses.InputSource.TEXT))
        except errors.InvalidInput as error:
            if "host_bits_set" in {problem.code for problem in error.problems}:
                networks.append(ip_network(text, strict=False))
                problems.append(f"{text}: {error.message}")
    owner = form.owner()
    if owner is not None:
        field.overlaps_accepted(form, networks, owner)
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
