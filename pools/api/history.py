"""history/, holders/…/history/ and pools/{id}/at/: what was, and who had what."""

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
from pools.platform.rest import pagination, query, views
from pools.register.history import addresses as history_addresses
from pools.register.history import holders as history_holders
from pools.register.history import pools


class History(views.View):
    """Needs one of history_search.PERMISSIONS, which limits what is found."""

    needs = {"GET": ()}

    @extend_schema(**schema.HISTORY)
    def get(self, request: Request) -> views.Answer:
        if not any(request.user.has_perm(name) for name in search.PERMISSIONS):
            raise errors.NotAllowed("This needs the permission pools.view_event.")
        parameters = query.Query(request)
        base = _wanted(parameters, names_clusters=request.user.has_perm(search.VIEW_EVENTS))
        text = parameters.text("q")
        limit, below = _page(parameters)
        parameters.done()
        alternatives = [base]
        if text:
            alternatives = [merged(base, one) for one in search.queries_of_text(text)]
        found = search.search(alternatives, user=request.user, below=below, limit=limit)
        results = told(found.events, request.user)
        return views.answer(_paged(request, results, found.below))


class HolderHistory(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**schema.HOLDER)
    def get(self, request: Request, kind: str, holder: str) -> views.Answer:
        return _held(request, kind=kind, holder=holder)


class UidHistory(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**schema.UID)
    def get(self, request: Request, uid: str) -> views.Answer:
        return _held(request, uid=uid)


class PoolAt(views.View):
    needs = {"GET": ("pools.view_pool", "pools.view_block")}

    @extend_schema(**schema.POOL_AT)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        parameters = query.Query(request)
        moment = parameters.parse("at", lookups.past) or database.now()
        limit, below = _page(parameters)
        parameters.done()
        standing = pools.pool_snapshot(pool_id, moment)
        found = pools.pool_holders(pool_id, moment, below=below, limit=limit)
        holders = [one.as_json() for one in found.tenures]
        return views.answer(_standing(standing) | _paged(request, holders, found.below))


def _wanted(parameters: query.Query, *, names_clusters: bool) -> HistoryQuery:
    def network(value: str, name: str) -> addresses.Network:
        return addresses.parse_block(value, field=name)

    def cluster(value: str, name: str) -> int:
        found = lookups.find_cluster(value)
        # Who may not see clusters has both looked up, or the work would tell that there is one.
        former = None if found and names_clusters else history_addresses.find_former_cluster(value)
        former = found.pk if found else former
        # To whom clusters are not told an unknown one is like one in which they see nothing.
        return former or (lookups.cluster(value, name).pk if names_clusters else 0)

    def number(value: str, name: str) -> int:
        return query.integer(1, 10**17)(value, name)

    def mac(value: str, name: str) -> str:
        found = [one for one in (read(value) for read in search.TEXT_READERS) if one and one.mac]
        if not found:
            raise errors.InvalidInput.for_field(name, "mac_syntax", "is no MAC address", value)
        return found[0].mac

    texts = {
        name: parameters.text(name) or ""
        for name in ("holder_kind", "holder", "uid", "vm", "org", "env", "actor", "name")
    }
    return HistoryQuery(
        network=parameters.parse("address", network),
        mac=parameters.parse("mac", mac) or "",
        cluster_id=parameters.parse("cluster", cluster),
        kind=parameters.parse("kind", query.choice(*search.kinds())) or "",
        object_id=parameters.parse("object", number),
        since=parameters.parse("since", lookups.past),
        until=parameters.parse("until", query.moment),
        **texts,
    )


def merged(base: HistoryQuery, one: HistoryQuery) -> HistoryQuery:
    """Both must hold."""
    said = {name: value for name, value in vars(one).items() if value}
    return replace(base, **said)


def _page(parameters: query.Query) -> tuple[int, int | None]:
    limit = parameters.parse("limit", query.integer(1, pagination.MOST)) or pagination.DEFAULT
    return limit, parameters.parse("cursor", query.integer(1, 10**17))


def _paged(request: Request, results: list[Any], below: int | None) -> dict[str, Any]:
    following = None
    if below is not None:
        given = request.query_params.copy()
        given["cursor"] = str(below)
        following = request.build_absolute_uri(f"{request.path}?{given.urlencode()}")
    return {"next": following, "previous": None, "results": results}


def told(found: list[Event], user: Any) -> list[dict[str, Any]]:
    """Events as REST tells them, with what the user may know of the states before and after."""
    columns = [field.attname for field in Event._meta.concrete_fields]
    rows = [{name: getattr(one, name) for name in columns} for one in found]
    return event_shapes.shapes(rows, search.changes(found, user=user))


def _held(request: Request, *, kind: str = "", holder: str = "", uid: str = "") -> views.Answer:
    parameters = query.Query(request)
    cluster = parameters.parse("cluster", lookups.past_or_present)
    at = parameters.parse("at", lookups.past)
    uid = uid or parameters.text("uid") or ""
    limit, below = _page(parameters)
    parameters.done()
    found = history_holders.find_tenures(
        kind=kind, holder=holder, uid=uid, cluster_id=cluster, moment=at, below=below, limit=limit
    )
    return views.answer(_paged(request, [one.as_json() for one in found.tenures], found.below))


def _standing(standing: pools.PoolSnapshot) -> dict[str, Any]:
    said = standing.settings
    settings = {} if said is None else {name: getattr(said, name) for name in schema.SETTINGS}
    return {
        "pool_id": standing.pool_id,
        "at": block_fields.time(standing.moment),
        "state": "absent" if said is None else "deleted" if standing.deleted else "present",
        "cluster": pools.cluster_name(standing),
        "settings": settings or None,
        "cidrs": [
            {
                "cidr": str(one.cidr),
                "orphaned": one.orphaned,
                "reserved_ranges": [
                    {"range": f"{span.first}-{span.last}", "reason": reason}
                    for span, reason in one.reserved
                ],
            }
            for one in standing.cidrs
        ],
        "counts": {
            f"ipv{family}": {
                "capacity": str(one.capacity),
                "held": str(one.held),
                "cooling": None if one.cooling is None else str(one.cooling),
                "withheld": str(one.withheld),
            }
            for family, one in standing.counts.items()
        },
    }
