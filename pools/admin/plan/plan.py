"""The page of the address plan: the tree of CIDRs and its map, level by level, what is free, and what overlaps."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.plan import plan_map
from pools.core import addresses, cidr_sets
from pools.platform import search
from pools.platform.admin import display, forms as fields, lists, pages
from pools.register import overlaps as register_overlaps
from pools.register.overlaps import OverlapKind, OverlapSeverity
from pools.register.plan import free_space, tree

FLEET = _("Fleet")
DEEPEST = 12  # levels that are indented
ROWS = 50  # of a level at once: with its map the page has less than 100 kB
# Pools, and objects, of one CIDR: a fleet may have the same CIDR of pods in each cluster.
MOST_OWNERS = 5
OVERLAPS_PER_PAGE = 50
MEMBERS = 12  # members of one overlap that are shown
LENGTHS = {4: (12, 16, 20, 24), 6: (32, 40, 48, 56, 64)}  # that are looked for if none is typed
MOST_LENGTHS = 8
KEPT = ("space", "cluster", "family", "parent")  # by the form of the prefix lengths


class LengthsField(forms.CharField):
    """Prefix lengths, such as `20, 24`; cleans to a list."""

    def clean(self, value: Any) -> Any:
        words = super().clean(value).replace(",", " ").replace("/", " ").split()
        if not all(word.isdecimal() and len(word) < 4 and 0 < int(word) <= 128 for word in words):
            raise forms.ValidationError(_("Write prefix lengths, such as 20 or 20, 24."))
        return list(dict.fromkeys(map(int, words)))[:MOST_LENGTHS]


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
    overlaps = forms.ChoiceField(
        label=_("Overlaps"),
        required=False,
        widget=fields.select(),
        choices=(
            ("", _("marked in the tree")),
            ("all", _("as a list")),
            (OverlapSeverity.ERROR.value, _("errors")),
            (OverlapSeverity.WARNING.value, _("warnings")),
            (OverlapSeverity.INFO.value, _("information")),
            (OverlapKind.CLUSTERS.value, _("between clusters")),
            (OverlapKind.VM_NETWORK.value, _("with VM networks")),
            (OverlapKind.OVERLAY.value, _("with overlay prefixes")),
            (OverlapKind.CLASH.value, _("inside a cluster")),
        ),
    )
    q = forms.CharField(
        label=_("Go to"),
        required=False,
        max_length=search.LONGEST,
        widget=fields.addresses_text(placeholder="10.20.0.7"),
    )
    lengths = LengthsField(
        label=_("Prefix lengths"),
        required=False,
        max_length=100,
        widget=fields.text(placeholder="20, 24", inputmode="numeric"),
    )


def view(request: HttpRequest) -> HttpResponse:
    """Show the outermost CIDRs, one level (`parent`), what contains an address, or what has a name.

    With `rows` the answer is only the rows of a level, which the page puts below their parent; with `overlaps`
    a list of these instead of the tree.
    """
    pages.require(request, "pools.view_container")
    form = PlanForm(request.GET)
    form.is_valid()
    chosen = form.cleaned_data
    scope = replace(free_space.scope_of_space(chosen.get("space")), most=MOST_OWNERS)
    level_filter = tree.LevelFilter(int(chosen.get("family") or 0) or None, chosen.get("cluster"))
    parent = _parse_network(request.GET.get("parent", ""))
    behind = _parse_network(request.GET.get("behind", ""))
    if behind and parent and not cidr_sets.contains(parent, behind):
        behind = None
    path: list[tree.PlanRow] = []
    searched = search.parse(chosen.get("q", ""))
    if chosen.get("overlaps"):
        return _overlap_list(request, form, searched.network or parent)
    if searched.network is not None:
        path = tree.find_path(scope, searched.network)
        parent = path[-1].cidr if path else parent
        level = (
            tree.read_level(scope, parent, limit=ROWS, group_addresses=True)
            if path
            else tree.PlanLevel([])
        )
    elif searched.text:
        level = tree.PlanLevel(tree.find_names(scope, searched.text))
    else:
        level = tree.read_level(
            scope,
            parent,
            level_filter=level_filter,
            behind=behind.network_address if behind else None,
            limit=ROWS,
            group_addresses=True,
        )
        path = tree.find_path(scope, parent) if parent else []
    space = chosen.get("space")
    context: dict[str, Any] = {
        "level": level,
        "parent": parent,
        "following": _url(request, parent=parent or "", behind=level.following),
        "query": _filters(request),
        "space": space,
        # The cluster for which a pool is added. Nobody adds one to the space of a VM network.
        "cluster": chosen.get("cluster") or (space.cluster if space else None),
        "pools_fit": not (space and space.name),
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
        map=plan_map.draw(level.rows, lambda row: _url_of_row(request, row)) if level.rows else "",
        is_free_part=parent is not None and bool(path) and path[-1].cidr != parent,
        legend=plan_map.LEGEND,
        kept=[(name, request.GET[name]) for name in KEPT if request.GET.get(name)],
        free=_summarize_free(scope, level.rows, parent, path, chosen.get("lengths") or ()),
        call=f"address-plan/?{urlencode({'parent': parent})}" if parent else "address-plan/",
        **context,
    )


def _summarize_free(
    scope: free_space.Scope,
    rows: Sequence[tree.PlanRow],
    parent: addresses.Network | None,
    path: Sequence[tree.PlanRow],
    lengths: Sequence[int],
) -> list[tuple[int, cidr_sets.FreeSummary]]:
    """Return what is free at a level by family: in its container, or in all containers of the outermost level."""
    if parent is None:
        containers = [row.cidr for row in rows if row.divisible]
    else:  # a free part is no row of the plan: the narrowest around it says whether it is one
        containers = [parent] if path and path[-1].divisible else []
    gaps: dict[int, list[cidr_sets.Gap]] = defaultdict(list)
    for container in containers:
        gaps[container.version] += free_space.find_gaps(container, scope)
    return [
        (version, cidr_sets.summarize(found, version, _lengths(version, parent, lengths)))
        for version, found in sorted(gaps.items())
    ]


def _lengths(
    version: int, parent: addresses.Network | None, lengths: Sequence[int]
) -> Sequence[int]:
    shortest = parent.prefixlen if parent else 0
    longest = 32 if version == 4 else 128
    if lengths:
        return [length for length in lengths if shortest <= length <= longest]
    usual = [length for length in LENGTHS[version] if length > shortest]
    return usual or range(shortest + 1, longest + 1)[:3]


def _overlap_list(
    request: HttpRequest, form: PlanForm, within: addresses.Network | None
) -> HttpResponse:
    """Show the overlaps, the worst first, of a kind or severity, a cluster or a CIDR."""
    chosen, choice = form.cleaned_data, form.cleaned_data["overlaps"]
    severities = list(OverlapSeverity)
    rows = register_overlaps.find_overlaps(
        cluster_id=chosen["cluster"].pk if chosen.get("cluster") else None,
        kind=OverlapKind(choice) if choice in {kind.value for kind in OverlapKind} else None,
        severity=OverlapSeverity(choice) if choice in {each.value for each in severities} else None,
        within=within,
    )
    rows.sort(key=lambda overlap: severities.index(overlap.severity))
    page = Paginator(rows, OVERLAPS_PER_PAGE).get_page(request.GET.get("page"))
    parameters = request.GET.copy()
    parameters.pop("page", None)
    return pages.page(
        request,
        "overlaps.html",
        title=gettext("Address plan"),
        form=form,
        within=within,
        rows=page,
        query=parameters.urlencode(),
        overlaps=[
            (overlap, overlap.members[:MEMBERS], max(0, len(overlap.members) - MEMBERS))
            for overlap in page
        ],
    )


def _parse_network(text: str) -> addresses.Network | None:
    return search.parse(text).network if text else None


def _filters(request: HttpRequest) -> str:
    """Return the filters as a query, which links to other levels keep."""
    names = ("space", "cluster", "family", "lengths")
    return urlencode({name: request.GET[name] for name in names if request.GET.get(name)})


def _url(request: HttpRequest, **query: Any) -> str:
    filters = _filters(request)
    return f"?{filters}{'&' if filters else ''}{urlencode(query)}"


def _url_of_row(request: HttpRequest, row: tree.PlanRow) -> str:
    """Return where a rectangle of the map leads: into the CIDR, or to the page of what has it."""
    if row.expandable or row.free or row.grouped:
        return _url(request, parent=row.cidr)
    if row.pool_cidrs:
        return f"{display.url_of(row.pool_cidrs[0].pool)}?map={row.cidr}#map"
    if row.observed_cidrs:
        return display.url_of(row.observed_cidrs[0])
    return reverse("admin:find", query={"q": str(row.cidr)})
