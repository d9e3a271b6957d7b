"""addresses/{ip}/ and instances/{id}/network/: holders of an address, network of an instance."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import addresses, block_fields, errors
from pools.models import Block, Cluster
from pools.models.blocks import BlockState
from pools.models.pools import Category
from pools.platform.rest import query, views
from pools.register.history import addresses as history_addresses


class Address(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**endpoints.ADDRESS)
    def get(self, request: Request, address: str) -> views.Answer:
        parameters = query.Query(request)
        cluster = parameters.parse("cluster", lookups.current_or_former_cluster_id)
        timestamp = parameters.parse("at", lookups.past_time)
        with parameters.report.collecting():
            parsed = addresses.parse_address(address, field="address")
        parameters.done()
        matches, tenures = history_addresses.find_holders(parsed, cluster_id=cluster, at=timestamp)
        return views.answer(
            {
                "address": str(parsed),
                "at": block_fields.time(timestamp),
                "matches": [tenure.as_json() for tenure in matches],
                "history": [tenure.as_json() for tenure in tenures],
            }
        )


class InstanceNetwork(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**endpoints.INSTANCE_NETWORK)
    def get(self, request: Request, instance: str) -> views.Answer:
        parameters = query.Query(request)
        cluster = parameters.parse("cluster", lookups.cluster)
        parameters.done()
        blocks = Block.objects.filter(
            holder_id=instance,
            holder_kind="instance",
            category=Category.INSTANCE,
            state=BlockState.HELD,
            family=6,
        )
        if cluster is not None:
            blocks = blocks.filter(space__cluster=cluster)
        instance_blocks = list(blocks.select_related("space__cluster").order_by("id")[:2])
        if not instance_blocks:
            raise errors.NotFound(f"The instance {instance} holds no overlay address.")
        if len(instance_blocks) > 1:
            message = "several clusters have such an instance: name one"
            raise errors.InvalidInput.for_field("cluster", "required", message)
        return views.answer(_network(instance_blocks[0], instance_blocks[0].space.cluster))


def _network(block: Block, cluster: Cluster) -> dict[str, object]:
    """Return the network configuration that the runtime of the instance applies."""
    return {
        "overlay_ipv6": block_fields.host_address(str(block.cidr)) or str(block.cidr),
        "gateway_ipv6": str(cluster.instance_gateway),
        "mtu": cluster.instance_mtu,
        "dns": [str(server) for server in cluster.instance_dns],
    }
