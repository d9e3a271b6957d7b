"""addresses/{ip}/ and instances/{id}/network/: holders of an address, network of an instance."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.history import TenureSerializer
from pools.core import addresses, block_fields, errors
from pools.models import Block
from pools.models.blocks import BlockState
from pools.models.pools import Category
from pools.platform.rest import fields, generics
from pools.platform.rest.serializers import Representation
from pools.register.history import addresses as history_addresses

_CLUSTER = OpenApiParameter("cluster", str, description="Name or id.")
_TIME = {"type": "string", "format": "date-time"}


class AddressSerializer(Representation):
    """Who holds an address, or held it at a time, in each address space; and all who ever held it."""

    address = fields.AddressField()
    at = fields.TimeField(allow_null=True)
    matches = fields.ListField(child=TenureSerializer())
    history = fields.ListField(child=TenureSerializer())


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
        """The holders of an address, now or at a time, and its history."""
        cluster = self.parameters.parse("cluster", lookups.current_or_former_cluster_id)
        timestamp = self.parameters.parse("at", lookups.past_time)
        with self.parameters.report.collect():
            parsed = addresses.parse_address(address, field="address")
        self.parameters.raise_problems()
        matches, tenures = history_addresses.find_holders(parsed, cluster_id=cluster, at=timestamp)
        return Response(
            self.represent(
                {"address": parsed, "at": timestamp, "matches": matches, "history": tenures}
            )
        )


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
        return Response(self.represent(instance_blocks[0]))
