"""Registered and running workloads, compared network by network; adoption of running ones."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.admin import scoped, vm_display
from claims.models import Network, Workload
from claims.models.workloads import ComparisonResult, WorkloadKind
from claims.workloads import adoption, results
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import columns, display, export, forms as fields, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

LIST = "admin:claims_workload_changelist"
MOST_SHOWN = 100  # rows of the page, and steps of an adoption plan
NETWORKS_PER_PAGE = 50  # each is compared as a whole
_ADOPT_PERMISSIONS = ("claims.view_workload", "claims.add_entry", "claims.change_entry")
_EXPORT_COLUMNS = (
    "result",
    "namespace",
    "name",
    "kind",
    "node",
    "registered_mac",
    "registered_ips",
    "running_mac",
    "running_ips",
    "reasons",
)


def _url(network_id: int, **more: Any) -> str:
    parameters = {key: value for key, value in more.items() if value}
    return reverse(LIST, query={"network": network_id, **parameters})


def _get_network(request: HttpRequest, network_id: str) -> Network:
    rows = scoped.rows(request, Network).select_related("cluster", "ippool")
    return scoped.row_or_404(rows, network_id)


# --- the networks ---------------------------------------------------------------------------------


def _overview_page(request: HttpRequest) -> HttpResponse:
    """Show the networks of one or all clusters, each with its counts by result."""
    clusters = list(scoped.rows(request, Cluster).order_by("name")[: scoped.MOST])
    cluster = lists.parse_id(request.GET.get("cluster", ""))
    after = lists.parse_id(request.GET.get("after", ""))
    rows = scoped.rows(request, Network).select_related("cluster")
    if cluster:
        rows = rows.filter(cluster_id=cluster)
    networks = list(rows.filter(pk__gt=after).order_by("pk")[: NETWORKS_PER_PAGE + 1])
    shown = networks[:NETWORKS_PER_PAGE]
    counts_by_network, counted_at = results.overview_counts(
        [network.pk for network in shown], scoped.request_scope(request)
    )
    last = shown[-1].pk if len(networks) > NETWORKS_PER_PAGE else 0
    return pages.page(
        request,
        "workloads.html",
        title=gettext("Workloads"),
        clusters=clusters,
        cluster=cluster,
        counted_at=counted_at,
        results=[str(result) for result in ComparisonResult],
        networks=[
            (
                network,
                [
                    (number, _url(network.pk, result=result))
                    for result, number in counts_by_network.get(network.pk, {}).items()
                ],
            )
            for network in shown
        ],
        more=reverse(LIST, query={"cluster": cluster or "", "after": last}) if last else "",
        everything=scoped.request_scope(request).everything,
    )


# --- one network ----------------------------------------------------------------------------------


def _chosen_result(request: HttpRequest) -> str:
    result = request.GET.get("result", "")
    return result if result in ComparisonResult.values else ""


def _rows(request: HttpRequest, network: Network) -> Any:
    rows = results.visible_rows(scoped.request_scope(request)).filter(network_id=network.pk)
    if result := _chosen_result(request):
        rows = rows.filter(result=result)
    if workload := lists.parse_id(request.GET.get("workload", "")):
        rows = rows.filter(workload_id=workload)
    return rows.order_by(*results.ORDER)


def _network_page(request: HttpRequest, network: Network) -> HttpResponse:
    rows = _rows(request, network)
    if after_query := _rows_after(request.GET.get("after", "")):
        rows = rows.filter(after_query)
    row_values = list(rows.values()[: MOST_SHOWN + 1])
    shown, chosen_result = row_values[:MOST_SHOWN], _chosen_result(request)
    scope = scoped.request_scope(request)
    counts_by_network, counted_at = results.overview_counts([network.pk], scope)
    counts = counts_by_network.get(network.pk) or results.result_counts(network.pk, scope)
    more_url = ""
    if len(row_values) > MOST_SHOWN:
        end = "-".join(str(shown[-1][column]) for column in results.ORDER)
        more_url = _url(network.pk, result=chosen_result, after=end)
    may_adopt = request.user.has_perms(_ADOPT_PERMISSIONS)
    return pages.page(
        request,
        "workloads_network.html",
        Workload,
        title=gettext("Workloads of %(network)s") % {"network": network.name},
        network=network,
        result=chosen_result,
        tabs=[(gettext("all"), sum(counts.values()), _url(network.pk), not chosen_result)]
        + [
            (result, number, _url(network.pk, result=result), result == chosen_result)
            for result, number in counts.items()
        ],
        comparisons=[_row_context(comparison) for comparison in results.render_rows(shown, scope)],
        more=more_url,
        first=_url(network.pk, result=chosen_result) if "after" in request.GET else "",
        may_adopt=may_adopt and any(counts[result] for result in adoption.ADOPTABLE),
        counted_at=counted_at,
        adoptable=[(result, counts[result]) for result in adoption.ADOPTABLE if counts[result]],
        exported=[(form, _export_url(form, network, chosen_result)) for form in export.FORMATS],
        call=f"networks/{network.pk}/workloads/"
        + (f"?result={chosen_result}" if chosen_result else ""),
    )


def _export_url(form: str, network: Network, result: str) -> str:
    query = {"network": network.pk, "result": result}
    return reverse("admin:claims_workload_export", args=[form], query=query)


def _row_context(comparison: dict[str, Any]) -> dict[str, Any]:
    workload, registered = comparison["workload"], comparison["registered"] or {}
    vm_key = (
        (workload.namespace, workload.name)
        if workload
        else (registered["namespace"], registered["vm"])
    )
    return comparison | {
        "state": result_badge(comparison["result"]),
        "vm": vm_display.vm_link(*vm_key) if vm_key[1] else "",
    }


_RESULT_STYLES = {
    ComparisonResult.MATCHING.value: ("ok", "●"),
    ComparisonResult.MISSING.value: ("pending", "○"),
    ComparisonResult.DIFFERENT.value: ("refused", "≠"),
    ComparisonResult.UNKNOWN.value: ("open", "?"),
}


def result_badge(result: str) -> SafeString:
    """Return a badge for the result of a comparison."""
    return display.badge(*_RESULT_STYLES[result], result)


def _rows_after(after: str) -> Q | None:
    """Return the filter for the rows after the key `section-item-beside`; None if `after` is no key."""
    numbers = [lists.parse_id(part) for part in after.split("-")]
    if len(numbers) != len(results.ORDER):
        return None
    section, item, position = numbers
    same_section = Q(section=section)
    return (
        Q(section__gt=section)
        | same_section & Q(item__gt=item)
        | same_section & Q(item=item, beside__gt=position)
    )


def _export_rows(request: HttpRequest, network: Network) -> Iterator[list[object]]:
    row_values = list(_rows(request, network).values()[: export.MOST])
    scope = scoped.request_scope(request)
    for first in range(0, len(row_values), 1000):
        for comparison in results.render_rows(row_values[first : first + 1000], scope):
            registered = comparison["registered"] or {}
            workload = comparison["workload"] or Workload()
            yield [
                comparison["result"],
                workload.namespace or registered.get("namespace", ""),
                workload.name or registered.get("vm", ""),
                workload.kind,
                workload.node,
                registered.get("mac"),
                " ".join(registered.get("ips", ())),
                workload.mac,
                " ".join(workload.ips),
                " ".join(reason["message"] for reason in comparison["reasons"]),
            ]


# --- adopting -------------------------------------------------------------------------------------


class AdoptForm(forms.Form):
    reason = fields.reason_field()


def _adopt_view(request: HttpRequest) -> HttpResponse:
    """Show the plan of an adoption; a POST carries it out."""
    pages.require(request, *_ADOPT_PERMISSIONS)
    parameters = request.POST if request.method == "POST" else request.GET
    network = _get_network(request, parameters.get("network", ""))
    ids = [lists.parse_id(text) for text in parameters.getlist("workload")[:MOST_SHOWN]]
    result = parameters.get("result", "")
    if not ids and result not in adoption.ADOPTABLE:
        messages.warning(request, gettext("Choose at least one workload."))
        return HttpResponseRedirect(_url(network.pk))
    if not hasattr(network, "ippool"):
        pages.require(request, "claims.add_ippool")
    scope = scoped.request_scope(request)
    selection: dict[str, Any] = {"ids": ids} if ids else {"result": result}
    form = AdoptForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.errors_as_messages(request):
            author = pages.author(request, form.cleaned_data["reason"])
            adopted = adoption.adopt(network, scope=scope, author=author, **selection)
            messages.success(request, _adoption_message(adopted))
        return HttpResponseRedirect(_url(network.pk))
    try:
        plan = adoption.plan(network, scope=scope, **selection)
    except errors.NotFound:
        raise Http404(gettext("There is no such workload.")) from None
    return pages.page(
        request,
        "workloads_adopt.html",
        Workload,
        title=gettext("Adopt running workloads?"),
        network=network,
        ids=ids,
        result=result,
        plan=plan,
        steps=plan.steps[:MOST_SHOWN],
        hidden_steps=max(len(plan.steps) - MOST_SHOWN, 0),
        changes=plan.count(adoption.CREATE) + plan.count(adoption.CHANGE),
        counts=[(label, plan.count(action)) for action, label in _ACTION_LABELS.items()],
        form=form,
        back=_url(network.pk),
    )


_ACTION_LABELS = {
    adoption.CREATE: _("added"),
    adoption.CHANGE: _("changed"),
    adoption.UNCHANGED: _("unchanged"),
    adoption.REFUSE: _("refused"),
}


def _adoption_message(plan: adoption.Plan) -> str:
    counts = [(plan.count(action), label) for action, label in _ACTION_LABELS.items()]
    return gettext("Entries of the IPPool %(ippool)s: %(counts)s.") % {
        "ippool": plan.ippool,
        "counts": ", ".join(f"{number} {label}" for number, label in counts if number)
        or gettext("no changes"),
    }


def _page(_request: HttpRequest, row: Workload) -> HttpResponse:
    """Redirect to the page of the workload's network, filtered to this workload."""
    return HttpResponseRedirect(_url(row.network_id, workload=row.pk))


def _network_links(row: Workload) -> SafeString:
    query = {"workload": row.pk}
    url = reverse("admin:claims_network_topology", args=[row.network_id], query=query)
    place = display.link(f"{url}#here", gettext("Where is this?"))
    return display.two_lines(display.row_link(row.network), place)


@admin.register(Workload)
class WorkloadAdmin(scoped.Scoped[Workload]):
    """The list is the page of comparisons; Find shows the columns."""

    list_display = (
        Column(
            "name",
            _("workload"),
            lambda row: format_html("{} {}", row.get_kind_display(), display.search_link(str(row))),
        ),
        columns.address("mac", _("MAC")),
        Column("ips", _("IPs"), lambda row: scoped.addresses(row.ips)),
        columns.text("phase", _("phase")),
        Column("network", _("network"), _network_links),
    )
    found_columns = ("name", "mac", "ips", "phase", "network")
    list_pages = (Page("adopt", _adopt_view),)
    row_pages = (Page("change", _page),)
    list_select_related = ("network__cluster",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Workload], search_term: str
    ) -> tuple[QuerySet[Workload], bool]:
        """Leave out the templates of VMs that run: the running VM is found."""
        matches, distinct = super().get_search_results(request, queryset, search_term)
        return matches.exclude(kind=WorkloadKind.TEMPLATE, phase="Running"), distinct

    def changelist_view(self, request: HttpRequest, *_args: Any, **_more: Any) -> HttpResponse:
        pages.require(request, "claims.view_workload")
        network_id = request.GET.get("network", "")
        return (
            _network_page(request, _get_network(request, network_id))
            if network_id
            else _overview_page(request)
        )

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """Download the rows of a network, with the filter of the page."""
        pages.require(request, "claims.view_workload")
        network = _get_network(request, request.GET.get("network", ""))
        return export.download(form, "workloads", _EXPORT_COLUMNS, _export_rows(request, network))
