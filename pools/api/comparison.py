"""history/compare/: the blocks that were gained, lost, or moved to another holder between two moments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.history import TenureHolderSerializer
from pools.models import BlockEvent
from pools.platform import database
from pools.platform.rest import fields, filters, generics, keyset
from pools.platform.rest.serializers import Representation
from pools.register.history import addresses as history_addresses, comparison


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


class ComparisonView(generics.ListView):
    needs = {"GET": ("pools.view_pool", "pools.view_block")}
    queryset = BlockEvent.objects.all()
    serializer_class = ComparisonSerializer
    filterset_class = ComparisonFilter
    pagination_class: Any = keyset.NumberPagination
    limited_by = ("cluster", "pool")

    def get(self, request: Request) -> Response:
        """Compare two moments of a pool, a cluster or the fleet."""
        pages = keyset.NumberPagination()
        values = filters.bind(self, request, self.get_queryset()).values()
        limit, below = pages.read(self.parameters)
        self.parameters.raise_problems()
        until = values.get("until") or database.now()
        result = comparison.compare(
            values.get("since") or until - timedelta(days=1),
            until,
            comparison.select_pools(values.get("cluster"), values.get("pool")),
            below=below,
            limit=limit,
        )
        page = pages.document(request, result.differences, result.below)
        return self.respond({**vars(result), **page})
