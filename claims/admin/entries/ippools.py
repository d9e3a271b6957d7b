"""IPPools: one for each network, its conditions in words, its duplicates, its entries."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped
from claims.admin.entries import form as entry_form
from claims.admin.entries import rows as entry_rows
from claims.entries import ippools
from claims.models import Entry, IPPool, Network, Place
from pools.admin.clusters import field as cluster_fields
from pools.core import errors
from pools.models import Cluster
from pools.platform import documents
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields

LIST = "admin:claims_ippool_changelist"
_FIRST = 50  # entries with duplicates on an IPPool's page
_SHOWN_YAML = 500  # entries; a larger manifest is downloaded
_CONTRADICTED = "also of another entry, a claim, what runs, or the network itself"
_WORDS = {
    "Success": ("All entries can be used, and no two contradict each other", "Something is wrong"),
    "DuplicateMACAddresses": ("MAC addresses appear more than once", "Every MAC appears once"),
    "DuplicateIPAddresses": ("IP addresses belong to several MACs", "Every IP belongs to one MAC"),
}


class IPPoolList(lists.BoundedList):
    """IPPools with the number of their entries that are seen."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found: list[Any] = list(self.result_list)
        rows = scoped.rows(request, Entry).filter(ippool__in=found).order_by()
        counts = dict(rows.values_list("ippool").annotate(number=Count("pk")))
        for one in found:
            one.shown_number = counts.get(one.pk, 0)
            one.shown_all = scoped.seen(request).everything
        self.result_list = found


class ClusterFilter(scoped.ClusterFilter):
    pass


class DuplicateFilter(lists.Choice):
    """For those who see everything: the counts are of all namespaces."""

    title = "duplicates"
    parameter_name = "duplicate"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("yes", "with duplicates")] if scoped.seen(request).everything else []

    def queryset(self, request: HttpRequest, rows: QuerySet[IPPool]) -> QuerySet[IPPool]:
        if self.value() != "yes" or not scoped.seen(request).everything:
            return rows
        return rows.exclude(duplicate_macs=0, duplicate_ips=0)


class IPPoolForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    name = fields.name_field(help_text="Of the IPPool, as the cluster has it or will have it.")
    network_name = fields.identifier_field(
        label="Logical network",
        widget=fields.text(list="networks", placeholder="cluster_udn_prod"),
        help_text="The name in the spec.config of its network attachment definitions. A network has"
        " one IPPool.",
    )
    note = fields.reason_field(required=False, help_text="")


class ChangeForm(forms.Form):
    name = fields.name_field()
    note = fields.reason_field(required=False, help_text="")


@admin.register(IPPool)
class IPPoolAdmin(scoped.Scoped[IPPool]):
    list_display = ("shown_name", "shown_cluster", "shown_network", "shown_entries", "shown_success", "shown_duplicates", "shown_standing")  # fmt: skip
    list_display_links = None
    list_per_page = 50
    list_filter = (ClusterFilter, DuplicateFilter)
    exported = ("id", "cluster.name", "name", "network.name", "note")
    search_fields = ("name", "network__name")
    search_help_text = "Name of the IPPool or of its network"
    ordering = ("cluster__name", "name")
    list_before_template = "cadastre/ippools_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[IPPool]:
        return super().get_queryset(request).select_related("cluster", "network__cluster")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[IPPoolList]:
        return IPPoolList

    @admin.display(description="name", ordering="name")
    def shown_name(self, of: IPPool) -> SafeString:
        return display.to(of, of.name)

    @admin.display(description="cluster", ordering="cluster__name")
    def shown_cluster(self, of: Any) -> SafeString | str:
        return display.to(of.cluster) if of.shown_all else of.cluster.name

    @admin.display(description="network", ordering="network__name")
    def shown_network(self, of: IPPool) -> SafeString:
        return display.to(of.network, of.network.name)

    @admin.display(description="entries")
    def shown_entries(self, of: Any) -> SafeString:
        url = reverse("admin:claims_entry_changelist", query={"network": of.network_id})
        return format_html('<a href="{}">{}</a>', url, display.number(of.shown_number))

    @admin.display(description="success")
    def shown_success(self, of: Any) -> SafeString:
        if not (of.shown_all and of.conditions):
            return display.DASH
        return _sign(of.conditions[0])

    @admin.display(description="duplicates and conflicts")
    def shown_duplicates(self, of: Any) -> SafeString:
        if not of.shown_all:
            return display.DASH
        return _duplicate_links(of) or display.DASH

    @admin.display(description="cluster says")
    def shown_standing(self, of: IPPool) -> str:
        return standing(of)

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not scoped.rows(request, IPPool).exists(),
            "clusters_exist": scoped.rows(request, Cluster).exists(),
            "everything": scoped.seen(request).everything,
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("claims.add_ippool")

    def get_urls(self) -> list[URLPattern]:
        own = [("edit", self.edit_view), ("entries", self.entries_view)]
        return [
            *(
                path(f"<int:ippool_id>/{name}/", pages.in_admin(view), name=f"claims_ippool_{name}")
                for name, view in own
            ),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponseBase:  # type: ignore[override]
        pages.require(request, "claims.add_ippool")
        initial = {name: request.GET.get(name) for name in ("cluster", "network_name")}
        form = IPPoolForm(request.POST or None, initial=initial)
        if request.method == "POST" and form.is_valid():
            said = form.cleaned_data
            try:
                made = ippools.create(
                    said["cluster"],
                    said["name"],
                    said["network_name"],
                    note=said["note"] or "",
                    author=pages.author(request),
                )
            except errors.AlreadyExists as error:
                place = "network_name" if "already: " in error.message else "name"
                form.add_error(place, error.message)
            except errors.IpamError as error:
                pages.put(form, error)
            else:
                messages.success(request, f"The IPPool {made.name} was made. Add its entries.")
                return HttpResponseRedirect(display.url_of(made))
        names = Network.objects.filter(ippool=None).order_by("name").values_list("name", flat=True)
        return pages.page(
            request,
            "ippool_form.html",
            title="Add an IPPool",
            opts=IPPool._meta,
            form=form,
            names=dict.fromkeys(names[: scoped.MOST]),
            clusters_exist=Cluster.objects.exists(),
        )

    def edit_view(self, request: HttpRequest, ippool_id: int) -> HttpResponseBase:
        pages.require(request, "claims.change_ippool")
        of = self.row_or_404(request, ippool_id)
        form = ChangeForm(request.POST or None, initial={"name": of.name, "note": of.note})
        if of.uid:
            form.fields["name"].disabled = True
            form.fields["name"].help_text = "Its cluster has it under this name."
        if request.method == "POST" and form.is_valid():
            said = form.cleaned_data
            try:
                ippools.change(
                    of.pk, name=said["name"], note=said["note"] or "", author=pages.author(request)
                )
            except errors.IpamError as error:
                pages.put(form, error)
            else:
                messages.success(request, f"The IPPool {said['name']} was changed.")
                return HttpResponseRedirect(display.url_of(of))
        return pages.page(
            request,
            "ippool_form.html",
            title=f"Edit {of.name}",
            opts=IPPool._meta,
            original=of,
            ippool=of,
            form=form,
        )

    def entries_view(self, request: HttpRequest, ippool_id: int) -> HttpResponseBase:
        pages.require(request, "claims.view_entry")
        return entry_rows.view(request, self.row_or_404(request, ippool_id))

    def change_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "claims.view_ippool")
        return _page(request, self.row_or_404(request, object_id))

    def delete_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "claims.delete_ippool", "claims.view_every_namespace")
        of = self.row_or_404(request, object_id)
        if request.method == "POST":
            try:
                ippools.delete(of.pk, author=pages.author(request))
            except errors.IpamError as error:
                messages.error(request, pages.sentence(error.message))
                return HttpResponseRedirect(display.url_of(of))
            messages.success(request, f"The IPPool {of.name} was deleted.")
            return HttpResponseRedirect(reverse(LIST))
        return pages.page(
            request,
            "ippool_delete.html",
            title=f"Delete {of.name}?",
            opts=IPPool._meta,
            original=of,
            ippool=of,
            entries=of.entries.count(),
        )

    def history_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "claims.view_ippool", "pools.view_event")
        of = self.row_or_404(request, object_id)
        query = {"q": of.name, "type": "ippool"}
        return HttpResponseRedirect(reverse("admin:pools_event_changelist", query=query))


def standing(of: IPPool) -> str:
    """Who says what is in it."""
    if of.gone_at is not None:
        return "its object is deleted"
    if of.follows_cluster:
        return "follows the cluster"
    if ippools.is_written(of.cluster_id):
        return "written to the cluster"
    return "only in the register"


def _sign(condition: dict[str, Any]) -> SafeString:
    """A condition by word and shape; what Kubernetes says on hover."""
    good = condition["status"] == ("True" if condition["type"] == "Success" else "False")
    return display.state(
        "ok" if good else "conflict", f"{condition['reason']}: {condition['message']}"
    )


def _duplicate_links(of: IPPool) -> SafeString:
    """How many MACs and addresses of entries contradict anything: another entry, a claim, what runs, or
    what the network itself uses. Conditions count those of two entries only."""
    found = (("mac", of.duplicate_macs, "MAC"), ("ip", of.duplicate_ips, "IP"))
    links = [
        (
            reverse(
                "admin:claims_entry_changelist",
                query={"network": of.network_id, "duplicate": kind},
            ),
            count,
            word,
            "" if count == 1 else "s",
            _CONTRADICTED,
        )
        for kind, count, word in found
        if count
    ]
    return format_html_join(
        " ",
        '<a class="cad-state cad-state-conflict" href="{0}" title="{4}"><span aria-hidden="true">▲</span>'
        " {1} {2}{3}</a>",
        links,
    )


def _page(request: HttpRequest, of: IPPool) -> HttpResponseBase:
    seen = scoped.seen(request)
    rows = scoped.rows(request, Entry).filter(ippool=of)
    flagged = Place.objects.filter(network=of.network_id, entry__isnull=False)
    flagged = flagged.filter(duplicate_mac=True) | flagged.filter(duplicate_ip=True)
    doubled = list(rows.filter(pk__in=flagged.values("entry_id")).order_by("mac", "pk")[:_FIRST])
    told = duplicates.of_entries(doubled, seen)
    count = rows.count()
    manifest = ""
    if count <= _SHOWN_YAML:
        manifest = documents.dump_yaml(ippools.manifest(of, rows=rows, status=seen.everything))
    user: Any = request.user
    return pages.page(
        request,
        "ippool.html",
        title=of.name,
        opts=IPPool._meta,
        original=of,
        ippool=of,
        everything=seen.everything,
        standing=standing(of),
        count=count,
        entries_url=reverse("admin:claims_entry_changelist", query={"network": of.network_id}),
        may_add=entry_form.may_add(request) and not _decided(of),
        may_edit=seen.everything and user.has_perm("claims.change_entry") and not _decided(of),
        conditions=[
            (_sign(one), _WORDS[one["type"]][one["status"] != "True"], one)
            for one in (of.conditions if seen.everything else ())
            if one["type"] in _WORDS
        ],
        contradicted=_duplicate_links(of) if seen.everything else "",
        doubled=[(one, duplicate_list.badge(told[one.pk], of.network)) for one in doubled],
        more_doubled=len(doubled) == _FIRST,
        problems=of.problems[:_FIRST] if seen.everything else [],
        nads=ippools.associated_nads([of], seen)[of.pk],
        manifest=manifest,
        call=f"ippools/{of.pk}/entries/",
    )


def _decided(of: IPPool) -> bool:
    """Whether its cluster decides what is in it."""
    return of.follows_cluster and of.gone_at is None and not ippools.is_written(of.cluster_id)
