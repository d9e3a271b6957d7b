"""Workloads: does what runs agree with the register?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.admin import scoped, tables
from claims.models import Network, Workload
from claims.models.workload_comparisons import ComparisonResult
from claims.workloads import adoption, results
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import export, lists, pages
from pools.platform.admin import forms as fields

LIST = "admin:claims_workload_changelist"
SHOWN = 100  # rows, and steps of a plan
NETWORKS = 50  # on one page, each compared as a whole
_ADOPTING = ("claims.view_workload", "claims.add_entry", "claims.change_entry")
_EXPORTED = (
    "verdict", "namespace", "name", "kind", "node", "registered_mac", "registered_ips",
    "running_mac", "running_ips", "reasons",
)  # fmt: skip


@admin.register(Workload)
class WorkloadAdmin(scoped.Scoped[Workload]):
    def changelist_view(  # type: ignore[override]
        self, request: HttpRequest, *_args: Any, **_more: Any
    ) -> HttpResponseBase:
        pages.require(request, "claims.view_workload")
        chosen = request.GET.get("network", "")
        return _network(request, _get_network(request, chosen)) if chosen else _overview(request)

    def change_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """One workload is shown among those of its network."""
        pages.require(request, "claims.view_workload")
        row = self.row_or_404(request, object_id)
        return HttpResponseRedirect(_url(row.network_id, workload=row.pk))

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """The rows of a network, with the filter of the page."""
        pages.require(request, "claims.view_workload")
        network = _get_network(request, request.GET.get("network", ""))
        return export.download(form, "workloads", _EXPORTED, _exported(request, network))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(_adopt)
        return [path("adopt/", view, name="claims_workload_adopt"), *super().get_urls()]


def _url(network_id: int, **more: Any) -> str:
    chosen = {key: value for key, value in more.items() if value}
    return reverse(LIST, query={"network": network_id, **chosen})


def _get_network(request: HttpRequest, network_id: str) -> Network:
    rows = scoped.rows(request, Network).select_related("cluster", "ippool")
    return scoped.row_or_404(rows, network_id)


# --- the networks ---------------------------------------------------------------------------------


def _overview(request: HttpRequest) -> HttpResponseBase:
    """The networks of a cluster, each with its counts."""
    clusters = list(scoped.rows(request, Cluster).order_by("name")[: scoped.MOST])
    cluster = lists.number(request.GET.get("cluster", ""))
    after = lists.number(request.GET.get("after", ""))
    rows = scoped.rows(request, Network).select_related("cluster")
    if cluster:
        rows = rows.filter(cluster_id=cluster)
    networks = list(rows.filter(pk__gt=after).order_by("pk")[: NETWORKS + 1])
    shown = networks[:NETWORKS]
    counted = results.counts_by_network(
        [network.pk for network in shown], scoped.request_scope(request)
    )
    last = shown[-1].pk if len(networks) > NETWORKS else 0
    return pages.page(
        request,
        "workloads.html",
        title=gettext("Workloads"),
        clusters=clusters,
        cluster=cluster,
        answers=[str(answer) for answer in ComparisonResult],
        networks=[
            (network, [(number, _url(network.pk, verdict=answer)) for answer, number in counted[network.pk].items()])
            for network in shown
        ],
        more=reverse(LIST, query={"cluster": cluster or "", "after": last}) if last else "",
        everything=scoped.request_scope(request).everything,
    )  # fmt: skip


# --- one network ----------------------------------------------------------------------------------


def _chosen(request: HttpRequest) -> str:
    verdict = request.GET.get("verdict", "")
    return verdict if verdict in ComparisonResult.values else ""


def _rows(request: HttpRequest, network: Network) -> Any:
    rows = results.visible_rows(scoped.request_scope(request)).filter(network_id=network.pk)
    if verdict := _chosen(request):
        rows = rows.filter(verdict=verdict)
    if workload := lists.number(request.GET.get("workload", "")):
        rows = rows.filter(workload_id=workload)
    return rows.order_by(*results.ORDER)


def _network(request: HttpRequest, network: Network) -> HttpResponseBase:
    rows = _rows(request, network)
    if beyond := _beyond(request.GET.get("after", "")):
        rows = rows.filter(beyond)
    row_values = list(rows.values()[: SHOWN + 1])
    shown, verdict = row_values[:SHOWN], _chosen(request)
    counted = results.result_counts(network.pk, scoped.request_scope(request))
    more = ""
    if len(row_values) > SHOWN:
        end = "-".join(str(shown[-1][column]) for column in results.ORDER)
        more = _url(network.pk, verdict=verdict, after=end)
    may_adopt = request.user.has_perms(_ADOPTING)
    return pages.page(
        request,
        "workloads_network.html",
        title=(gettext("Workloads of %(network)s") % {"network": network.name}),
        opts=Workload._meta,
        network=network,
        verdict=verdict,
        tabs=[("all", sum(counted.values()), _url(network.pk), not verdict)]
        + [
            (answer, number, _url(network.pk, verdict=answer), answer == verdict)
            for answer, number in counted.items()
        ],
        found=[_shown(comparison) for comparison in results.render_rows(shown)],
        more=more,
        first=_url(network.pk, verdict=verdict) if "after" in request.GET else "",
        may_adopt=may_adopt and any(counted[answer] for answer in adoption.ADOPTABLE),
        adoptable=[(answer, counted[answer]) for answer in adoption.ADOPTABLE if counted[answer]],
        exported=[(form, _export_url(form, network, verdict)) for form in export.FORMATS],
        call=f"networks/{network.pk}/workloads/" + (f"?verdict={verdict}" if verdict else ""),
    )


def _export_url(form: str, network: Network, verdict: str) -> str:
    query = {"network": network.pk, "verdict": verdict}
    return reverse("admin:claims_workload_export", args=[form], query=query)


def _shown(comparison: dict[str, Any]) -> dict[str, Any]:
    workload, registered = comparison["workload"], comparison["registered"] or {}
    vm_key = (
        (workload["namespace"], workload["name"])
        if workload
        else (registered["namespace"], registered["vm"])
    )
    return comparison | {
        "state": state(comparison["verdict"]),
        "vm": tables.vm(*vm_key) if vm_key[1] else "",
    }


_STATES = {
    ComparisonResult.MATCHING.value: ("ok", "●"),
    ComparisonResult.MISSING.value: ("pending", "○"),
    ComparisonResult.DIFFERENT.value: ("refused", "≠"),
    ComparisonResult.UNKNOWN.value: ("open", "?"),
}


def state(verdict: str) -> SafeString:
    """A verdict: word, shape and colour."""
    style, shape = _STATES[verdict]
    return format_html(
        '<span class="cad-state cad-state-{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        shape,
        verdict,
    )


def _beyond(after: str) -> Q | None:
    """The rows after `section-item-beside`."""
    numbers = [lists.number(part) for part in after.split("-")]
    if len(numbers) != len(results.ORDER):
        return None
    section, item, beside = numbers
    same = Q(section=section)
    return (
        Q(section__gt=section)
        | same & Q(item__gt=item)
        | same & Q(item=item, beside__gt=beside)
    )  # fmt: skip


def _exported(request: HttpRequest, network: Network) -> Iterator[list[object]]:
    row_values = list(_rows(request, network).values()[: export.MOST])
    for first in range(0, len(row_values), 1000):
        for comparison in results.render_rows(row_values[first : first + 1000]):
            registered, running = comparison["registered"] or {}, comparison["running"] or {}
            workload = comparison["workload"] or {}
            yield [
                comparison["verdict"],
                workload.get("namespace") or registered.get("namespace", ""),
                workload.get("name") or registered.get("vm", ""),
                workload.get("kind", ""),
                workload.get("node", ""),
                registered.get("mac"),
                " ".join(registered.get("ips", ())),
                running.get("mac"),
                " ".join(running.get("ips", ())),
                " ".join(reason["message"] for reason in comparison["reasons"]),
            ]


# --- adopting -------------------------------------------------------------------------------------


class AdoptForm(forms.Form):
    reason = fields.reason_field()


def _adopt(request: HttpRequest) -> HttpResponseBase:
    """Say what adopting changes, then do it."""
    pages.require(request, *_ADOPTING)
    parameters = request.POST if request.method == "POST" else request.GET
    network = _get_network(request, parameters.get("network", ""))
    ids = [lists.number(text) for text in parameters.getlist("workload")[:SHOWN]]
    verdict = parameters.get("verdict", "")
    if not ids and verdict not in adoption.ADOPTABLE:
        messages.warning(request, gettext("Choose at least one workload."))
        return HttpResponseRedirect(_url(network.pk))
    if not hasattr(network, "ippool"):
        pages.require(request, "claims.add_ippool")
    scope = scoped.request_scope(request)
    chosen: dict[str, Any] = {"ids": ids} if ids else {"verdict": verdict}
    form = AdoptForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.errors_as_messages(request):
            author = pages.author(request, form.cleaned_data["reason"])
            done = adoption.adopt(network, scope=scope, author=author, **chosen)
            messages.success(request, _adoption_message(done))
        return HttpResponseRedirect(_url(network.pk))
    try:
        plan = adoption.plan(network, scope=scope, **chosen)
    except errors.NotFound:
        raise Http404(gettext("There is no such workload.")) from None
    return pages.page(
        request,
        "workloads_adopt.html",
        title=gettext("Adopt running workloads?"),
        opts=Workload._meta,
        network=network,
        ids=ids,
        verdict=verdict,
        plan=plan,
        steps=plan.steps[:SHOWN],
        left=max(len(plan.steps) - SHOWN, 0),
        changes=plan.count(adoption.CREATE) + plan.count(adoption.CHANGE),
        counts=[(action, plan.count(action)) for action in _WORDS],
        form=form,
        back=_url(network.pk),
    )


_WORDS = {
    adoption.CREATE: "added",
    adoption.CHANGE: "changed",
    adoption.UNCHANGED: "right already",
    adoption.REFUSE: "refused",
}


def _adoption_message(plan: adoption.Plan) -> str:
    counts = [(plan.count(action), words) for action, words in _WORDS.items()]
    summary = ", ".join(f"{number} {words}" for number, words in counts if number)
    return gettext("Entries of the IPPool %(ippool)s: %(value)s.") % {
        "ippool": plan.ippool,
        "value": summary or "nothing to do",
    }
