"""leaks/: list leaked blocks and reclaim them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.blocks import BlockSerializer
from pools.core import block_fields
from pools.models import Leak
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import HolderSerializer, Representation, Serializer
from pools.register.leaks import detection, reclaim, reports

MOST = 1000  # blocks in one request
_STATES = ("leaked", "suspected")
_OUTCOMES = ("reclaimed", "repeated", "refused")


class LeakHolderSerializer(Representation):
    """The holder of the block when it was missed."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")
    uid = fields.TextField(source="holder_uid")


class LeakSerializer(Representation):
    """A block whose holder nobody refers to any more; also the rows of `ipam leaks`."""

    id = fields.IntegerField()
    block_id = fields.IntegerField()
    cidr = fields.CIDRField(source="block.cidr")
    address = serializers.SerializerMethodField()
    pool = fields.TextField(source="block.pool.name")
    pool_id = fields.IntegerField(source="block.pool_id")
    cluster = fields.TextField(source="block.pool.cluster.name")
    holder = LeakHolderSerializer(source="*")
    org = fields.TextField()
    env = fields.TextField()
    state = fields.ChoiceField(_STATES)
    source = fields.TextField()
    why = serializers.SerializerMethodField()
    allocated_at = fields.TimeField()
    missed_at = fields.TimeField()
    observed_at = fields.TimeField()
    observations = fields.IntegerField()
    confirmed_at = fields.TimeField(allow_null=True)

    def get_address(self, leak: Leak) -> str | None:
        return block_fields.host_address(str(leak.block.cidr))

    def get_why(self, leak: Leak) -> str:
        return reports.describe_observation(leak)


class ReclaimSerializer(Serializer):
    """The holder of a leaked block as it was observed; what is left out is not compared."""

    holder = HolderSerializer()
    org = fields.IdentifierField(required=False)
    allocated_at = fields.TimeField(required=False)
    reason = fields.ReasonField()


class ReclaimTargetSerializer(Serializer):
    """A leaked block with its holder as it was observed; what is left out is not compared."""

    id = fields.IntegerField(min_value=1, max_value=(1 << 63) - 1)
    holder = HolderSerializer()
    org = fields.IdentifierField(required=False)
    allocated_at = fields.TimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        return _target(attrs.pop("id"), attrs)


class ReclaimAllSerializer(Serializer):
    blocks = fields.ListField(child=ReclaimTargetSerializer(), min_length=1, max_length=MOST)
    reason = fields.ReasonField()


class ReclaimResultSerializer(Representation):
    """The result for one block; `code` and `message` say why it was refused."""

    id = fields.IntegerField(source="target.block_id")
    outcome = fields.ChoiceField(_OUTCOMES)
    block = BlockSerializer(allow_null=True)
    code = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()

    def get_code(self, result: reclaim.ReclaimResult) -> str:
        return result.error.code if result.error else ""

    def get_message(self, result: reclaim.ReclaimResult) -> str:
        return result.error.message if result.error else ""


class ReclaimResultListSerializer(Representation):
    results = fields.ListField(child=ReclaimResultSerializer())


class LeakFilter(filters.FilterSet):
    state = filters.choice(
        *_STATES,
        select=lambda rows, state: detection.suspected_leaks() if state == "suspected" else rows,
        help_text="Without it, leaked.",
    )
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    pool = filters.Filter(
        lookups.pools, field_name="block__pool", lookup_expr="in", help_text="Name or id."
    )
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    source = filters.Filter(help_text="The source of the observation, such as tooling or nodes.")
    org = filters.Filter(field_name="block__org")
    env = filters.Filter(field_name="block__env")
    since = filters.time(
        field_name="missed_at", lookup_expr="gte", help_text="Missed at or after this time."
    )
    until = filters.time(
        field_name="missed_at", lookup_expr="lt", help_text="Missed before this time."
    )


class Leaks(generics.ListViewSet):
    """Leaked blocks, which nobody refers to any more."""

    queryset = Leak.objects.all()
    serializer_class = LeakSerializer
    filterset_class = LeakFilter
    limited_by = ("cluster", "pool")

    def get_queryset(self) -> QuerySet[Leak]:
        return detection.confirmed_leaks()

    def load(self, rows: list[Any]) -> None:
        rows[:] = reports.load_blocks(rows)

    @extend_schema(request=ReclaimAllSerializer, responses=ReclaimResultListSerializer)
    @generics.post_action(
        "pools.reclaim", detail=False, idempotent=True, url_path="reclaim", url_name="reclaim-all"
    )
    def reclaim_all(self, request: Request) -> Response:
        """Reclaim leaked blocks, with a result for each of them."""
        values = self.read(request, ReclaimAllSerializer)
        author = self.author(values["reason"])

        def work() -> Any:
            results = reclaim.reclaim_all(values["blocks"], author=author)
            return ReclaimResultListSerializer({"results": list(results)}).data

        return self.once(request, work)


class Reclaim(generics.GenericView):
    needs = {"POST": ("pools.reclaim",)}
    idempotent = ("POST",)
    serializer_class = ReclaimSerializer

    @extend_schema(responses=BlockSerializer)
    def post(self, request: Request, block_id: int) -> Response:
        """Reclaim a leaked block; its holder is compared with that of the request."""
        values = self.read(request)
        author = self.author(values["reason"])
        target = _target(block_id, values)
        return self.once(request, lambda: reclaim.reclaim(target, author=author).block)


def _target(block_id: int, values: dict[str, Any]) -> reclaim.ReclaimTarget:
    holder = values["holder"]
    return reclaim.ReclaimTarget(
        block_id, holder["kind"], holder["id"], holder["uid"] or None,
        values.get("org"), values.get("allocated_at"),
    )  # fmt: skip
