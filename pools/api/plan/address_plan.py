"""address-plan/: the tree of CIDRs; what is free in a network container, and the next free prefix of it."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs
from pools.api import pools as pools_api
from pools.api.plan import containers as containers_api
from pools.core import addresses, errors, object_reader
from pools.models import ATTRIBUTES, AddressSpace, Category, Container
from pools.platform.attributes.values import split
from pools.platform.rest import attributes, fields, generics, query, views
from pools.platform.rest.serializers import Representation
from pools.register import overlaps as owners
from pools.register.plan import free_space, next_prefix, tree

_ORDERS = tuple(order.value for order in free_space.Order)
_PURPOSES = ("container", "pool", "cluster_prefix")
_FIELDS_OF_PURPOSE = {
    "container": ({"name", "description", *ATTRIBUTES}, set()),
    "pool": (
        {
            "cluster",
            "name",
            "category",
            "mask_size",
            "cooldown_seconds",
            "description",
            *ATTRIBUTES,
        },
        {"cluster", "name", "category", "mask_size"},
    ),
    "cluster_prefix": ({"cluster"}, {"cluster"}),
}
_RIGHTS = {"pool": "pools.add_pool", "cluster_prefix": "pools.change_cluster"}
_EXAMPLE = OpenApiExample(
    "a pool",
    {
        "prefix_length": 20,
        "purpose": "pool",
        "cluster": "prod",
        "name": "green-pool",
        "category": "pod",
        "mask_size": 24,
    },
    request_only=True,
)


class PlanObjectSerializer(Representation):
    """What has a CIDR: a container, a pool, the prefix of a cluster, a reserved range, an object of a cluster.

    `address_space` is `CLUSTER/NETWORK` of what an isolated VM network has, else the cluster; null: the fleet.
    """

    type = fields.ChoiceField(
        ("container", "pool", "cluster_prefix", "reserved_range", "observed_cidr")
    )
    id = fields.IntegerField()
    name = fields.TextField()
    cluster = fields.TextField(allow_null=True)
    address_space = fields.TextField(allow_null=True)
    utilization = fields.RatioField(allow_null=True)


class AddressCountSerializer(Representation):
    """How many single addresses the objects of a cluster use in one role."""

    role = fields.TextField()
    cluster = fields.TextField()
    count = fields.IntegerField()


class PlanRowSerializer(Representation):
    """A CIDR of the plan, or a free part; `covered` is the share that the CIDRs inside it cover.

    `overlaps` is true if it overlaps a CIDR of another address space, or clashes with one of its own.

    A row that is `grouped` stands for the single addresses inside its CIDR, which `addresses` counts.
    """

    cidr = fields.CIDRField()
    free = fields.FlagField()
    grouped = fields.FlagField()
    addresses = fields.ListField(child=AddressCountSerializer())
    expandable = fields.FlagField()
    covered = fields.RatioField(allow_null=True)
    overlaps = fields.FlagField()
    objects = fields.ListField(child=PlanObjectSerializer())


class PlanLevelSerializer(Representation):
    """A level of the tree; `next` is `behind` of the next page."""

    next = fields.TextField(allow_null=True)
    results = fields.ListField(child=PlanRowSerializer())


class AddressPlan(generics.GenericView):
    """The address plan; pages by the last address of a row, because free parts are rows of no table."""

    needs = {"GET": ("pools.view_container",)}
    serializer_class = PlanLevelSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "parent", str, description="Whose level is shown; else the outermost."
            ),
            OpenApiParameter("address_space", str, description="Its name; else the fleet."),
            OpenApiParameter("cluster", str, description="Name or id; then nothing is free."),
            OpenApiParameter("family", str, enum=["4", "6"]),
            OpenApiParameter("behind", str, description="`next` of the page before."),
            OpenApiParameter("limit", int, description="1 to 1000 (100)."),
            OpenApiParameter(
                "group_addresses",
                bool,
                description="True: one row for the single addresses of a /24 or /64, if there are four or more.",
            ),
        ]
    )
    def get(self, request: Request) -> Response:
        """One level of the tree of CIDRs, with what is free between them."""
        parameters = self.parameters
        parent = parameters.parse("parent", _parse_block)
        space = parameters.parse("address_space", containers_api.parse_space)
        cluster = parameters.parse("cluster", lookups.cluster)
        family = parameters.parse("family", query.choice("4", "6"))
        behind = parameters.parse("behind", addresses.parse_address)
        limit = parameters.parse("limit", query.integer(1, 1000))
        group_addresses = parameters.parse("group_addresses", query.flag)
        version = int(family) if family else None
        _check_place(parameters.report, parent, version, behind)
        parameters.raise_problems()
        level = tree.read_level(
            free_space.scope_of_space(space),
            parent,
            level_filter=tree.LevelFilter(version, cluster),
            behind=behind,
            limit=limit or tree.MOST,
            group_addresses=group_addresses or False,
        )
        results = [_represent(row) for row in level.rows]
        return Response(
            PlanLevelSerializer({"next": level.following or None, "results": results}).data
        )


def _parse_block(value: str, name: str) -> addresses.Network:
    return addresses.parse_block(value, field=name)


def _check_place(
    report: object_reader.ProblemReport,
    parent: addresses.Network | None,
    family: int | None,
    behind: addresses.Address | None,
) -> None:
    """Report a family and an address that do not belong to the level."""
    family = family or (parent.version if parent else None)
    if parent and parent.version != family:
        report.add("family", "conflicting_fields", f"the parent {parent} is of the other family")
    elif behind and family not in {None, behind.version}:
        report.add("behind", "out_of_range", "is of the other family", behind)
    elif behind and parent and behind not in parent:
        report.add("behind", "out_of_range", f"must be in {parent}", behind)


class FreePrefixesSerializer(Representation):
    results = fields.ListField(child=fields.CIDRField())


class AvailablePrefixes(containers_api.ContainerView):
    needs = {"GET": ("pools.view_container",)}

    @extend_schema(
        responses=FreePrefixesSerializer,
        parameters=[
            OpenApiParameter("prefix_length", int, required=True),
            OpenApiParameter("limit", int, description="At most 100, which is the default."),
            OpenApiParameter("order", str, enum=_ORDERS),
        ],
    )
    def get(self, request: Request, container_id: int) -> Response:
        """The free prefixes of a length in a network container."""
        container = self.get_object()
        length = self.parameters.parse("prefix_length", query.integer(1, 128))
        limit = self.parameters.parse("limit", query.integer(1, free_space.MOST))
        order = self.parameters.parse("order", query.choice(*_ORDERS))
        problems = self.parameters.report.problems
        if length is None and not any(problem.field == "prefix_length" for problem in problems):
            self.parameters.report.add("prefix_length", "required", "is required")
        self.parameters.raise_problems()
        prefixes = free_space.find_prefixes(
            container.cidr,
            length or 0,
            free_space.scope_of(container),
            order=free_space.Order(order or "first_fit"),
            limit=limit or free_space.MOST,
        )
        return Response({"results": [str(prefix) for prefix in prefixes]})


class NextPrefixSerializer(attributes.AttributedSerializer):
    """What is created in the next free prefix; the fields beside depend on the purpose."""

    prefix_length = fields.IntegerField(min_value=1, max_value=128)
    purpose = fields.ChoiceField(_PURPOSES)
    name = fields.TextField(required=False)
    description = fields.DescriptionField(required=False)
    cluster = fields.TextField(lookups.cluster_by_name, required=False)
    category = fields.ChoiceField(Category.values, required=False)
    mask_size = fields.IntegerField(min_value=1, max_value=128, required=False)
    cooldown_seconds = fields.CooldownField(required=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        allowed, required = _FIELDS_OF_PURPOSE[attrs["purpose"]]
        problems = [
            errors.FieldProblem(name, "unknown_field", f"not for {attrs['purpose']}")
            for name in attrs.keys() - allowed - {"prefix_length", "purpose"}
        ]
        problems += [
            errors.FieldProblem(name, "required", "is required")
            for name in sorted(required - attrs.keys())
        ]
        if problems:
            raise errors.InvalidInput.all(problems)
        return attrs


class CreatedPrefixSerializer(Representation):
    """What was created: its prefix, and the id of the container, the pool or the cluster."""

    purpose = fields.ChoiceField(_PURPOSES)
    cidr = fields.CIDRField()
    id = fields.IntegerField()


class NextPrefix(containers_api.ContainerView):
    needs = {"POST": ("pools.add_container",)}
    idempotent = ("POST",)

    @extend_schema(
        request=NextPrefixSerializer,
        responses={201: CreatedPrefixSerializer},
        examples=[_EXAMPLE],
        parameters=[pool_cidrs.OVERLAPS],
    )
    def post(self, request: Request, container_id: int) -> Response:
        """Create a container, a pool or the prefix of a cluster in the next free prefix, atomically."""
        pool_cidrs.overlaps_are_refused(self)
        values = self.read(request, NextPrefixSerializer)
        container = self.get_object()
        length, purpose = values.pop("prefix_length"), values.pop("purpose")
        if purpose in _RIGHTS:
            views.require(request, _RIGHTS[purpose])
        if purpose == "pool":
            _check_pool(container, length, values)
        author = self.author()

        def create() -> dict[str, Any]:
            with transaction.atomic():  # an overlap that is refused undoes it
                created, owner = _create(container, purpose, length, values, author)
                if owner is not None:
                    pool_cidrs.warn_of_overlaps(self, [created["cidr"]], owner)
            return {"purpose": purpose, **created}

        return self.once(request, create, status=201)


def _check_pool(container: Container, length: int, values: dict[str, Any]) -> None:
    """Check the name and the mask size under their own names. Raises InvalidInput."""
    report = object_reader.ProblemReport()
    with report.collect():
        free_space.check_length(container.cidr, length)
        if not length <= values["mask_size"] <= container.cidr.max_prefixlen:
            message = f"the mask size must be {length} to {container.cidr.max_prefixlen}"
            report.add("mask_size", "mask_size", message, values["mask_size"])
    with report.collect("name"):
        pools_api.PoolSerializer().fields["name"].run_validation(values["name"])
    report.raise_any()


def _create(
    container: Container, purpose: str, length: int, values: dict[str, Any], author: Any
) -> tuple[dict[str, Any], owners.NetworkOwner | None]:
    """Return what was created, and the owner of its addresses; a container has none."""
    if purpose == "cluster_prefix":
        cluster = next_prefix.set_cluster_prefix(container.pk, length, author=author, **values)
        created = {"cidr": str(cluster.cluster_prefix), "id": cluster.pk}
        return created, owners.owner_of_prefix(cluster)
    attribute_values, others = split(values, new=True)
    others |= {"author": author, "attributes": attribute_values}
    if purpose == "container":
        row = next_prefix.create_container(container.pk, length, **others)
        return {"cidr": str(row.cidr), "id": row.pk}, None
    pool = next_prefix.create_pool(container.pk, length, **others)
    return {"cidr": str(pool.cidrs.get().cidr), "id": pool.pk}, owners.owner_of_pool(pool)


def _represent(row: tree.PlanRow) -> dict[str, Any]:
    return {
        "cidr": row.cidr,
        "free": row.free,
        "grouped": row.grouped,
        "addresses": row.address_counts,
        "expandable": row.expandable,
        "covered": row.share,
        "overlaps": row.overlaps,
        "objects": list(_objects(row)),
    }


def _objects(row: tree.PlanRow) -> Any:
    for container in row.containers:
        cluster = container.cluster.name if container.cluster else None
        yield _object("container", container.pk, container.name, cluster, container.space)
    for owner in row.clusters:
        yield _object("cluster_prefix", owner.pk, owner.name, owner.name, owner.name)
    for pool_cidr, counts in zip(row.pool_cidrs, row.usages, strict=True):
        pool = pool_cidr.pool
        yield _object("pool", pool.pk, pool.name, pool.cluster.name, pool_cidr.space, counts.ratio)
    for reserved in row.reserved_ranges:
        pool = reserved.pool
        yield _object("reserved_range", reserved.pk, reserved.reason, pool.cluster.name, pool.space)
    for observed in row.observed_cidrs:
        name = f"{observed.kind} {observed.object_name}"
        yield _object("observed_cidr", observed.pk, name, observed.cluster.name, observed.space)


def _object(
    kind: str,
    pk: int,
    name: str,
    cluster: str | None,
    space: AddressSpace | str | None,
    utilization: float | None = None,
) -> dict[str, Any]:
    return {
        "type": kind,
        "id": pk,
        "name": name,
        "cluster": cluster,
        "address_space": str(space) if space else None,
        "utilization": utilization,
    }
