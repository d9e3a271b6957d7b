"""Claims with which something is wrong, by what it is, each with what can safely be done."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.ipamclaims import form
from claims.core.ipamclaims import ipamclaim
from claims.ipamclaims import findings as codes
from claims.models import IPAMClaim
from pools.models import Finding
from pools.platform.admin import pages

MOST = 200  # of one kind on the page
_TITLES = {
    codes.LEAKED: "Leaked: the VM is gone, the claim stays",
    codes.STUCK: "Deletion pending for a long time",
    codes.UNKNOWN_NETWORK: "Unknown network",
    codes.REFUSED: "No address assigned",
    codes.DUPLICATE: "Duplicate address or MAC address",
    codes.OUTSIDE: "Outside the network's subnets",
    codes.DIFFERS_FROM_ENTRY: "Differs from the MAC entry",
    codes.DIFFERS_FROM_WORKLOAD: "Differs from the running VM",
    codes.NAME: "Name that no VM refers to",
    codes.COLLISION: "Name collisions",
    codes.UNWRITABLE: "Requests that the object cannot represent",
}


def _rows(request: HttpRequest) -> Any:
    """For those who see everything: a finding may tell of several namespaces."""
    if not scoped.request_scope(request).everything:
        return Finding.objects.none()
    rows = Finding.objects.filter(kind=ipamclaim.KIND).select_related("cluster")
    return rows.order_by("cluster__name", "subject")


def count(request: HttpRequest) -> int:
    return int(_rows(request).count())


def view(request: HttpRequest) -> HttpResponseBase:
    pages.require(request, "claims.view_ipamclaim", "claims.view_every_namespace")
    groups = []
    for code, title in _TITLES.items():
        rows = list(_rows(request).filter(code=code)[: MOST + 1])
        if rows:
            groups.append((code, title, rows[:MOST], len(rows) > MOST))
    claim_ids = {finding.details.get("id") for _, _, rows, _ in groups for finding in rows}
    return pages.page(
        request,
        "claim_problems.html",
        title=gettext("Claims: findings"),
        opts=IPAMClaim._meta,
        groups=groups,
        there=set(IPAMClaim.objects.filter(pk__in=claim_ids - {None}).values_list("pk", flat=True)),
        may_release=form.may_release(request),
        call="ipamclaims/?state=leaked",
    )
