"""Calculators: pool for a pod, node demand, Cilium readiness check.

Their forms use GET, so that a result has a URL that can be shared.
"""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.cilium import configuration, pod_choice, pod_cidrs
from pools.core.cilium import multipool, pod_pool
from pools.core.cilium.preflight import PreflightFinding
from pools.platform.admin import forms as fields, pages


class MarksField(forms.CharField):
    """Labels or annotations, one `key=value` (or `key: value`) per line.

    Cleans to None if empty (use those of the cluster), and to {} for a single `-`.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", fields.lines(2, placeholder="app=web"))
        options.setdefault(
            "help_text", gettext('Leave empty to use the cluster\'s values; "-" for none.')
        )
        super().__init__(required=False, strip=False, **options)

    def clean(self, value: Any) -> Any:
        pairs: dict[str, str] = {}
        marks = super().clean(value)
        if marks.strip() == "-":
            return pairs
        for number, line in enumerate(marks.splitlines(), start=1):
            if not line.strip():
                continue
            key, sign, text = line.partition("=") if "=" in line else line.partition(":")
            if not (key.strip() and sign):
                message = gettext("Line %(number)s: expected key=value.") % {"number": number}
                raise forms.ValidationError(message, code="marks")
            pairs[key.strip()] = text.strip().strip("\"'")
        return pairs or None


class PodForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    pod = fields.name_field(label=_("Pod"), initial="web-0")
    pod_labels = MarksField(label=_("Pod labels"))
    pod_annotations = MarksField(
        label=_("Pod annotations"),
        widget=fields.lines(2, placeholder=f"{pod_pool.ANNOTATION}=green-pool"),
    )
    namespace = fields.name_field(label=_("Namespace"), initial="default")
    namespace_labels = MarksField(label=_("Namespace labels"))
    namespace_annotations = MarksField(label=_("Namespace annotations"))


def pool_for_pod(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.view_pool")
    form = _form_from_query(request, PodForm, "pod")
    choice = None
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        choice = pod_choice.explain(
            values["cluster"],
            pod=pod_pool.ObjectMetadata(
                values["pod"], values["pod_labels"], values["pod_annotations"]
            ),
            namespace=pod_pool.ObjectMetadata(
                values["namespace"], values["namespace_labels"], values["namespace_annotations"]
            ),
        )
    return pages.page(
        request,
        "guide_pod.html",
        title=gettext("Pool for a pod"),
        form=form,
        choice=choice,
        only_at_creation=pod_pool.ONLY_AT_CREATION,
    )


def _form_from_query(request: HttpRequest, kind: type[forms.Form], key: str) -> Any:
    """Return the form bound to the query string if it has `key`; else unbound, with initial values."""
    if key in request.GET:
        return kind(request.GET)
    initial = {name: request.GET[name] for name in kind.base_fields if name in request.GET}
    return kind(initial=initial)


class CountsField(forms.CharField):
    """Addresses per pool, for each IP family: `default=12,other=3`; {} if empty."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", fields.text(placeholder="default=12,other=3"))
        super().__init__(required=False, **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return fields.parse(multipool.parse_pre_allocation, text) if text else {}


class NodeForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    node = fields.name_field(
        label=_("Node"),
        required=False,
        help_text=_("An existing node keeps its blocks. Empty: a new node."),
    )
    in_use = CountsField(
        label=_("Addresses in use"), max_length=2000, help_text=_("Per pool, for each IP family.")
    )
    pending = CountsField(
        label=_("Pending pods"),
        max_length=2000,
        help_text=_("Pods that are scheduled on the node and have no address yet."),
    )
    pre_allocation = CountsField(
        label=_("Pre-allocation map"),
        max_length=2000,
        widget=fields.text(placeholder="default=8,other=4"),
        help_text=_(
            "The value of ipam-multi-pool-pre-allocation. Empty: the value of the "
            "cluster, or default=8."
        ),
    )


def demand_of_node(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.view_pool")
    form = _form_from_query(request, NodeForm, "in_use")
    demand = None
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        with pages.errors_at_field(form, "pre_allocation"):
            demand = pod_cidrs.forecast(
                values["cluster"],
                in_use=_both_families(values["in_use"]),
                pending=_both_families(values["pending"]),
                pre_allocation=values["pre_allocation"] or None,
                node=values["node"] or "",
            )
    return pages.page(
        request,
        "guide_node.html",
        title=gettext("Node demand calculator"),
        form=form,
        demand=demand,
    )


def _both_families(counts: dict[str, int]) -> dict[str, dict[int, int]]:
    return {pool: {4: count, 6: count} for pool, count in counts.items()}


class PreflightForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    release = forms.CharField(
        label=_("Cilium release"),
        required=False,
        max_length=40,
        widget=fields.text(placeholder="1.18.2"),
        help_text=_(
            "Used if the cluster does not report its release. Some limits apply to "
            "older releases only."
        ),
    )


def preflight(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.view_cluster", "pools.view_pool")
    form = _form_from_query(request, PreflightForm, "cluster")
    result = cluster = None
    if form.is_bound and form.is_valid():
        cluster = form.cleaned_data["cluster"]
        result = configuration.run_preflight(cluster, release=form.cleaned_data["release"])
    return pages.page(
        request,
        "preflight.html",
        title=gettext("Cilium readiness check"),
        form=form,
        result=result,
        cluster=cluster,
        findings=with_titles(result.findings) if result else [],
    )


_TITLES = {
    "ipam-mode": _("IPAM mode"),
    "native-routing": _("Native routing"),
    "pod-cidr-routes": _("Routes to pod CIDRs"),
    "per-endpoint-routes": _("Local node routes"),
    "encryption": "Encryption",
    "masquerading": "Masquerading",
    "native-routing-cidr": _("Masquerading with several pools"),
    "pre-allocation": _("Pre-allocation map"),
    "default-pool": _("Default pool"),
    "auto-create": _("Pools created by the operator"),
    "overlapping-pools": _("Overlapping pools"),
    "ipv6-mask-size": _("IPv6 mask size"),
    "new-cidr": _("New CIDR"),
    "reserve": _("Reservation"),
    "other-spaces": _("Other clusters and networks"),
    "room": _("Capacity"),
    "order": _("Order of steps"),
    "nodes": _("Nodes"),
    "cluster": _("CRD of the cluster"),
}


def with_titles(findings: Iterable[PreflightFinding]) -> list[tuple[str, PreflightFinding]]:
    """Return each finding with the labels of the rules that have the same result, observation and advice."""
    first: dict[tuple[Any, ...], PreflightFinding] = {}
    titles: dict[tuple[Any, ...], list[str]] = {}
    for finding in findings:
        text = (finding.result, finding.observation, finding.advice)
        first.setdefault(text, finding)
        titles.setdefault(text, []).append(str(_TITLES.get(finding.rule, finding.rule)))
    return [(", ".join(titles[text]), finding) for text, finding in first.items()]
