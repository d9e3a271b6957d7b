"""blocks/: list blocks, release a block, end a cooldown."""

from functools import partial
from typing import Any

import orjson
from django.db.models import QuerySet, Value
from django.db.models.functions import Concat
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools import tasks
from pools.api import lookups
from pools.core import block_fields, dns_names, errors, holders
from pools.models import LIVE, AddressSpace, Block, BlockState, Category, Pool
from pools.platform import database
from pools.platform.rest import fields, filters, generics, keyset, parsing, query
from pools.platform.rest.serializers import HolderSerializer, Representation, Serializer
from pools.register import block_lists, dns
from pools.register.allocator import allocation
from pools.sql import statements


class ImportedSerializer(Representation):
    """What another register says about an address; `details` are its status, role, site, MAC address and the like."""

    description = fields.TextField()
    details = fields.StringMapField()


# Describes the answers, which `block_fields.block_answer` makes: a page of 1,000 model instances with
# their serializer takes twice as long.
class BlockSerializer(Representation):
    """A block that is held or cooling; `address` is that of a block of one address."""

    id = fields.IntegerField()
    cidr = fields.CIDRField()
    address = fields.AddressField(allow_null=True)
    family = fields.IntegerField()
    pool = fields.TextField()
    pool_id = fields.IntegerField()
    cluster = fields.TextField()
    holder = HolderSerializer()
    org = fields.TextField()
    env = fields.TextField()
    state = fields.ChoiceField(BlockState.values)
    withheld = fields.FlagField()
    allocated_at = fields.TimeField(allow_null=True)
    released_at = fields.TimeField(allow_null=True)
    cooldown_until = fields.TimeField(allow_null=True)


class BlockDetailsSerializer(BlockSerializer):
    """A block with its DNS name and what an import of a register says about it, if there is either."""

    dns_name = fields.TextField(required=False)
    imported = ImportedSerializer(required=False)


class ReleaseSerializer(Serializer):
    """A release by the holder, or by force: then the holder is not compared, and a reason is required."""

    example = {"holder": {"kind": "vm", "id": "web-0"}}

    holder = HolderSerializer(required=False)
    org = fields.IdentifierField(required=False, default="")
    force = fields.FlagField(required=False, default=False)
    reason = fields.ReasonField(required=False, default="")


class _ReleaseByHolder(ReleaseSerializer):
    holder = HolderSerializer()


class _ReleaseByForce(ReleaseSerializer):
    holder = fields.ParsedField(required=False)  # type: ignore[assignment]  # ignored, whatever it is
    reason = fields.ReasonField()


# Made once: DRF copies all fields for each instance, which takes a tenth of a release. Reading changes none.
_BY_HOLDER, _BY_FORCE = _ReleaseByHolder(), _ReleaseByForce()


class BlockChangeSerializer(Serializer):
    """The DNS name of a held block, "" for none; with `holder` only if it still has the block."""

    example = {"dns_name": "web.example.org"}

    dns_name = fields.TextField(dns_names.parse_name)
    holder = HolderSerializer(required=False)


class EndCooldownSerializer(Serializer):
    reason = fields.ReasonField()


class BlockFilter(filters.FilterSet):
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: block_lists.filter_by_cluster(rows, cluster.pk),
        help_text="Name or id.",
    )
    pool = filters.Filter(lookups.pools, method="filter_pool", help_text="Name or id.")
    within = filters.cidr(method="filter_within", help_text="Blocks inside of this CIDR.")
    address = filters.address(
        method="filter_address", help_text="The blocks that contain this address."
    )
    state = filters.choice(*LIVE)
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    org = filters.Filter()
    env = filters.Filter()
    node = filters.Filter(method="filter_holder", help_text="The node that holds the block.")
    instance = filters.Filter(
        method="filter_holder", help_text="The instance that holds the block."
    )
    category = filters.choice(*Category.values)
    family = filters.choice("4", "6")

    def filter_pool(self, rows: QuerySet[Block], _name: str, pools: list[int]) -> QuerySet[Block]:
        spaces = Pool.objects.filter(pk__in=pools).values_list("space_id", flat=True)
        return rows.filter(pool__in=pools, space__in=list(spaces))

    def filter_within(self, rows: QuerySet[Block], _name: str, cidr: str) -> QuerySet[Block]:
        # With the list of spaces, PostgreSQL reads one range of the index (space, cidr) for each.
        spaces = AddressSpace.objects.values_list("pk", flat=True)
        return rows.filter(cidr__net_contained_or_equal=cidr, space__in=list(spaces))

    def filter_address(self, rows: QuerySet[Block], _name: str, address: str) -> QuerySet[Block]:
        # The few CIDRs that a block with the address can have, which PostgreSQL looks up one by one.
        cidrs = block_lists.blocks_around(address)
        spaces = AddressSpace.objects.values_list("pk", flat=True)
        return rows.filter(cidr__in=cidrs, space__in=list(spaces))

    def filter_holder(self, rows: QuerySet[Block], kind: str, value: str) -> QuerySet[Block]:
        return rows.filter(holder_kind=kind, holder_id=value)


# Of this state PostgreSQL knows nothing, so that it takes nearly all blocks for such, and reads the primary key, or the
# index of addresses, in its order. While its statistics are old, or there are none, it would else read all blocks
# in use and sort them: 1.4 s for a million.
_UNFILTERED = Block.objects.annotate(plain_state=Concat("state", Value(""))).exclude(
    plain_state=BlockState.AVAILABLE
)


class Blocks(generics.ModelViewSet):
    needs = {"GET": ("pools.view_block",), "PATCH": ("pools.allocate",)}
    queryset = Block.objects.filter(state__in=LIVE)
    serializer_class = BlockSerializer
    lookup_url_kwarg = "block_id"
    absent = "There is no such block."
    row_text = "A block that is held or cooling."
    filterset_class = BlockFilter
    limited_by = ("cluster", "pool")
    keys_only = True
    # "cidr" sorts by address within each address space: that is the order of an index.
    orderings = {"id": ("id",), "cidr": ("space_id", "cidr")}

    def get_queryset(self) -> QuerySet[Block]:
        is_filtered = not BlockFilter.base_filters.keys().isdisjoint(self.request.query_params)
        return super().get_queryset() if is_filtered else _UNFILTERED.all()

    def list(self, request: Request) -> Response:
        """Blocks that are held or cooling."""
        if (page := self._plain_page(request)) is not None:
            return Response(page)
        keys = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(_read_blocks([key["pk"] for key in keys]))

    def _plain_page(self, request: Request) -> dict[str, Any] | None:
        """Return a page without filters, in the order of ids, in one round trip.

        None for all else, also for wrong parameters, which are reported with all others.
        """
        parameters = dict(request.GET.lists())
        limits, cursors = (parameters.pop(name, [""]) for name in ("limit", "cursor"))
        if parameters or len(limits) > 1 or len(cursors) > 1:
            return None
        try:
            limit = _limit(limits[0], "limit") if limits[0] else keyset.DEFAULT_LIMIT
            cursor = keyset.decode_cursor(cursors[0], "cursor") if cursors[0] else (False, [0])
        except errors.InvalidInput:
            return None
        backward, values = cursor
        if (
            backward
            or len(values) != 1
            or type(values[0]) is not int
            or not 0 <= values[0] < 1 << 62
        ):
            return None
        rows = orjson.loads(database.call(_PAGE, [values[0], limit + 1]))
        blocks = [block_fields.named_block_answer(row) for row in rows[:limit]]
        link = partial(keyset.link, request, columns=["id"])
        return {
            "next": link(blocks[-1], backward=False) if len(rows) > limit else None,
            "previous": link(blocks[0], backward=True) if blocks and cursors[0] else None,
            "results": blocks,
        }

    @extend_schema(responses=BlockDetailsSerializer)
    def retrieve(self, request: Request, block_id: int) -> Response:
        return Response(_read_block(block_id))

    @extend_schema(request=BlockChangeSerializer, responses=BlockDetailsSerializer)
    def partial_update(self, request: Request, block_id: int) -> Response:
        """Set the DNS name of a held block of one address."""
        values = self.read(request, BlockChangeSerializer)
        holder = holders.Holder(**values["holder"]) if "holder" in values else None
        dns.set_name(block_id, values["dns_name"], author=self.author(), holder=holder)
        return Response(_read_block(block_id))

    @extend_schema(request=ReleaseSerializer)
    @generics.post_action("pools.allocate", idempotent=True)
    def release(self, request: Request, block_id: int) -> Response:
        """Release a block; its holder is compared with that of the request.

        A release by force needs a reason and the permission `pools.force_release`.
        """
        document = parsing.document(request)
        is_forced = isinstance(document, dict) and document.get("force") is True
        values = (_BY_FORCE if is_forced else _BY_HOLDER).run_validation(document)
        holder = None if is_forced else holders.Holder(**values["holder"])
        if is_forced:
            generics.require(request, "pools.force_release")
        author = self.author(values["reason"])

        def work() -> Any:
            result = allocation.release(
                block_id, holder, author=author, org=values["org"], force=is_forced
            )
            if result.has_pending_requests:
                tasks.nudge(result.block["pool_id"])
            return result.block

        return self.once(request, work)

    @extend_schema(request=EndCooldownSerializer)
    @generics.post_action("pools.force_release", idempotent=True, url_path="end-cooldown")
    def end_cooldown(self, request: Request, block_id: int) -> Response:
        """End the cooldown of a block before its time."""
        author = self.author(self.read(request, EndCooldownSerializer)["reason"])

        def work() -> Any:
            block = allocation.skip_cooldown(block_id, author=author)
            tasks.nudge(block["pool_id"])
            return block

        return self.once(request, work)


# PostgreSQL writes the rows as JSON: for a page of 100, the ORM's conversions of addresses and times take
# half of the request; for one block, its writing of the statement does (docs/performance.md).
_BLOCK = statements.read("pools/block_details")
_PAGE = "SELECT ipam_block_page(%s::bigint, %s::int)::text"
_limit = query.integer(1, keyset.MAX_LIMIT)
# Not with an array of one: PostgreSQL plans that anew each time, which takes three times as long as the rest.
_BLOCKS = "SELECT ipam_blocks(%s::bigint[])::text"


def _read_block(block_id: int) -> dict[str, Any]:
    """Return a block with its details. Raises NotFound."""
    row = database.call(_BLOCK, {"block": block_id})
    if not row:
        raise errors.NotFound(Blocks.absent)
    details = orjson.loads(row)
    answer = dict(block_fields.named_block_answer(details.pop("row")))
    return answer | {name: value for name, value in details.items() if value}


def _read_blocks(ids: list[int]) -> list[block_fields.BlockAnswer]:
    """Return the answers for these blocks in this order; blocks that are not in use are left out."""
    array = f"{{{','.join(map(str, ids))}}}"
    rows = orjson.loads(database.call(_BLOCKS, [array]))
    return [block_fields.named_block_answer(row) for row in rows]
