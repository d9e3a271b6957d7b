"""history/, holders/…/history/ and pools/{id}/at/: search the history, and past states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import events as event_shapes
from pools.api import lookups
from pools.api.schemas import history as schema
from pools.core import addresses, block_fields, errors
from pools.models import Event
from pools.platform import database
from pools.platform.history import search
from pools.platform.history.search import HistoryQuery
from pools.platform.rest import fields, pagination, query, views
from pools.platform.rest.serializers import Representation
from pools.register.history import addresses as history_addresses
from pools.register.history import holders as history_holders
from pools.register.history import pools


class TenureHolderSerializer(Representation):
    kind = fields.TextField()
    id = fields.TextField()
    uid = fields.TextField()


class TenureSerializer(Representation):
    """The time in which one holder held a block; `until` is null while it lasts."""

    cluster = fields.TextField()
    space = fields.TextField()
    pool = fields.TextField()
    block = fields.CIDRField()
    state = fields.TextField()
    holder = TenureHolderSerializer()
    org = fields.TextField()
    env = fields.TextField()
    since = fields.TimeField()
    until = fields.TimeField(allow_null=True)


class History(views.View):
    """Requires one of search.PERMISSIONS; the permissions of the user limit the results."""

    needs = {"GET": ()}

    @extend_schema(**schema.HISTORY)
    def get(self, request: Request) -> views.Answer:
        if not any(request.user.has_perm(name) for name in search.PERMISSIONS):
            raise errors.NotAllowed("This needs the permission pools.view_event.")
        parameters = query.Query(request)
        base = _criteria(parameters, names_clusters=request.user.has_perm(search.VIEW_EVENTS))
        text = parameters.text("q")
        limit, below = _page(parameters)
        parameters.done()
        alternatives = [base]
        if text:
            alternatives = [
                merge_criteria(base, criteria) for criteria in search.queries_of_text(text)
            ]
        page = search.search(alternatives, user=request.user, below=below, limit=limit)
        results = event_documents(page.events, request.user)
        return views.answer(_page_document(request, results, page.below))


class HolderHistory(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**schema.HOLDER)
    def get(self, request: Request, kind: str, holder: str) -> views.Answer:
        return _tenure_history(request, kind=kind, holder=holder)


class UidHistory(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**schema.UID)
    def get(self, request: Request, uid: str) -> views.Answer:
        return _tenure_history(request, uid=uid)


class PoolAt(views.View):
    needs = {"GET": ("pools.view_pool", "pools.view_block")}

    @extend_schema(**schema.POOL_AT)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        parameters = query.Query(request)
        timestamp = parameters.parse("at", lookups.past_time) or database.now()
        limit, below = _page(parameters)
        parameters.done()
        snapshot = pools.pool_snapshot(pool_id, timestamp)
        page = pools.pool_holders(pool_id, timestamp, below=below, limit=limit)
        holders = [tenure.as_json() for tenure in page.tenures]
        return views.answer(
            _snapshot_shape(snapshot) | _page_document(request, holders, page.below)
        )


def _criteria(parameters: query.Query, *, names_clusters: bool) -> HistoryQuery:
    def network(value: str, name: str) -> addresses.Network:
        return addresses.parse_block(value, field=name)

    def cluster(value: str, name: str) -> int:
        current_cluster = lookups.find_cluster(value)
        # For users who may not see clusters both lookups run: otherwise the duration would reveal
        # whether the cluster exists.
        cluster_id = (
            None
            if current_cluster and names_clusters
            else history_addresses.find_former_cluster(value)
        )
        cluster_id = current_cluster.pk if current_cluster else cluster_id
        # For these users an unknown cluster is the same as a cluster without visible objects.
        return cluster_id or (lookups.cluster(value, name).pk if names_clusters else 0)

    def number(value: str, name: str) -> int:
        return query.integer(1, 10**17)(value, name)

    def mac(value: str, name: str) -> str:
        parsed = (read(value) for read in search.TEXT_READERS)
        mac_criteria = [criteria for criteria in parsed if criteria and criteria.mac]
        if not mac_criteria:
            raise errors.InvalidInput.for_field(name, "mac_syntax", "is no MAC address", value)
        return mac_criteria[0].mac

    strings = {
        name: parameters.text(name) or ""
        for name in ("holder_kind", "holder", "uid", "vm", "org", "env", "actor", "name")
    }
    return HistoryQuery(
        network=parameters.parse("address", network),
        mac=parameters.parse("mac", mac) or "",
        cluster_id=parameters.parse("cluster", cluster),
        kind=parameters.parse("kind", query.choice(*search.kinds())) or "",
        object_id=parameters.parse("object", number),
        since=parameters.parse("since", lookups.past_time),
        until=parameters.parse("until", query.moment),
        **strings,
    )


def merge_criteria(base: HistoryQuery, criteria: HistoryQuery) -> HistoryQuery:
    """Return the criteria of both; a value of `criteria` replaces that of `base`."""
    filled = {name: value for name, value in vars(criteria).items() if value}
    return replace(base, **filled)


def _page(parameters: query.Query) -> tuple[int, int | None]:
    limit = parameters.parse("limit", query.integer(1, pagination.MOST)) or pagination.DEFAULT
    return limit, parameters.parse("cursor", query.integer(1, 10**17))


def _page_document(request: Request, results: list[Any], below: int | None) -> dict[str, Any]:
    next_url = None
    if below is not None:
        next_parameters = request.query_params.copy()
        next_parameters["cursor"] = str(below)
        next_url = request.build_absolute_uri(f"{request.path}?{next_parameters.urlencode()}")
    return {"next": next_url, "previous": None, "results": results}


def event_documents(events: list[Event], user: Any) -> list[dict[str, Any]]:
    """Return the JSON objects of events, with the states that the user may see."""
    columns = [field.attname for field in Event._meta.concrete_fields]
    rows = [{name: getattr(event, name) for name in columns} for event in events]
    return event_shapes.shapes(rows, search.changes(events, user=user))


def _tenure_history(
    request: Request, *, kind: str = "", holder: str = "", uid: str = ""
) -> views.Answer:
    parameters = query.Query(request)
    cluster = parameters.parse("cluster", lookups.current_or_former_cluster_id)
    timestamp = parameters.parse("at", lookups.past_time)
    uid = uid or parameters.text("uid") or ""
    limit, below = _page(parameters)
    parameters.done()
    page = history_holders.find_tenures(
        kind=kind,
        holder=holder,
        uid=uid,
        cluster_id=cluster,
        moment=timestamp,
        below=below,
        limit=limit,
    )
    return views.answer(
        _page_document(request, [tenure.as_json() for tenure in page.tenures], page.below)
    )


def _snapshot_shape(snapshot: pools.PoolSnapshot) -> dict[str, Any]:
    settings_row = snapshot.settings
    settings = (
        {}
        if settings_row is None
        else {name: getattr(settings_row, name) for name in schema.SETTINGS}
    )
    return {
        "pool_id": snapshot.pool_id,
        "at": block_fields.time(snapshot.moment),
        "state": "absent" if settings_row is None else "deleted" if snapshot.deleted else "present",
        "cluster": pools.cluster_name(snapshot),
        "settings": settings or None,
        "cidrs": [
            {
                "cidr": str(entry.cidr),
                "orphaned": entry.orphaned,
                "reserved_ranges": [
                    {"range": f"{span.first}-{span.last}", "reason": reason}
                    for span, reason in entry.reserved
                ],
            }
            for entry in snapshot.cidrs
        ],
        "counts": {
            f"ipv{family}": {
                "capacity": str(entry.capacity),
                "held": str(entry.held),
                "cooling": None if entry.cooling is None else str(entry.cooling),
                "withheld": str(entry.withheld),
            }
            for family, entry in snapshot.counts.items()
        },
    }
