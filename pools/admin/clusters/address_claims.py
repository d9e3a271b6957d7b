"""Claims of Cluster API on the page of their cluster, and among the results of a search."""

from collections.abc import Iterable, Sequence

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.admin import find
from pools.cluster_api import claims
from pools.cluster_api.claims import ListedClaim
from pools.core.cluster_api import contract
from pools.models import Cluster, ObservedObject
from pools.platform.admin import display

_SHOWN = 20


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


def _objects(rows: list[ObservedObject], more: str) -> Iterable[find.Section]:
    """Yield the section of claims of Cluster API, and that of other objects."""
    shown = [row for row in rows if row.kind == contract.CLAIM_KIND and row.missed_at is None]
    others = [row for row in rows if row not in shown]
    if shown:
        yield _section(shown, more=more)
    if others:
        yield find.row_table(gettext("Cluster objects"), others, more)


TABLES: dict[type, find.Table] = {ObservedObject: _objects}


def _section(rows: Iterable[ObservedObject], more: str = "") -> find.Section:
    return find.tables(
        find.AdminTable(
            gettext("Claims of Cluster API"),
            (gettext("Claim"), gettext("Pool"), gettext("Address"), gettext("State")),
            [_cells(claim) for claim in claims.describe(rows)],
            more,
        )
    )


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
