"""The tenures of a holder, found by kind and id or by uid; also in deleted pools and clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from pools.models import AddressSpace, Block, BlockEvent, BlockState, Pool, PoolEvent
from pools.platform.history import search
from pools.register.history import addresses
from pools.register.history.addresses import Tenure


@dataclass(frozen=True)
class TenurePage:
    """A page of tenures, newest first; `below` is the argument for the next page, None at the end."""

    tenures: list[Tenure]
    below: int | None


# Returns the entries that named a MAC or a VM at a time, as rows of `ipam who`.
AddressNamer = Callable[[str, int | None, datetime], list[dict[str, Any]]]
ADDRESS_NAMERS: list[AddressNamer] = []  # filled by pools.extension


def find_tenures(
    *,
    kind: str = "",
    holder: str = "",
    uid: str = "",
    cluster_id: int | None = None,
    moment: datetime | None = None,
    start: datetime | None = None,
    below: int | None = None,
    limit: int = 100,
) -> TenurePage:
    """Return the tenures of a holder, its uid, or both.

    With `moment` only those that covered it, with `start` those that covered any moment from that to `moment`.
    """
    if not holder:
        return _find_by_uid(kind, uid, cluster_id, moment, below, limit)
    rows = BlockEvent.objects.filter(holder_id=holder).exclude(state="available")
    if kind:
        rows = rows.filter(holder_kind=kind)
    if uid:
        rows = rows.filter(holder_uid=uid)
    if cluster_id is not None:
        rows = rows.filter(_in_cluster(cluster_id))
    if moment is not None:
        rows = rows.filter(pgh_created_at__lte=moment)
    tenures: list[Tenure] = []
    while True:
        page = rows if below is None else rows.filter(pgh_id__lt=below)
        events = list(page.order_by("-pgh_id")[: limit + 1])
        page_tenures = addresses.build_tenures(events[:limit])
        tenures += [
            tenure for tenure in page_tenures if moment is None or tenure.covers(moment, start)
        ]
        below = events[limit - 1].pgh_id if len(events) > limit else None
        if moment is None or below is None or len(tenures) >= limit:
            return TenurePage(tenures, below)


_MOST_BLOCKS = 20_000  # of a pool that are counted by holder
_MOST_EVENTS = 5_000  # that are read of the largest holders


def find_largest(pool: Pool) -> dict[tuple[str, str], list[Tenure]]:
    """Return the tenures in a pool of the (kind, id) that hold most of its blocks now, the largest first.

    They are ten, or three or one if ten have thousands of events: whoever is returned has all of their tenures.
    """
    held = Block.objects.filter(pool=pool, state=BlockState.HELD)
    sample = held.filter(pk__in=held.values("pk")[:_MOST_BLOCKS]).values("holder_kind", "holder_id")
    ranking = sample.annotate(number=Count("pk")).order_by("-number", "holder_kind", "holder_id")
    names = [(row["holder_kind"], row["holder_id"]) for row in ranking[:10]]
    rows = BlockEvent.objects.filter(pool_id=pool.pk).exclude(state=BlockState.AVAILABLE)
    for most in (10, 3, 1):
        largest: dict[tuple[str, str], list[Tenure]] = {name: [] for name in names[:most]}
        events = list(rows.filter(holder_id__in=[name for _, name in largest])[: _MOST_EVENTS + 1])
        if len(events) <= _MOST_EVENTS:
            for tenure in addresses.build_tenures(events):
                name = (tenure.holder["kind"], tenure.holder["id"])
                largest.get(name, []).append(tenure)
            return largest
    return {}


def _find_by_uid(
    kind: str,
    uid: str,
    cluster_id: int | None,
    moment: datetime | None,
    below: int | None,
    limit: int,
) -> TenurePage:
    criteria = search.HistoryQuery(
        uid=uid, holder_kind=kind, cluster_id=cluster_id, kind="block", until=None
    )
    search_result = search.search([criteria], below=below, limit=limit)
    rows = BlockEvent.objects.filter(pk__in=[event.pk for event in search_result.events])
    tenures = addresses.build_tenures(list(rows.exclude(state="available").order_by("-pgh_id")))
    if moment is not None:
        tenures = [tenure for tenure in tenures if tenure.covers(moment)]
    return TenurePage(tenures, search_result.below)


def _in_cluster(cluster_id: int) -> Q:
    spaces = AddressSpace.objects.filter(cluster=cluster_id).values("pk")
    pools = PoolEvent.objects.filter(cluster_id=cluster_id).values("pgh_obj_id")
    return Q(space_id__in=spaces) | Q(pool_id__in=pools)
