"""clusters/: register a cluster and, if it has a prefix, its node and instance pools."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs
from pools.core import addresses, errors, holders
from pools.models import Cluster
from pools.platform.attributes.values import split
from pools.platform.rest import attributes, fields, filters, generics, query, schema, views
from pools.platform.rest.serializers import Representation
from pools.register import clusters, overlaps as owners

_EXAMPLE = schema.example({"name": "prod", "cluster_prefix": "2001:db8:10::/48"}, "with its pools")


def _parse_prefix(value: object, field: str) -> Any:
    prefix = addresses.parse_cidr(value, field=field)
    if prefix.version != 6:
        raise errors.InvalidInput.for_field(
            field, "cluster_prefix", "an IPv6 prefix is expected", value
        )
    return prefix


def _parse_address(value: object, field: str) -> str:
    return str(addresses.parse_address(value, field=field))


def _parse_servers(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or len(value) > clusters.MOST_DNS_SERVERS:
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of addresses is expected", value
        )
    return [
        _parse_address(address, f"{field}.{index}" if field else str(index))
        for index, address in enumerate(value)
    ]


class ClusterSerializer(Representation, attributes.AttributedSerializer):
    """A cluster, and what its instances are told of their network."""

    id = fields.IntegerField()
    name = fields.NameField()
    cluster_prefix = fields.CIDRField(allow_null=True)
    instance_gateway = fields.AddressField()
    instance_mtu = fields.IntegerField()
    instance_dns = fields.ListField(child=fields.AddressField())
    description = fields.DescriptionField()
    created_at = fields.TimeField()


class ClusterCreateSerializer(attributes.AttributedSerializer):
    """A new cluster; the node and the instance pool are by default the first two /64 of its prefix."""

    name = fields.NameField()
    cluster_prefix = fields.CIDRField(_parse_prefix, required=False)
    node_prefix = fields.CIDRField(_parse_prefix, required=False)
    instance_prefix = fields.CIDRField(_parse_prefix, required=False)
    description = fields.DescriptionField(required=False)


class ClusterChangeSerializer(attributes.AttributedSerializer):
    """A change of a cluster; a prefix that it lacks is divided into pools."""

    example = {"description": "Production", "instance_mtu": 1420}

    description = fields.DescriptionField()
    instance_gateway = fields.AddressField(_parse_address)
    instance_mtu = fields.IntegerField(min_value=clusters.LEAST_MTU, max_value=clusters.MOST_MTU)
    instance_dns = fields.ListField(_parse_servers, child=fields.AddressField())
    cluster_prefix = fields.CIDRField(_parse_prefix)


class ClusterFilter(attributes.AttributeFilterSet):
    name = filters.Filter(help_text="The exact name.")


@extend_schema_view(create=extend_schema(examples=_EXAMPLE, parameters=[pool_cidrs.OVERLAPS]))
class Clusters(generics.ModelViewSet):
    """Clusters."""

    idempotent = ("POST",)
    queryset = Cluster.objects.all()
    serializer_class = ClusterSerializer
    create_serializer_class = ClusterCreateSerializer
    change_serializer_class = ClusterChangeSerializer
    filterset_class = ClusterFilter
    orderings = {"id": ("id",), "name": ("name",)}
    lookup_url_kwarg = "cluster"
    lookup_value_converter = "str"  # its name or id
    row_text = "A cluster."

    def get_object(self) -> Cluster:
        return get(self.kwargs["cluster"])

    def check_values(self, values: dict[str, Any], row: Cluster | None = None) -> None:
        prefix = values.get("cluster_prefix")
        if row is not None and "cluster_prefix" in values:
            views.require(self.request, "pools.add_pool")
        new = [prefix] if prefix and not (row and prefix == row.cluster_prefix) else []
        pool_cidrs.warn_of_overlaps(self, new, owners.owner_of_prefix(row))

    def perform_create(self, values: dict[str, Any]) -> Cluster:
        """Register a cluster."""
        attribute_values, values = split(values, new=True)
        return clusters.create(author=self.author(), attributes=attribute_values, **values)

    def perform_update(self, row: Cluster, changes: dict[str, Any]) -> Cluster:
        """Change the description, the attributes, the network settings of instances, or a missing prefix."""
        return clusters.change(row, changes, author=self.author())

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "force",
                bool,
                description="true: with all that it holds; requires the permission to force releases.",
            ),
            OpenApiParameter("reason", str),
        ]
    )
    def destroy(self, request: Request, cluster: str) -> Response:
        """Remove a cluster; its history stays."""
        force = bool(self.parameters.parse("force", query.flag))
        reason = self.parameters.parse("reason", holders.parse_reason) or ""
        self.parameters.raise_problems()
        if force:
            views.require(request, "pools.force_release")
        clusters.remove(get(cluster), author=self.author(reason), force=force)
        return Response(status=204)


def get(value: str) -> Cluster:
    """Return the cluster with this name or id. Raises NotFound."""
    cluster = lookups.find_cluster(value)
    if cluster is None:
        raise errors.NotFound("There is no such cluster.")
    return cluster
