"""Claims of Cluster API on the page of their cluster, and among the results of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.admin import find
from pools.cluster_api import claims
from pools.cluster_api.claims import ListedClaim
from pools.core.cluster_api import contract
from pools.models import Cluster, ObservedObject
from pools.platform.admin import display, search_text

_SHOWN = 20
_TEMPLATE = "cadastre/tables.html"


@dataclass(frozen=True)
class _Table:
    """A table of templates/cadastre/tables.html."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[SafeString | str]]
    more: str = ""


def section_of_cluster(request: HttpRequest, cluster: Cluster) -> find.Section | None:
    """Return the first claims of a cluster for its page; None without claims, or without the permission."""
    if not request.user.has_perm("pools.view_observedobject"):
        return None
    rows = list(claims.claims_of_cluster(cluster)[: _SHOWN + 1])
    if not rows:
        return None
    query = {"cluster": cluster.pk, "kind": contract.CLAIM_KIND}
    all_objects = reverse("admin:pools_observedobject_changelist", query=query)
    return _section(rows[:_SHOWN], more=all_objects if len(rows) > _SHOWN else "")


def finder(request: HttpRequest, searched: search_text.SearchText) -> Iterator[find.Section]:
    """Yield at most one section: the claims of the name that is searched for."""
    is_name = searched.address is None and searched.network is None
    if is_name and request.user.has_perm("pools.view_observedobject"):
        rows = list(claims.find_claims(searched.text).select_related("cluster")[: find.MOST])
        if rows:
            yield _section(rows)


def _section(rows: Iterable[ObservedObject], more: str = "") -> find.Section:
    table = _Table(
        title=gettext("Claims of Cluster API"),
        head=(gettext("Claim"), gettext("Pool"), gettext("Address"), gettext("State")),
        rows=[_cells(claim) for claim in claims.describe(rows)],
        more=more,
    )
    return find.Section(_TEMPLATE, {"tables": [table]})


def _cells(claim: ListedClaim) -> Sequence[SafeString | str]:
    row, block = claim.row, claim.block
    pool = str(claim.pool) if claim.pool else display.DASH
    if block is not None:
        pool = display.two_lines(display.row_link(block.pool), pool)
    return (
        display.row_link(row, f"{row.namespace}/{row.name}"),
        pool,
        display.address_link(block.cidr.network_address) if block else display.DASH,
        _state(claim),
    )


def _state(claim: ListedClaim) -> SafeString:
    if claim.is_answered:
        return display.state("fulfilled")
    if not claim.reason:
        return display.state("pending", gettext("not answered yet"))
    return display.two_lines(display.state("refused", claim.reason), claim.message)
