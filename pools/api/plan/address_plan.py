"""address-plan/: the tree of CIDRs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.plan import containers as containers_api
from pools.core import addresses, object_reader
from pools.models import AddressSpace
from pools.platform.rest import fields, generics, query
from pools.platform.rest.serializers import Representation
from pools.register.plan import free_space, tree


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
