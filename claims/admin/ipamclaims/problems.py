"""The page of findings about claims, grouped by code, each with a safe remedy."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.admin.ipamclaims import form
from claims.core.ipamclaims import ipamclaim
from claims.ipamclaims import findings as codes
from claims.models import IPAMClaim
from pools.models import Cluster, Finding
from pools.platform.admin import pages

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


def count(request: HttpRequest) -> int:
    return int(_claim_findings(request).count())


def view(request: HttpRequest) -> HttpResponse:
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
