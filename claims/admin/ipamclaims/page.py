"""The page of a claim: its request, its addresses, its findings, the next step; and that of all findings by code."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped, tables, time_bars
from claims.admin.ipamclaims import form
from claims.core.ipamclaims import dialects, ipamclaim
from claims.ipamclaims import findings, findings as codes, ipamclaims, states
from claims.models import IPAMClaim
from pools.models import Cluster, Finding
from pools.platform import documents
from pools.platform.admin import pages

_STATE_STYLES = {
    states.BOUND: ("cad-state-ok", "●"),
    states.PENDING: ("cad-state-pending", "◔"),
    states.FAILED: ("cad-state-degraded", "▲"),
    states.CONFLICT: ("cad-state-degraded", "≠"),
    states.LEAKED: ("cad-state-degraded", "◇"),
}
# Findings that name entries and claims of other namespaces.
_CODES_OF_OTHER_OBJECTS = {findings.DIFFERS_FROM_ENTRY, findings.DUPLICATE}


def state_badge(word: str, title: str = "") -> SafeString:
    """Return a badge for a claim's state; `title` is its tooltip."""
    style, shape = _STATE_STYLES[word]
    return format_html(
        '<span class="cad-state {}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        title,
        shape,
        word,
    )


def view(request: HttpRequest, claim: Any) -> HttpResponse:
    scope = scoped.request_scope(request)
    claim_findings = states.findings(claim)
    answered = claim.cluster_id in states.clusters_with_managed_claims({claim.cluster_id})
    codes = {finding.code for finding in claim_findings}
    return pages.page(
        request,
        "claim.html",
        claim,
        title=claim.name,
        claim=claim,
        bar=time_bars.of_claim(request, claim),
        everything=scope.everything,
        badge=state_badge(claim.state, states.state_description(claim)),
        state_text=states.state_description(claim),
        condition=dialects.allocation_condition(claim.conditions),
        raw=json.dumps(claim.conditions, indent=2, ensure_ascii=False) if claim.conditions else "",
        next_step=states.next_step(claim, codes, claims_managed=answered),
        findings=[
            finding
            for finding in claim_findings
            if scope.everything or finding.code not in _CODES_OF_OTHER_OBJECTS
        ],
        command=findings.remove_finalizer(vars(claim)) if claim.finalizers else "",
        duplicates=_duplicates(claim, scope),
        manifest=documents.dump_yaml(ipamclaims.manifest(claim)),
        vm_link=tables.vm_link(claim.namespace, claim.vm),
        vm=tables.manifest_text(
            claim.network,
            vm=claim.vm,
            namespace=claim.namespace,
            mac=claim.mac,
            scope=scope,
            missing_vm_text=gettext("No VM set for this claim."),
        ),
        may_write=form.may_change(request, claim),
        may_release=form.may_release(request)
        and bool(claim.ips)
        and bool(codes & {findings.LEAKED, findings.STUCK}),
        call=f"ipamclaims/{claim.pk}/",
    )


def _duplicates(claim: IPAMClaim, scope: Any) -> SafeString | str:
    claim_duplicates = duplicates.of_claims([claim], scope).get(claim.pk, [])
    return duplicate_list.badge(claim_duplicates, claim.network) if claim_duplicates else ""


MOST_PER_CODE = 200  # findings on the page
_TITLES = {
    codes.LEAKED: _("Leaked: the VM was deleted, its claim was not"),
    codes.STUCK: _("Deletion pending for a long time"),
    codes.UNKNOWN_NETWORK: _("Unknown network"),
    codes.REFUSED: _("No address assigned"),
    codes.DUPLICATE: _("Duplicate address or MAC address"),
    codes.OUTSIDE: _("Outside the network's subnets"),
    codes.DIFFERS_FROM_ENTRY: _("Differs from the MAC entry"),
    codes.DIFFERS_FROM_WORKLOAD: _("Differs from the running VM"),
    codes.NAME: _("Name that no VM refers to"),
    codes.COLLISION: _("Name collisions"),
    codes.UNWRITABLE: _("Requests that the object cannot represent"),
}


def _claim_findings(request: HttpRequest) -> Any:
    """Return the findings if the user sees all namespaces: a finding may name several."""
    if not scoped.request_scope(request).everything:
        return Finding.objects.none()
    # The unique index begins with the cluster.
    clusters = list(Cluster.objects.values_list("pk", flat=True))
    rows = Finding.objects.filter(cluster__in=clusters, kind=ipamclaim.KIND)
    rows = rows.select_related("cluster")
    return rows.order_by("cluster__name", "subject")


def count_problems(request: HttpRequest) -> int:
    return int(_claim_findings(request).count())


def problems_page(request: HttpRequest) -> HttpResponse:
    pages.require(request, "claims.view_ipamclaim", "claims.view_every_namespace")
    groups = []
    for code, title in _TITLES.items():
        rows = list(_claim_findings(request).filter(code=code)[: MOST_PER_CODE + 1])
        if rows:
            groups.append((code, title, rows[:MOST_PER_CODE], len(rows) > MOST_PER_CODE))
    claim_ids = {
        finding.details.get("id") for _code, _title, rows, _more in groups for finding in rows
    }
    return pages.page(
        request,
        "claim_problems.html",
        IPAMClaim,
        title=gettext("Claims: findings"),
        groups=groups,
        existing_claims=set(
            IPAMClaim.objects.filter(pk__in=claim_ids - {None}).values_list("pk", flat=True)
        ),
        may_release=form.may_release(request),
        call="ipamclaims/?state=leaked",
    )
