"""The page of the address plan: the tree of CIDRs, level by level, and what is free in a container."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, errors, overlaps
from pools.models import Container
from pools.platform import search_text
from pools.platform.admin import forms as fields
from pools.platform.admin import lists, pages
from pools.register.plan import free_space, tree

FLEET = _("Fleet")
DEEPEST = 12  # levels that are indented
# Pools, and objects, of one CIDR: a fleet may have the same CIDR of pods in each cluster.
MOST_OWNERS = 5


class PlanForm(forms.Form):
    """The filters of the page; a value that is none is left out."""

    space = cluster_fields.space_field(empty_label=FLEET)
    cluster = cluster_fields.cluster_field(required=False, empty_label=_("all"))
    family = forms.ChoiceField(
        label=_("IP family"),
        choices=(("", _("all")), ("4", "IPv4"), ("6", "IPv6")),
        required=False,
        widget=fields.select(),
    )
    q = forms.CharField(
        label=_("Go to"),
        required=False,
        max_length=search_text.LONGEST,
        widget=fields.addresses_text(placeholder="10.20.0.7"),
    )


def view(request: HttpRequest) -> HttpResponse:
    """Show the outermost CIDRs, one level (`parent`), what contains an address, or what has a name.

    With `rows` the answer is only the rows of a level, which the page puts below their parent.
    """
    pages.require(request, "pools.view_container")
    form = PlanForm(request.GET)
    form.is_valid()
    chosen = form.cleaned_data
    scope = replace(free_space.scope_of_space(chosen.get("space")), most=MOST_OWNERS)
    level_filter = tree.LevelFilter(int(chosen.get("family") or 0) or None, chosen.get("cluster"))
    parent = _parse_network(request.GET.get("parent", ""))
    behind = _parse_network(request.GET.get("behind", ""))
    if behind and parent and not overlaps.contains(parent, behind):
        behind = None
    path: list[tree.PlanRow] = []
    searched = search_text.parse(chosen.get("q", ""))
    if searched.network is not None:
        path = tree.find_path(scope, searched.network)
        parent = path[-1].cidr if path else parent
        level = tree.read_level(scope, parent, group_addresses=True) if path else tree.PlanLevel([])
    elif searched.text:
        level = tree.PlanLevel(tree.find_names(scope, searched.text))
    else:
        level = tree.read_level(
            scope,
            parent,
            level_filter=level_filter,
            behind=behind.network_address if behind else None,
            group_addresses=True,
        )
        path = tree.find_path(scope, parent) if parent else []
    context: dict[str, Any] = {
        "level": level,
        "parent": parent,
        "following": _url(request, parent=parent or "", behind=level.following),
        "query": _filters(request),
        "space": chosen.get("space"),
        "indent": min(lists.parse_id(request.GET.get("rows", "")), DEEPEST),
    }
    if "rows" in request.GET:
        return render(request, "cadastre/plan_rows.html", context)
    return pages.page(
        request,
        "plan.html",
        title=gettext("Address plan"),
        form=form,
        path=path,
        searched=searched,
        call=f"address-plan/?{urlencode({'parent': parent})}" if parent else "address-plan/",
        **context,
    )


class FreePrefixForm(forms.Form):
    length = forms.IntegerField(
        label=_("Prefix length"),
        min_value=1,
        max_value=128,
        widget=fields.text(placeholder="20", inputmode="numeric"),
    )
    order = forms.ChoiceField(
        label=_("Order"),
        choices=(
            (free_space.Order.FIRST_FIT.value, _("by address")),
            (free_space.Order.BEST_FIT.value, _("smallest free part first")),
        ),
        required=False,
        widget=fields.select(),
    )


def free_prefixes(request: HttpRequest, container: Container) -> HttpResponse:
    """Show the free prefixes of a length in a container."""
    form = FreePrefixForm(request.GET if "length" in request.GET else None)
    prefixes: list[addresses.Network] = []
    searched = form.is_bound and form.is_valid()
    if searched:
        order = free_space.Order(form.cleaned_data["order"] or "first_fit")
        try:
            prefixes = free_space.find_prefixes(
                container.cidr,
                form.cleaned_data["length"],
                free_space.scope_of(container),
                order=order,
            )
        except errors.InvalidInput as error:
            pages.add_errors(form, error, lambda _problem: "length")
            searched = False
    return pages.page(
        request,
        "free_prefixes.html",
        container,
        title=gettext("Free prefixes in %(container)s") % {"container": container},
        form=form,
        searched=searched,
        prefixes=prefixes,
        space=container.space,
        most=free_space.MOST,
        call=f"containers/{container.pk}/available-prefixes/?prefix_length="
        f"{request.GET.get('length', '20') if searched else 20}",
    )


def _parse_network(text: str) -> addresses.Network | None:
    return search_text.parse(text).network if text else None


def _filters(request: HttpRequest) -> str:
    """Return the filters as a query, which links to other levels keep."""
    names = ("space", "cluster", "family")
    return urlencode({name: request.GET[name] for name in names if request.GET.get(name)})


def _url(request: HttpRequest, **query: Any) -> str:
    return f"{reverse('admin:plan')}?{_filters(request)}&{urlencode(query)}"
