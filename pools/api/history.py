"""events/, history/, holders/…/history/ and pools/{id}/at/: the event log, searches of it, past states, and two moments compared."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.core import addresses, errors
from pools.models import BlockEvent, Category, Event
from pools.platform import database
from pools.platform.history import representation, search
from pools.platform.history.search import HistoryQuery
from pools.platform.rest import fields, filters, generics, keyset, query
from pools.platform.rest.serializers import ByFamilySerializer, Representation
from pools.register import event_filters
from pools.register.history import (
    addresses as history_addresses,
    comparison,
    holders as history_holders,
    pools,
)

_STATES = ("present", "deleted", "absent")


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


class PastRangeSerializer(Representation):
    range = fields.TextField(source="span", schema={"type": "string", "format": "ip-range"})
    reason = fields.TextField()


class PastCIDRSerializer(Representation):
    cidr = fields.CIDRField()
    orphaned = fields.FlagField()
    reserved_ranges = fields.ListField(child=PastRangeSerializer(), source="reserved")


class PastCountsSerializer(Representation):
    """Counts of blocks; `cooling` is null if there were too many to count."""

    capacity = fields.CountField()
    held = fields.CountField()
    cooling = fields.CountField(allow_null=True)
    withheld = fields.CountField()


class PastFamiliesSerializer(ByFamilySerializer):
    ipv4 = PastCountsSerializer(required=False)
    ipv6 = PastCountsSerializer(required=False)


class PastSettingsSerializer(Representation):
    """The settings of a pool at a time."""

    name = fields.TextField()
    category = fields.ChoiceField(Category.values)
    mask_size_v4 = fields.IntegerField(allow_null=True)
    mask_size_v6 = fields.IntegerField(allow_null=True)
    cooldown_seconds = fields.IntegerField()
    allow_first_ip = fields.FlagField()
    allow_last_ip = fields.FlagField()
    description = fields.TextField()


class PastPoolSerializer(Representation):
    """A pool at a time, with a page of those who held its blocks then."""

    pool_id = fields.IntegerField(source="snapshot.pool_id")
    at = fields.TimeField(source="snapshot.moment")
    state = fields.ChoiceField(_STATES, source="snapshot.state")
    cluster = fields.TextField(source="snapshot.cluster")
    settings = PastSettingsSerializer(source="snapshot.settings", allow_null=True)
    cidrs = fields.ListField(child=PastCIDRSerializer(), source="snapshot.cidrs")
    counts = PastFamiliesSerializer(source="snapshot.counts")
    next = fields.ParsedField(schema={"type": "string", "format": "uri"}, allow_null=True)
    previous = fields.ParsedField(schema={"type": "string", "format": "uri"}, allow_null=True)
    results = fields.ListField(child=TenureSerializer())


class HistoryFilter(filters.FilterSet):
    """The criteria of a search; `q` is any of them."""

    address = filters.Filter(
        addresses.parse_block,
        help_text="An address or a CIDR.",
    )
    mac = filters.Filter("parse_mac")
    holder_kind = filters.Filter()
    holder = filters.Filter(help_text="Its id.")
    uid = filters.Filter()
    vm = filters.Filter(help_text="namespace/name or name.")
    org = filters.Filter()
    env = filters.Filter()
    actor = filters.Filter(help_text="Who did it.")
    name = filters.Filter(help_text="Of a pool, a cluster, a network, a claim or a file.")
    cluster = filters.Filter("parse_cluster", help_text="Name or id.")
    kind = filters.Filter("parse_kind", help_text="Such as block, pool, entry or import.")
    object = filters.integer(1, 10**17, help_text="The id of an object of this kind.")
    since = filters.Filter(history_addresses.parse_past_time, schema={"format": "date-time"})
    until = filters.time()
    q = filters.Filter(help_text="Any of these: an address, a MAC address, a name.")

    def parse_kind(self, value: str, name: str) -> str:
        return query.choice(*search.kinds())(value, name)

    def parse_mac(self, value: str, name: str) -> str:
        parsed = (read(value) for read in search.TEXT_READERS)
        mac_criteria = [criteria for criteria in parsed if criteria and criteria.mac]
        if not mac_criteria:
            raise errors.InvalidInput.for_field(name, "mac_syntax", "is no MAC address", value)
        return mac_criteria[0].mac

    def parse_cluster(self, value: str, name: str) -> int:
        sees_clusters = self.request.user.has_perm(search.VIEW_EVENTS)
        current_cluster = lookups.find_cluster(value)
        # For users who may not see clusters both lookups run: otherwise the duration would reveal
        # whether the cluster exists.
        cluster_id = (
            None
            if current_cluster and sees_clusters
            else history_addresses.find_former_cluster(value)
        )
        cluster_id = current_cluster.pk if current_cluster else cluster_id
        # For these users an unknown cluster is the same as a cluster without visible objects.
        return cluster_id or (lookups.cluster(value, name).pk if sees_clusters else 0)


_FIELD_OF = {"address": "network", "cluster": "cluster_id", "object": "object_id"}


class _HistoryView(generics.GenericView):
    """An answer with a page of the history."""

    pagination_class: Any = keyset.NumberPagination
    pages = keyset.NumberPagination()

    def read_page(self) -> tuple[dict[str, Any], int, int | None]:
        """Return the values of the filters, the rows of a page, and the cursor. InvalidInput."""
        values = filters.bind(self, self.request, self.get_queryset()).values()
        limit, below = self.pages.read(self.parameters)
        self.parameters.raise_problems()
        return values, limit, below

    def page_document(self, results: Any, below: int | None) -> dict[str, Any]:
        return self.pages.document(self.request, results, below)


class History(_HistoryView, generics.ListView):
    """Requires one of search.PERMISSIONS; the permissions of the user limit the results."""

    needs = {"GET": ()}
    queryset = Event.objects.all()
    serializer_class = representation.EventSerializer
    filterset_class = HistoryFilter

    def get(self, request: Request) -> Response:
        """Search the history, the newest event first.

        A page may be short, and have a `next` link, if the search took long.
        """
        if not any(request.user.has_perm(name) for name in search.PERMISSIONS):
            raise errors.NotAllowed("This needs the permission pools.view_event.")
        values, limit, below = self.read_page()
        text = values.pop("q", "")
        base = HistoryQuery(**{_FIELD_OF.get(name, name): values[name] for name in values})
        alternatives = [base]
        if text:
            alternatives = [
                merge_criteria(base, criteria) for criteria in search.queries_of_text(text)
            ]
        page = search.search(alternatives, user=request.user, below=below, limit=limit)
        representation.load(page.events, search.changes(page.events, user=request.user))
        results = self.get_serializer(page.events, many=True).data
        return Response(self.page_document(results, page.below))


class TenureFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.current_or_former_cluster_id, help_text="Name or id.")
    at = filters.Filter(
        history_addresses.parse_past_time,
        schema={"format": "date-time"},
        help_text="Blocks that it held then.",
    )


class HolderTenureFilter(TenureFilter):
    uid = filters.Filter(help_text="Of the holder with this uid only.")


class _TenureView(_HistoryView, generics.ListView):
    needs = {"GET": ("pools.view_block",)}
    queryset = BlockEvent.objects.all()
    serializer_class = TenureSerializer
    filterset_class: Any = TenureFilter

    def answer(self, *, kind: str = "", holder: str = "", uid: str = "") -> Response:
        values, limit, below = self.read_page()
        page = history_holders.find_tenures(
            kind=kind,
            holder=holder,
            uid=uid or values.get("uid", ""),
            cluster_id=values.get("cluster"),
            moment=values.get("at"),
            below=below,
            limit=limit,
        )
        results = self.get_serializer(page.tenures, many=True).data
        return Response(self.page_document(results, page.below))


class HolderHistory(_TenureView):
    filterset_class = HolderTenureFilter

    def get(self, request: Request, kind: str, holder: str) -> Response:
        """The blocks that a holder held, and when."""
        return self.answer(kind=kind, holder=holder)


class UidHistory(_TenureView):
    def get(self, request: Request, uid: str) -> Response:
        """The blocks that the holder with a uid held, and when."""
        return self.answer(uid=uid)


class PoolAt(_HistoryView):
    needs = {"GET": ("pools.view_pool", "pools.view_block")}
    serializer_class = PastPoolSerializer

    @filters.parameters(
        at=filters.Filter(
            history_addresses.parse_past_time,
            schema={"format": "date-time"},
            help_text="Default: now.",
        ),
        limit=filters.Filter(schema={"type": "integer"}, help_text="Holders of a page."),
        cursor=filters.Filter(help_text="The cursor of a `next` link."),
    )
    def get(self, request: Request, pool_id: int) -> Response:
        """A pool at a time, and who held its blocks then."""
        timestamp = self.parameters.parse("at", history_addresses.parse_past_time) or database.now()
        limit, below = self.pages.read(self.parameters)
        self.parameters.raise_problems()
        snapshot = pools.pool_snapshot(pool_id, timestamp)
        page = pools.pool_holders(pool_id, timestamp, below=below, limit=limit)
        return self.respond({"snapshot": snapshot, **self.page_document(page.tenures, page.below)})


def merge_criteria(base: HistoryQuery, criteria: HistoryQuery) -> HistoryQuery:
    """Return the criteria of both; a value of `criteria` replaces that of `base`."""
    filled = {name: value for name, value in vars(criteria).items() if value}
    return replace(base, **filled)


class EventFilter(filters.FilterSet):
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: event_filters.of_cluster(rows, cluster.pk),
        help_text="Name or id.",
    )
    pool = filters.Filter(lookups.pools, select=event_filters.of_pools, help_text="Name or id.")
    type = filters.Filter(help_text="Such as instance.allocated.")
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    org = filters.Filter()
    env = filters.Filter()
    actor = filters.Filter()
    request_id = filters.Filter()
    block = filters.Filter(query.block, field_name="cidr", schema={"format": "cidr"})
    since = filters.time(field_name="at", lookup_expr="gte", help_text="Included.")
    until = filters.time(field_name="at", lookup_expr="lt", help_text="Not included.")


class Events(generics.ListView):
    """Events, the newest first."""

    queryset = Event.objects.all()
    serializer_class = representation.EventSerializer
    filterset_class = EventFilter
    limited_by = ("cluster", "pool")
    ordering = "-id"

    def load(self, rows: list[Any]) -> None:
        representation.load(rows)


class DifferenceSerializer(Representation):
    """A block whose holder differs between the two moments."""

    change = fields.ChoiceField(comparison.CHANGES)
    block = fields.CIDRField()
    cluster = fields.TextField()
    pool = fields.TextField()
    before = TenureHolderSerializer(allow_null=True)
    after = TenureHolderSerializer(allow_null=True)
    org = fields.TextField()
    env = fields.TextField()
    changed_at = fields.TimeField()


class ChangeCountsSerializer(Representation):
    gained = fields.IntegerField()
    lost = fields.IntegerField()
    moved = fields.IntegerField()


class ComparisonSerializer(Representation):
    """A page of differences, the last changed first; the counts are of all pages."""

    since = fields.TimeField()
    until = fields.TimeField()
    counts = ChangeCountsSerializer()
    next = fields.ParsedField(schema={"type": "string", "format": "uri"}, allow_null=True)
    previous = fields.ParsedField(schema={"type": "string", "format": "uri"}, allow_null=True)
    results = fields.ListField(child=DifferenceSerializer())


class ComparisonFilter(filters.FilterSet):
    since = filters.Filter(
        history_addresses.parse_past_time,
        schema={"format": "date-time"},
        help_text="The earlier moment. Default: a day before the later one.",
    )
    until = filters.Filter(
        history_addresses.parse_past_time,
        schema={"format": "date-time"},
        help_text="The later moment. Default: now.",
    )
    cluster = filters.Filter(lookups.current_or_former_cluster_id, help_text="Name or id.")
    pool = filters.Filter(lookups.pools, help_text="Name or id; a VM network's has its name.")


class ComparisonView(_HistoryView, generics.ListView):
    needs = {"GET": ("pools.view_pool", "pools.view_block")}
    queryset = BlockEvent.objects.all()
    serializer_class = ComparisonSerializer
    filterset_class = ComparisonFilter
    limited_by = ("cluster", "pool")

    @extend_schema(responses=forced_singular_serializer(ComparisonSerializer))
    def get(self, request: Request) -> Response:
        """Compare two moments of a pool, a cluster or the fleet."""
        values, limit, below = self.read_page()
        until = values.get("until") or database.now()
        result = comparison.compare(
            values.get("since") or until - timedelta(days=1),
            until,
            comparison.select_pools(values.get("cluster"), values.get("pool")),
            below=below,
            limit=limit,
        )
        page = self.page_document(result.differences, result.below)
        return self.respond({**vars(result), **page})
