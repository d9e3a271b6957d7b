"""pools/{id}/allocations/, requests/ that wait for blocks, and environments/: which of them lack addresses since when."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Prefetch
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.blocks import BlockSerializer
from pools.core import dns_names, errors, holders, object_reader
from pools.core.holders import MOST_BLOCKS
from pools.models import AllocationRequest, Block, Environment, Pool, RequestState
from pools.platform.rest import fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import HolderSerializer, Representation, Serializer
from pools.register import dns, environments
from pools.register.allocator import allocation, requests

_POOLS = Prefetch("pool", Pool.objects.select_related("cluster"))
_REQUESTS = AllocationRequest.objects.prefetch_related(_POOLS)


class RequestHolderSerializer(Representation):
    """The first holder of the request."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")


class AllocationRequestSerializer(Representation):
    """A request for blocks that waits, or has waited, for free blocks."""

    id = fields.IntegerField()
    state = fields.ChoiceField(RequestState.values)
    pool = fields.TextField(source="pool.name")
    pool_id = fields.IntegerField()
    cluster = fields.TextField(source="pool.cluster.name")
    holder = RequestHolderSerializer(source="*")
    org = fields.TextField()
    env = fields.TextField()
    attempts = fields.IntegerField()
    message = fields.TextField(source="last_error")
    block_ids = fields.ListField(child=fields.IntegerField())
    created_at = fields.TimeField()
    next_try_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)


class AllocationRequestFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, field_name="pool__cluster", help_text="Name or id.")
    pool = filters.Filter(lookups.pools, lookup_expr="in", help_text="Name or id.")
    state = filters.choice(*RequestState.values)
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    org = filters.Filter()
    env = filters.Filter()


class Requests(generics.ModelViewSet):
    """Allocation requests that wait, or have waited, for free blocks."""

    needs = {"GET": ("pools.view_allocationrequest",), "DELETE": ("pools.allocate",)}
    queryset = _REQUESTS
    serializer_class = AllocationRequestSerializer
    filterset_class = AllocationRequestFilter
    limited_by = ("cluster", "pool")
    lookup_url_kwarg = "request_id"
    absent = "There is no such request."
    row_text = "An allocation request."

    @extend_schema(responses={200: AllocationRequestSerializer})
    def destroy(self, _request: Request, request_id: int) -> Response:
        """Cancel a pending request; a request that has ended is not changed."""
        requests.cancel(request_id, author=self.author())
        return Response(represent(request_id))


def represent(request_id: int) -> dict[str, Any]:
    """Return the answer for a request, read anew: its times come from the database."""
    answer: dict[str, Any] = AllocationRequestSerializer(_REQUESTS.get(pk=request_id)).data
    return answer


def _parse_family(value: object, field: str) -> int:
    number = parsing.integer(value, field, least=4, most=6)
    if number == 5:
        raise errors.InvalidInput.for_field(field, "out_of_range", "must be 4 or 6", value)
    return number


class BlockDemandSerializer(Serializer):
    """A demand for blocks of one holder or of several ones."""

    holder = HolderSerializer(required=False)
    holders = fields.ListField(
        child=HolderSerializer(), min_length=1, max_length=MOST_BLOCKS, required=False
    )
    org = fields.IdentifierField(required=False, default="")
    env = fields.IdentifierField(required=False, default="")
    family = fields.ParsedField(
        _parse_family, schema={"type": "integer", "enum": [4, 6]}, required=False
    )
    count = fields.IntegerField(min_value=1, max_value=MOST_BLOCKS, required=False)
    cidr = fields.BlockField(required=False)
    wait = fields.FlagField(required=False)
    reuse = fields.FlagField(
        required=False,
        help_text="What the holder holds in this pool counts, in every category: only what it lacks is"
        " allocated. Such a request can be repeated at any time without an Idempotency-Key.",
    )
    dns_name = fields.TextField(dns_names.parse_name, required=False)

    def report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        super().report_names(data, report)
        spellings = [name for name in ("holder", "holders") if data.get(name) is not None]
        if not spellings:
            report.add("holder", "required", "is required")
        elif len(spellings) > 1:
            report.add("holder", "conflicting_fields", "give either holder or holders")

    def validate_holders(self, values: list[dict[str, str]]) -> list[dict[str, str]]:
        report = object_reader.ProblemReport()
        holder_keys = set()
        for index, holder in enumerate(values):
            key = (holder["kind"], holder["id"])
            if key in holder_keys:
                message = f"{holder['kind']} {holder['id']} is listed twice"
                report.add(str(index), "duplicate_holder", message, holder["id"])
            holder_keys.add(key)
        report.raise_any()
        return values

    def validate(self, attrs: dict[str, Any]) -> Any:
        demand = holders.BlockDemand(
            holders=tuple(
                holders.Holder(**value) for value in attrs.get("holders") or [attrs["holder"]]
            ),
            families=(attrs["family"],) if "family" in attrs else (),
            count=attrs.get("count", 1),
            org=attrs["org"],
            env=attrs["env"],
            cidr=attrs.get("cidr"),
            reuse=attrs.get("reuse", False),
        )
        report = object_reader.ProblemReport()
        if len(demand.holders) * demand.count > MOST_BLOCKS:
            report.add("count", "out_of_range", f"at most {MOST_BLOCKS} blocks in one request")
        if demand.cidr is not None and (len(demand.holders) > 1 or demand.count > 1):
            message = "an exact block is for one holder and a count of 1"
            report.add("cidr", "conflicting_fields", message)
        if demand.cidr is not None and demand.families not in ((), (demand.cidr.version,)):
            message = f"{demand.cidr} is not an IPv{demand.families[0]} block"
            report.add("cidr", "mixed_family", message, str(demand.cidr))
        report.raise_any()
        return demand, attrs.get("wait", False), attrs.get("dns_name", "")


# Made once: DRF copies all fields for each instance, which takes a tenth to a quarter of a request.
_DEMAND = BlockDemandSerializer()


class AllocatedBlocksSerializer(Representation):
    blocks = fields.ListField(child=BlockSerializer())


class Allocations(generics.GenericView):
    needs = {"POST": ("pools.allocate",)}
    idempotent = ("POST",)
    queryset = Block.objects.all()
    serializer_class = BlockDemandSerializer

    @extend_schema(
        responses={
            200: AllocatedBlocksSerializer,
            201: AllocatedBlocksSerializer,
            202: AllocationRequestSerializer,
        },
    )
    @schema.example(
        {"holder": {"kind": "instance", "id": "i-1"}, "org": "o", "env": "e"}, "the next address"
    )
    @schema.example(
        {"holder": {"kind": "host", "id": "web1.example.org"}, "reuse": True},
        "the address that a host has, else the next",
    )
    def post(self, request: Request, pool_id: int) -> Response:
        """Allocate blocks, all of them or none.

        200 with the blocks that the holders hold already; 202 if the request waits for free blocks.
        """
        self.parameters.raise_problems()
        block_demand, wait, dns_name = _DEMAND.run_validation(parsing.document(request))
        if dns_name:
            pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
            dns.check_demand(pool, block_demand, dns_name, wait=wait)
        outcome = requests.allocate(
            pool_id, block_demand, author=self.author(), key=generics.key(request), wait=wait
        )
        if isinstance(outcome, allocation.Allocation):
            dns.name_blocks(outcome.blocks, dns_name, author=self.author())
            return Response({"blocks": outcome.blocks}, status=outcome.status)
        location = reverse("api:request", args=[outcome.pk])
        answer = represent(outcome.pk)
        return Response(answer, status=202, headers={"Location": location})


_STATUSES = ("ok", "degraded")


class EnvironmentSerializer(Representation):
    """An environment of an organization, and whether its last allocation failed."""

    id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name")
    org = fields.TextField()
    env = fields.TextField()
    description = fields.DescriptionField()
    declared_at = fields.TimeField(allow_null=True)
    status = fields.ChoiceField(_STATUSES)
    degraded = fields.FlagField()
    reason = fields.TextField()
    message = fields.TextField()
    since = fields.TimeField(source="degraded_since", allow_null=True)


class EnvironmentCreateSerializer(Serializer):
    """An environment that has no allocation yet."""

    cluster = fields.TextField(lookups.cluster_by_name)
    org = fields.IdentifierField(required=False, default="")
    env = fields.IdentifierField()
    description = fields.DescriptionField(required=False, default="")


class EnvironmentChangeSerializer(Serializer):
    description = fields.DescriptionField()


class EnvironmentFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    org = filters.Filter()
    env = filters.Filter()
    status = filters.choice(
        *_STATUSES,
        select=lambda rows, status: rows.filter(degraded_since__isnull=status == "ok"),
    )


class Environments(generics.ModelViewSet):
    """Environments, and which of them lack addresses."""

    queryset = Environment.objects.prefetch_related("cluster")
    serializer_class = EnvironmentSerializer
    create_serializer_class = EnvironmentCreateSerializer
    change_serializer_class = EnvironmentChangeSerializer
    filterset_class = EnvironmentFilter
    limited_by = ("cluster",)
    limited_by_body = True
    lookup_url_kwarg = "environment_id"
    row_text = "An environment."

    @schema.example(
        {"cluster": "prod", "org": "acme", "env": "shop", "description": "Web shop"},
        "before its first allocation",
    )
    def perform_create(self, values: dict[str, Any]) -> Environment:
        """Declare an environment before its first allocation."""
        return environments.declare(author=self.author(), **values)

    def perform_update(self, row: Environment, values: dict[str, Any]) -> Environment:
        """Change the description of an environment."""
        return environments.change(row.pk, author=self.author(), **values)

    def perform_destroy(self, row: Environment) -> None:
        """Remove an environment that holds no block and has no pending request."""
        environments.remove(row.pk, author=self.author())
