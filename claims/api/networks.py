"""Endpoints of logical networks: whether they can hold static VMs, and their manifests."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request

from claims.access import namespaces
from claims.api import scoped
from claims.api.networks_serializers import NetworkChangeSerializer, NetworkSerializer
from claims.core.networks import udn
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.networks import handlers
from claims.networks import networks as services
from pools.api import pool_cidrs
from pools.platform import search
from pools.platform.rest import attributes, filters, generics, schema, views
from pools.register import overlaps as owners

_EXAMPLE = schema.example(
    {
        "cluster": "prod",
        "name": "cluster_udn_blue",
        "kind": "cudn",
        "topology": "layer2",
        "role": "primary",
        "lifecycle": "Persistent",
        "subnets": ["10.100.0.0/16"],
        "default_gateways": ["10.100.0.254"],
        "reserved_subnets": ["10.100.1.0/24"],
        "namespaces": ["blue"],
    },
    "for imported VMs",
)


class NetworkFilter(attributes.AttributeFilterSet, scoped.ScopedFilterSet):
    name = filters.Filter(help_text="The logical name.")
    kind = filters.choice("cudn", "udn", "nad")
    namespace = filters.Filter(
        method="filter_namespace", help_text="That uses the network through a NAD, or its own."
    )
    static_vms = filters.flag(method="filter_static_vms", help_text="Can hold static VMs.")
    q = filters.Filter(
        select=search.matching,
        help_text="Part of a name or a description, or an address or CIDR of a subnet.",
    )
    known = filters.choice(
        "true", "false", "all", method="filter_known",
        help_text="true (default), false: only named by an IPPool or a claim, all.",
    )  # fmt: skip

    @property
    def qs(self) -> QuerySet[Any]:
        rows = super().qs
        return rows if self.data.get("known") else rows.exclude(kind=NetworkKind.UNKNOWN)

    def filter_namespace(self, rows: QuerySet[Any], _name: str, namespace: str) -> QuerySet[Any]:
        visible_nads = scoped.rows(self.request, NAD).filter(namespace=namespace)
        return rows.filter(Q(pk__in=visible_nads.values("network_id")) | Q(namespace=namespace))

    def filter_static_vms(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        suitable = services.fitting_query(scoped.rows(self.request, NAD))
        return rows.filter(suitable) if value else rows.exclude(suitable)

    def filter_known(self, rows: QuerySet[Any], _name: str, word: str) -> QuerySet[Any]:
        if word == "all":
            return rows
        unknown = Q(kind=NetworkKind.UNKNOWN)
        return rows.filter(unknown if word == "false" else ~unknown)


@extend_schema_view(create=extend_schema(examples=_EXAMPLE, parameters=[pool_cidrs.OVERLAPS]))
class Networks(scoped.ScopedView, generics.ModelViewSet):
    """Logical networks."""

    idempotent = ("POST",)
    queryset = Network.objects.select_related("cluster", "pool")
    serializer_class = NetworkSerializer
    change_serializer_class = NetworkChangeSerializer
    filterset_class = NetworkFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {"id": ("id",), "name": ("name", "id")}
    lookup_url_kwarg = "network_id"
    row_text = "A logical network."

    def get_queryset(self) -> QuerySet[Any]:
        return services.with_nads(super().get_queryset(), scoped.rows(self.request, NAD))

    def load(self, rows: list[Any]) -> None:
        """Read what is shown beside the columns; the fields about other namespaces only for who sees all."""
        everything = scoped.request_scope(self.request).everything
        advertisements = handlers.of_networks(rows)
        for network in rows:
            network.shown_gateways = udn.gateways(network) or network.default_gateways
            network.gateways_configured = bool(network.default_gateways)
            network.static_vms = services.static_vm_check(network, network.shown_nads)
            network.known = bool(network.kind)
            network.gone = network.gone_at is not None
            network.advertisements = advertisements[network.pk]
            network.shown_selector = network.namespace_selector if everything else None
            network.shown_pool = network.pool_id if everything else None
            network.shown_conditions = network.conditions if everything else []

    def check_values(self, values: dict[str, Any], row: Network | None = None) -> None:
        if row is None:
            spec = values["network"]
            owner = owners.owner_of_new_network(values["cluster"], spec.name)
            pool_cidrs.warn_of_overlaps(self, spec.subnets, owner)

    def perform_create(self, values: dict[str, Any]) -> Any:
        """Create a network: to be applied, or as a note of an observed cluster."""
        cluster, spec = values.pop("cluster"), values.pop("network")
        network = services.create_network(cluster, spec, author=self.author(), **values)
        return self.get_queryset().get(pk=network.pk)

    def perform_update(self, network: Network, changes: dict[str, Any]) -> Any:
        """Change the description, the attributes, the namespaces or the NADs of a network, or whether it is applied."""
        nads, author = changes.pop("nads", None), self.author()
        with transaction.atomic():
            services.change(network, changes, author=author)
            if nads is not None:
                services.set_nads(network, nads, author=author)
        return self.get_object()

    def perform_destroy(self, network: Network) -> None:
        """Delete a network that nothing uses."""
        services.delete(network, author=self.author())

    @extend_schema(responses=OpenApiTypes.OBJECT, parameters=[scoped.MANIFEST_FORMAT])
    @action(detail=True, url_name="network-manifest")
    def manifest(self, request: Request, network_id: int) -> views.Answer:
        """The manifest of a network."""
        output_format = scoped.requested_format(request)
        network = self.get_object()
        if network.kind == NetworkKind.CUDN:  # its selector names other namespaces
            views.require(request, namespaces.EVERY_NAMESPACE)
        return scoped.manifest_answer(services.applicable_manifest(network), output_format)


urlpatterns = generics.routes(("networks", Networks, "networks", "network"))
