"""address-plan/ and containers/: the tree of CIDRs, network containers, and the next free prefix of one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs, pools as pools_api
from pools.core import addresses, errors, object_reader
from pools.models import ATTRIBUTES, AddressSpace, Category, Container
from pools.platform.rest import attributes, fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import Representation
from pools.register import overlaps as owners
from pools.register.plan import containers, free_space, next_prefix, tree

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


def parse_space(value: object, field: str) -> AddressSpace:
    """Return the address space `CLUSTER`, or `CLUSTER/NETWORK` of an isolated VM network. Raises InvalidInput."""
    text = parsing.text(value, field)
    space = containers.find_space(text)
    if space is None:
        raise errors.InvalidInput.for_field(
            field, "unknown_address_space", "there is no such address space", text
        )
    return space


class ContainerSerializer(attributes.AttributedSerializer):
    """A CIDR of the address plan that groups others; without an address space it is one of the fleet."""

    id = fields.IntegerField(read_only=True)
    address_space = fields.TextField(parse_space, source="space", required=False, allow_null=True)
    cidr = fields.CIDRField()
    name = fields.DescriptionField(required=False)
    description = fields.DescriptionField(required=False)
    version = fields.IntegerField(read_only=True)
    created_at = fields.TimeField(read_only=True)


class ContainerFilter(attributes.AttributeFilterSet):
    address_space = filters.Filter(
        "parse_space",
        select=lambda rows, space: rows.filter(space=None if space == "fleet" else space),
        help_text="Its name, or `fleet` for those of the fleet.",
    )
    within = filters.cidr(
        field_name="cidr",
        lookup_expr="net_contained_or_equal",
        help_text="Containers inside this CIDR, or equal to it.",
    )
    cidr = filters.cidr(help_text="The exact CIDR.")

    def parse_space(self, value: str, name: str) -> Any:
        return "fleet" if value == "fleet" else parse_space(value, name)


class FreePrefixesSerializer(Representation):
    results = fields.ListField(child=fields.CIDRField())


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


class Containers(generics.ModelViewSet):
    """Network containers."""

    queryset = Container.objects.select_related("space__cluster")
    serializer_class = ContainerSerializer
    filterset_class = ContainerFilter
    orderings = {"id": ("id",), "cidr": ("cidr", "id")}
    versioned = True
    lookup_url_kwarg = "container_id"
    absent = "There is no such network container."
    row_text = "A network container."

    def check_values(self, values: dict[str, Any], row: Container | None = None) -> None:
        """Warn of CIDRs of other address spaces; all CIDRs are in that of the fleet."""
        space, cidrs = values.get("space"), [values.get("cidr")]
        if row is not None:
            if values.pop("space", row.space) != row.space:
                message = "The address space of a network container never changes."
                raise errors.ImmutableInUse(message)
            space, cidrs = row.space, [cidr for cidr in cidrs if cidr not in (None, row.cidr)]
        owner = owners.owner_of_container(space) if space else owners.owner_of_prefix(None)
        pool_cidrs.warn_of_overlaps(self, cidrs if space else [], owner)

    @schema.example(
        {"cidr": "10.0.0.0/8", "name": "Data centres", "description": "Everything behind the VPN"},
        "of the fleet",
    )
    @pool_cidrs.OVERLAPS
    def perform_create(self, values: dict[str, Any]) -> Container:
        """Create a network container."""
        values.setdefault("custom_fields", {})  # required ones must have a value
        return containers.create(author=self.author(), **values)

    @schema.example({"name": "Data centres"})
    @pool_cidrs.OVERLAPS
    def perform_update(self, row: Container, values: dict[str, Any]) -> Container:
        """Change the CIDR, the name, the description or the attributes; the address space never changes."""
        required = self.required_version(row)
        return containers.change(row.pk, values, author=self.author(), version=required)

    def perform_destroy(self, row: Container) -> None:
        """Delete a network container; what is inside stays."""
        containers.delete(row.pk, author=self.author(), version=self.required_version(row))

    @extend_schema(responses=FreePrefixesSerializer)
    @filters.parameters(
        prefix_length=filters.number(1, 128, required=True),
        limit=filters.number(1, free_space.MOST, help_text="At most 100, which is the default."),
        order=filters.choice(*_ORDERS),
    )
    @action(detail=True, url_path="available-prefixes", needs={"GET": ("pools.view_container",)})
    def available_prefixes(self, request: Request, container_id: int) -> Response:
        """The free prefixes of a length in a network container."""
        container = self.get_object()
        values, report = self.query_values(is_complete=False), self.parameters.report
        length = values["prefix_length"]
        if length is None and not any(item.field == "prefix_length" for item in report.problems):
            report.add("prefix_length", "required", "is required")
        self.parameters.raise_problems()
        prefixes = free_space.find_prefixes(
            container.cidr,
            length or 0,
            free_space.scope_of(container),
            order=free_space.Order(values["order"] or "first_fit"),
            limit=values["limit"] or free_space.MOST,
        )
        return Response({"results": [str(prefix) for prefix in prefixes]})

    @extend_schema(request=NextPrefixSerializer, responses={201: CreatedPrefixSerializer})
    @schema.example(
        {
            "prefix_length": 20,
            "purpose": "pool",
            "cluster": "prod",
            "name": "green-pool",
            "category": "pod",
            "mask_size": 24,
        },
        "a pool",
    )
    @pool_cidrs.OVERLAPS
    @generics.post_action("pools.add_container", idempotent=True, url_path="next-prefix")
    def next_prefix(self, request: Request, container_id: int) -> Response:
        """Create a container, a pool or the prefix of a cluster in the next free prefix, atomically."""
        pool_cidrs.overlaps_are_refused(self)
        values = self.read(request, NextPrefixSerializer)
        container = self.get_object()
        length, purpose = values.pop("prefix_length"), values.pop("purpose")
        if purpose in _RIGHTS:
            generics.require(request, _RIGHTS[purpose])
        if purpose == "pool":
            _check_pool(container, length, values)
        author = self.author()

        def work() -> dict[str, Any]:
            with transaction.atomic():  # an overlap that is refused undoes it
                created, owner = _create(container, purpose, length, values, author)
                if owner is not None:
                    pool_cidrs.warn_of_overlaps(self, [created["cidr"]], owner)
            return {"purpose": purpose, **created}

        return self.once(request, work, status=201)


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
    others = {"custom_fields": {}, **values, "author": author}
    if purpose == "container":
        row = next_prefix.create_container(container.pk, length, **others)
        return {"cidr": str(row.cidr), "id": row.pk}, None
    pool = next_prefix.create_pool(container.pk, length, **others)
    return {"cidr": str(pool.cidrs.get().cidr), "id": pool.pk}, owners.owner_of_pool(pool)


class PlanObject(NamedTuple):
    """What an object of the plan is, and the cluster and the address space to which it belongs."""

    type: str
    id: int
    name: str
    cluster: object
    address_space: object
    utilization: float | None = None


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


class PlanObjectsField(fields.ListField):
    """What has the CIDR of a row of the plan."""

    def to_representation(self, data: Any) -> list[Any]:
        return super().to_representation([*_objects(data)])


class PlanRowSerializer(Representation):
    """A CIDR of the plan, or a free part; `covered` is the share that the CIDRs inside it cover.

    `overlaps` is true if it overlaps a CIDR of another address space, or clashes with one of its own.

    A row that is `grouped` stands for the single addresses inside its CIDR, which `addresses` counts.
    """

    cidr = fields.CIDRField()
    free = fields.FlagField()
    grouped = fields.FlagField()
    addresses = fields.ListField(child=AddressCountSerializer(), source="address_counts")
    expandable = fields.FlagField()
    covered = fields.RatioField(source="share", allow_null=True)
    overlaps = fields.FlagField()
    objects = PlanObjectsField(child=PlanObjectSerializer(), source="*")


class PlanLevelSerializer(Representation):
    """A level of the tree; `next` is `behind` of the next page."""

    next = fields.TextField(allow_null=True)
    results = fields.ListField(child=PlanRowSerializer())


class AddressPlan(generics.GenericView):
    """The address plan; pages by the last address of a row, because free parts are rows of no table."""

    needs = {"GET": ("pools.view_container",)}
    serializer_class = PlanLevelSerializer

    @filters.parameters(
        parent=filters.Filter(
            addresses.parse_block, help_text="Whose level is shown; else the outermost."
        ),
        address_space=filters.Filter(parse_space, help_text="Its name; else the fleet."),
        cluster=filters.Filter(lookups.cluster, help_text="Name or id; then nothing is free."),
        family=filters.choice("4", "6"),
        behind=filters.Filter(addresses.parse_address, help_text="`next` of the page before."),
        limit=filters.number(1, 1000, help_text="1 to 1000 (100)."),
        group_addresses=filters.flag(
            help_text="True: one row for the single addresses of a /24 or /64, if there are four or more."
        ),
    )
    def get(self, request: Request) -> Response:
        """One level of the tree of CIDRs, with what is free between them."""
        values = self.query_values(is_complete=False)
        parent, behind = values["parent"], values["behind"]
        family = int(values["family"]) if values["family"] else None
        _check_place(self.parameters.report, parent, family, behind)
        self.parameters.raise_problems()
        level = tree.read_level(
            free_space.scope_of_space(values["address_space"]),
            parent,
            level_filter=tree.LevelFilter(family, values["cluster"]),
            behind=behind,
            limit=values["limit"] or tree.MOST,
            group_addresses=values["group_addresses"] or False,
        )
        return self.respond({"next": level.following or None, "results": level.rows})


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


def _objects(row: tree.PlanRow) -> Iterator[PlanObject]:
    for container in row.containers:
        cluster, space = container.cluster, container.space
        yield PlanObject("container", container.pk, container.name, cluster, space)
    for owner in row.clusters:
        yield PlanObject("cluster_prefix", owner.pk, owner.name, owner, owner)
    for pool_cidr, counts in zip(row.pool_cidrs, row.usages, strict=True):
        pool, space = pool_cidr.pool, pool_cidr.space
        yield PlanObject("pool", pool.pk, pool.name, pool.cluster, space, counts.ratio)
    for reserved in row.reserved_ranges:
        pool = reserved.pool
        yield PlanObject("reserved_range", reserved.pk, reserved.reason, pool.cluster, pool.space)
    for observed in row.observed_cidrs:
        name, space = f"{observed.kind} {observed.object_name}", observed.space
        yield PlanObject("observed_cidr", observed.pk, name, observed.cluster, space)
