"""pools/: pools with their CIDRs and reserved ranges; ETag and If-Match."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs
from pools.cilium import pool_sync
from pools.core import dns_names, errors
from pools.models import Category, Pool
from pools.platform.attributes.values import split
from pools.platform.rest import attributes, fields, filters, generics, schema
from pools.platform.rest.serializers import Representation
from pools.register import overlaps as owners
from pools.register import pool_cidrs as register_cidrs
from pools.register import pools, usage

# RFC 9110, 8.8.3 and 5.6.1: entity tags, and lists of them, in which elements may be empty. What
# repeats is possessive: a text that is none costs time in proportion to its length.
_ENTITY_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"'
_TAG = re.compile(_ENTITY_TAG)
_TAGS = re.compile(rf"[ \t,]*+{_ENTITY_TAG}(?:[ \t]*+,[ \t]*+(?:{_ENTITY_TAG})?)*+[ \t]*")
_FIXED = ("cluster", "name", "category", "allow_first_ip", "allow_last_ip")
_EXAMPLE = OpenApiExample(
    "a Cilium pool with a reserved range",
    {
        "cluster": "prod",
        "name": "green-pool",
        "category": "pod",
        "cooldown_seconds": 0,
        "ipv4": {
            "mask_size": 24,
            "cidrs": [{"cidr": "10.20.0.0/16", "reserved_ranges": ["10.20.0.0-10.20.0.99"]}],
        },
    },
    request_only=True,
)


class UsageSerializer(Representation):
    """Counts of addresses or blocks of one family; they add up to the capacity."""

    capacity = fields.CountField()
    held = fields.CountField()
    cooling = fields.CountField()
    reserved = fields.CountField()
    free = fields.CountField()
    ratio = fields.RatioField()
    approximate = fields.FlagField()


class UtilizationSerializer(Representation):
    """The usage of a pool by family."""

    ipv4 = UsageSerializer(required=False)
    ipv6 = UsageSerializer(required=False)


class WaitingFieldSerializer(Representation):
    """A field of the cluster's object that is not written, because other managers own it."""

    path = fields.TextField()
    managers = fields.ListField(child=fields.TextField())
    since = fields.TimeField()
    drift_id = fields.IntegerField(source="pk")


class PoolSerializer(attributes.AttributedSerializer):
    """A pool; a change of a family replaces all of it."""

    id = fields.IntegerField(read_only=True)
    cluster = fields.TextField(lookups.cluster_by_name, source="cluster.name")
    name = fields.NameField()
    category = fields.ChoiceField(Category.values)
    cooldown_seconds = fields.CooldownField(required=False)
    description = fields.DescriptionField(required=False)
    dns_pattern = fields.TextField(dns_names.parse_pattern, required=False)
    allow_first_ip = fields.FlagField(required=False)
    allow_last_ip = fields.FlagField(required=False)
    annotations = fields.StringMapField(required=False)
    labels = fields.StringMapField(required=False)
    ipv4 = pool_cidrs.FamilySerializer(4, required=False, allow_null=True)
    ipv6 = pool_cidrs.FamilySerializer(6, required=False, allow_null=True)
    version = fields.IntegerField(read_only=True)
    created_at = fields.TimeField(read_only=True)
    waiting = fields.ListField(child=WaitingFieldSerializer(), read_only=True)
    utilization = UtilizationSerializer(read_only=True)


class PoolChangeSerializer(PoolSerializer):
    """A change of a pool; the fields that never change may be repeated."""

    example = {"description": "Pods of production", "cooldown_seconds": 3600}

    def run_validation(self, data: Any = empty) -> Any:
        pool: Pool = self.context["pool"]
        if isinstance(data, dict) and data:
            _refuse_fixed(data, pool)
            data = {name: value for name, value in data.items() if name not in _FIXED}
            return self.validate(self.to_internal_value(data))
        return super().run_validation(data)


def _refuse_fixed(data: dict[str, Any], pool: Pool) -> None:
    for name in _FIXED:
        present = pool.cluster.name if name == "cluster" else getattr(pool, name)
        if name in data and data[name] != present:
            raise errors.ImmutableInUse(f"The {name} of a pool never changes.")
    for version in (4, 6):
        if data.get(f"ipv{version}", "") is None and pool.mask_size(version) is not None:
            message = "A family of a pool is never removed: delete the pool, or remove its CIDRs."
            raise errors.ImmutableInUse(message)


class PoolFilter(attributes.AttributeFilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    category = filters.choice(*Category.values)
    name = filters.Filter(help_text="The exact name.")
    within = filters.cidr(
        field_name="cidrs__cidr", lookup_expr="net_overlaps", distinct=True,
        help_text="Pools with a CIDR that overlaps this one.",
    )  # fmt: skip
    cidr = filters.cidr(field_name="cidrs__cidr", help_text="The pool with exactly this CIDR.")


class _PoolView(generics.GenericView):
    queryset = Pool.objects.select_related("cluster")
    serializer_class: Any = PoolSerializer
    lookup_url_kwarg = "pool_id"
    absent = "There is no such pool."

    def load(self, rows: list[Any]) -> None:
        load(rows)

    def answer(self, pool: Pool) -> Response:
        """The answer with a pool that `get_object` has loaded."""
        return Response(self.get_serializer(pool).data, headers={"ETag": f'"{pool.version}"'})


class Pools(_PoolView, generics.ListView):
    idempotent = ("POST",)
    filterset_class = PoolFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {"id": ("id",), "name": ("name", "id")}

    @extend_schema(
        responses={201: PoolSerializer}, examples=[_EXAMPLE], parameters=[pool_cidrs.OVERLAPS]
    )
    def post(self, request: Request) -> Response:
        """Create a pool."""
        attributes, values = split(self.read(request), new=True)
        values |= {"cluster": values.pop("cluster.name"), "families": _pop_families(values)}
        cidrs = [entry.cidr for family in values["families"].values() for entry in family.cidrs]
        owner = owners.owner_of_new_pool(values["cluster"], values["category"])
        pool_cidrs.warn_of_overlaps(self, cidrs, owner)

        def create() -> Pool:
            return pools.create(author=self.author(), attributes=attributes, **values)

        return self.create(lambda: get_pool(create().pk))


class PoolView(_PoolView):
    problem_statuses = (412,)

    def get(self, request: Request, pool_id: int) -> Response:
        """A pool."""
        return self.answer(self.get_object())

    @extend_schema(request=PoolChangeSerializer, parameters=[schema.IF_MATCH, pool_cidrs.OVERLAPS])
    def patch(self, request: Request, pool_id: int) -> Response:
        """Change a pool; a family replaces the whole family."""
        pool = self.get_object()
        values = self.read(request, PoolChangeSerializer, partial=True, pool=pool)
        attribute_values, values = split(values)
        families = _pop_families(values) or None
        change = pools.PoolChange(families=families, attributes=attribute_values or None, **values)
        present = set(pool.cidrs.values_list("cidr", flat=True))
        cidrs = {entry.cidr for family in (families or {}).values() for entry in family.cidrs}
        pool_cidrs.warn_of_overlaps(
            self, sorted(cidrs - present, key=str), owners.owner_of_pool(pool)
        )
        required = version(request, pool.version)
        pools.change(pool_id, change, author=self.author(), version=required)
        return self.answer(self.get_object())

    @extend_schema(parameters=[schema.IF_MATCH])
    def delete(self, request: Request, pool_id: int) -> Response:
        """Delete an unused pool."""
        required = version(request, self.get_object().version)
        pools.delete(pool_id, author=self.author(), version=required)
        return Response(status=204)


def get_pool(pool_id: int) -> Pool:
    """Return a pool with its cluster. Raises NotFound."""
    pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
    if pool is None:
        raise errors.NotFound("There is no such pool.")
    return pool


def version(request: Request, present: int) -> int | None:
    """Return the version that If-Match requires; None without the header or for `*`.

    RFC 9110, 13.1.1. If the header lists several versions, the `present` one has to be among them.
    Weak tags and tags that are no version match nothing. Raises InvalidInput, VersionMismatch.
    """
    header = request.META.get("HTTP_IF_MATCH")
    if header is None or header.strip() == "*":
        return None
    if not _TAGS.fullmatch(header):
        message = 'If-Match is a list of ETags such as "3", "4", or *.'
        raise errors.InvalidInput.for_field("If-Match", "if_match", message, header)
    tags = [tag.strip('"') for tag in _TAG.findall(header) if not tag.startswith("W/")]
    numbers = [int(tag) for tag in tags if tag.isascii() and tag.isdigit() and len(tag) <= 18]
    if len(numbers) == 1:
        return numbers[0]
    if present not in numbers:
        raise errors.VersionMismatch
    return present


def load(rows: list[Any]) -> None:
    """Read the families, the usage and the conflicts of pools, a few queries for all of them."""
    families = register_cidrs.families_by_pool(rows)
    usage_by_pool = usage.usage_by_pool(rows)
    conflicts = pool_sync.conflicts_of_pools(rows)
    for pool in rows:
        pool.ipv4, pool.ipv6 = families[pool.pk].get(4), families[pool.pk].get(6)
        pool.waiting = conflicts.get(pool.pk, ())
        pool.utilization = {f"ipv{family}": row for family, row in usage_by_pool[pool.pk].items()}


def _pop_families(values: dict[str, Any]) -> dict[int, Any]:
    parts = {4: values.pop("ipv4", None), 6: values.pop("ipv6", None)}
    return {version: family for version, family in parts.items() if family is not None}
