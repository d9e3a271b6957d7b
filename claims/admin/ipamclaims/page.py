"""The page of a claim: its request, its addresses, its findings, and the next step."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped, tables, vm_text
from claims.admin.ipamclaims import form
from claims.core.ipamclaims import dialects
from claims.ipamclaims import findings, ipamclaims, states
from claims.models import IPAMClaim
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
        vm=vm_text.manifest_text(
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
