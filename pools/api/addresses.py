"""addresses/{ip}/ and instances/{id}/network/: holders of an address, network of an instance."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.clusters.observed import ObservedCIDRSerializer
from pools.api.history import TenureSerializer
from pools.core import addresses, block_fields, errors
from pools.models import Block, BlockState, Category, ObservedCIDR
from pools.platform.rest import fields, generics
from pools.platform.rest.serializers import Representation
from pools.register.history import addresses as history_addresses

_CLUSTER = OpenApiParameter("cluster", str, description="Name or id.")
_TIME = {"type": "string", "format": "date-time"}
_MOST_OBSERVED = 1000


class AddressSerializer(Representation):
    """Who holds an address, or held it at a time, in each address space; and all who ever held it.

    `observed_cidrs` are up to 1,000 CIDRs that objects of clusters use now and that contain the address,
    the narrowest first; null with `at`, and for users who must not see them.
    """

    address = fields.AddressField()
    at = fields.TimeField(allow_null=True)
    matches = fields.ListField(child=TenureSerializer())
    history = fields.ListField(child=TenureSerializer())
    observed_cidrs = fields.ListField(child=ObservedCIDRSerializer(), allow_null=True)


class InstanceNetworkSerializer(Representation):
    """The network configuration that the runtime of the instance applies."""

    overlay_ipv6 = serializers.SerializerMethodField()
    gateway_ipv6 = fields.AddressField(source="space.cluster.instance_gateway")
    mtu = fields.IntegerField(source="space.cluster.instance_mtu")
    dns = fields.ListField(child=fields.AddressField(), source="space.cluster.instance_dns")

    def get_overlay_ipv6(self, block: Block) -> str:
        return block_fields.host_address(str(block.cidr)) or str(block.cidr)


class Address(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = AddressSerializer

    @extend_schema(
        parameters=[
            _CLUSTER,
            OpenApiParameter("at", _TIME, description="Who held the address then. Default: now."),
        ]
    )
    def get(self, request: Request, address: str) -> Response:
        """The holders of an address, now or at a time, its history, and the objects of clusters that use it."""
        cluster = self.parameters.parse("cluster", lookups.current_or_former_cluster_id)
        timestamp = self.parameters.parse("at", history_addresses.parse_past_time)
        with self.parameters.report.collect():
            parsed = addresses.parse_address(address, field="address")
        self.parameters.raise_problems()
        matches, tenures = history_addresses.find_holders(parsed, cluster_id=cluster, at=timestamp)
        may_see_observed = request.user.has_perm("pools.view_observedcidr")
        return self.respond(
            {
                "address": parsed,
                "at": timestamp,
                "matches": matches,
                "history": tenures,
                # The past of observed CIDRs is not stored: null, because unknown is not absent.
                "observed_cidrs": (
                    _observed_cidrs(parsed, cluster)
                    if timestamp is None and may_see_observed
                    else None
                ),
            }
        )


def _observed_cidrs(address: addresses.Address, cluster_id: int | None) -> QuerySet[ObservedCIDR]:
    rows = ObservedCIDR.objects.filter(cidr__net_contains_or_equals=str(address))
    if cluster_id is not None:
        rows = rows.filter(space__cluster=cluster_id)
    return rows.select_related("space__cluster").order_by("-cidr", "id")[:_MOST_OBSERVED]


class InstanceNetwork(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.filter(
        holder_kind="instance", category=Category.INSTANCE, state=BlockState.HELD, family=6
    )
    serializer_class = InstanceNetworkSerializer

    @extend_schema(parameters=[_CLUSTER])
    def get(self, request: Request, instance: str) -> Response:
        """The network configuration of an instance: its overlay address, gateway, MTU and DNS."""
        cluster = self.parameters.parse("cluster", lookups.cluster)
        self.parameters.raise_problems()
        blocks = self.get_queryset().filter(holder_id=instance)
        if cluster is not None:
            blocks = blocks.filter(space__cluster=cluster)
        instance_blocks = list(blocks.select_related("space__cluster").order_by("id")[:2])
        if not instance_blocks:
            raise errors.NotFound(f"The instance {instance} holds no overlay address.")
        if len(instance_blocks) > 1:
            message = "several clusters have such an instance: name one"
            raise errors.InvalidInput.for_field("cluster", "required", message)
        return self.respond(instance_blocks[0])
