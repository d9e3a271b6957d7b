"""containers/: network containers of the address plan; ETag and If-Match."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import pool_cidrs
from pools.api import pools as pools_api
from pools.core import errors
from pools.models import AddressSpace, Container
from pools.platform.attributes.values import split
from pools.platform.rest import attributes, fields, filters, generics, parsing, schema
from pools.register import overlaps as owners
from pools.register.plan import containers

_EXAMPLE = OpenApiExample(
    "of the fleet",
    {"cidr": "10.0.0.0/8", "name": "Data centres", "description": "Everything behind the VPN"},
    request_only=True,
)


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


class ContainerView(generics.GenericView):
    """The parts that the endpoints of containers share."""

    queryset = Container.objects.select_related("space__cluster")
    serializer_class: Any = ContainerSerializer
    lookup_url_kwarg = "container_id"
    absent = "There is no such network container."

    def respond(self, row: Any, serializer_class: Any = None, **options: Any) -> Response:
        headers = {"ETag": f'"{row.version}"'}
        return super().respond(row, serializer_class, headers=headers, **options)


class Containers(ContainerView, generics.ListView):
    """Network containers."""

    idempotent = ("POST",)
    filterset_class = ContainerFilter
    orderings = {"id": ("id",), "cidr": ("cidr", "id")}

    @extend_schema(
        responses={201: ContainerSerializer}, examples=[_EXAMPLE], parameters=[pool_cidrs.OVERLAPS]
    )
    def post(self, request: Request) -> Response:
        """Create a network container."""
        attribute_values, values = split(self.read(request), new=True)
        _warn_of_overlaps(self, values.get("space"), [values["cidr"]])
        return self.create(
            lambda: containers.create(author=self.author(), attributes=attribute_values, **values)
        )


class ContainerDetail(ContainerView):
    """A network container."""

    problem_statuses = (412,)

    def get(self, request: Request, container_id: int) -> Response:
        """A network container."""
        return self.respond(self.get_object())

    @extend_schema(
        parameters=[schema.IF_MATCH, pool_cidrs.OVERLAPS],
        examples=schema.example({"name": "Data centres"}),
    )
    def patch(self, request: Request, container_id: int) -> Response:
        """Change the CIDR, the name, the description or the attributes; the address space never changes."""
        container = self.get_object()
        values = self.read(request, partial=True)
        if values.pop("space", container.space) != container.space:
            raise errors.ImmutableInUse("The address space of a network container never changes.")
        cidr = values.get("cidr", container.cidr)
        _warn_of_overlaps(self, container.space, [cidr] if cidr != container.cidr else [])
        required = pools_api.version(request, container.version)
        return self.respond(
            containers.change(container_id, values, author=self.author(), version=required)
        )

    @extend_schema(parameters=[schema.IF_MATCH])
    def delete(self, request: Request, container_id: int) -> Response:
        """Delete a network container; what is inside stays."""
        required = pools_api.version(request, self.get_object().version)
        containers.delete(container_id, author=self.author(), version=required)
        return Response(status=204)


def _warn_of_overlaps(view: ContainerView, space: AddressSpace | None, cidrs: list[Any]) -> None:
    """Warn of CIDRs of other address spaces; all CIDRs are in that of the fleet."""
    owner = owners.owner_of_container(space) if space else owners.owner_of_prefix(None)
    pool_cidrs.warn_of_overlaps(view, cidrs if space else [], owner)
