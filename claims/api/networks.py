"""Endpoints of logical networks: whether they can hold static VMs, and their manifests."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from claims.access import namespaces
from claims.api import scoped
from claims.core.networks import rules, udn
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.networks import handlers, networks as services
from pools.api import pool_cidrs
from pools.core import holders, object_reader
from pools.models import ATTRIBUTES
from pools.platform import search
from pools.platform.rest import attributes, fields, filters, generics, schema
from pools.platform.rest.serializers import NULL_MESSAGE, Representation, Serializer
from pools.register import overlaps as owners


def _word_field(*words: str, **options: Any) -> fields.TextField:
    """A word that may be empty: `rules` reads it in any case, and REST shows the empty one as text."""
    return fields.TextField(schema={"type": "string", "enum": list(words)}, **options)


def _list_field(child: Any, **options: Any) -> fields.ListField:
    return fields.ListField(child=child, required=False, **options)


class NADSerializer(Serializer):
    """A NetworkAttachmentDefinition of a network; only its namespace and name can be set."""

    namespace = fields.NamespaceField()
    name = fields.NameField()
    role = fields.ParsedField(required=False, schema={"type": "string"})
    allow_persistent_ips = fields.ParsedField(required=False, schema={"type": "boolean"})


class StaticVMReasonSerializer(Representation):
    """A reason against static VMs, or a note; `remedy` is what a user can do."""

    code = fields.TextField()
    message = fields.TextField()
    remedy = fields.TextField()


class StaticVMCheckSerializer(Representation):
    """Whether a network can hold VMs with static addresses: `reasons` rule them out, `notes` do not."""

    ok = fields.FlagField()
    reasons = fields.ListField(child=StaticVMReasonSerializer())
    notes = fields.ListField(child=StaticVMReasonSerializer())


class RouteAdvertisementSerializer(Representation):
    """A RouteAdvertisements object that selects the network."""

    name = fields.TextField()
    accepted = fields.FlagField(allow_null=True)


class NetworkSerializer(attributes.AttributedSerializer):
    """A logical network; `namespaces` is short for a selector of these namespaces."""

    id = fields.IntegerField(read_only=True)
    cluster = scoped.ClusterField(source="cluster.name")
    name = fields.TextField()
    kind = _word_field("cudn", "udn", "nad", "", required=False)
    object_name = fields.TextField(read_only=True)
    namespace = fields.TextField(required=False)
    topology = _word_field("layer2", "layer3", "localnet", "", required=False)
    role = _word_field("primary", "secondary", "", required=False)
    lifecycle = _word_field("Persistent", "", required=False)
    ipam_mode = _word_field("Enabled", "Disabled", "", required=False)
    mtu = fields.IntegerField(required=False, allow_null=True)
    subnets = _list_field(fields.CIDRField())
    default_gateways = _list_field(
        fields.AddressField(),
        source="shown_gateways",
        help_text="Those in use: as configured, else as OVN-Kubernetes takes them.",
    )
    gateways_configured = fields.FlagField(read_only=True)
    reserved_subnets = _list_field(fields.CIDRField(), max_length=25)
    infrastructure_subnets = _list_field(fields.CIDRField(), max_length=4)
    exclude_subnets = fields.ListField(child=fields.CIDRField(), read_only=True)
    join_subnets = _list_field(fields.CIDRField())
    namespace_selector = fields.ObjectField(
        source="shown_selector", required=False, allow_null=True
    )
    namespaces = _list_field(fields.TextField(), write_only=True)
    static_vms = StaticVMCheckSerializer(read_only=True)
    pool = fields.IntegerField(source="shown_pool", read_only=True, allow_null=True)
    applied = fields.FlagField(required=False)
    known = fields.FlagField(read_only=True)
    follows_cluster = fields.FlagField(read_only=True)
    gone = fields.FlagField(read_only=True)
    gone_at = fields.TimeField(read_only=True, allow_null=True)
    conditions = fields.ListField(
        child=fields.ObjectField(), source="shown_conditions", read_only=True
    )
    route_advertisements = fields.ListField(
        child=RouteAdvertisementSerializer(), source="advertisements",
        read_only=True, allow_null=True,
        help_text="Those that select the network; null if they are unknown.",
    )  # fmt: skip
    description = fields.DescriptionField(required=False)
    nads = _list_field(NADSerializer(), source="shown_nads")
    created_at = fields.TimeField(read_only=True)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """`cluster`, `network` (a UDN), `applied`, `description`, `nads`, and the attributes.

        `rules` reads the fields of the network together: what is valid in one depends on the others.
        """
        report = object_reader.ProblemReport()
        self.report_names(data, report)
        body = object_reader.Fields(data, "", report)
        cluster = body.parse("cluster", scoped.cluster_parser(self.context["request"]))
        network = rules.parse_network(body)
        applied = body.flag("applied")
        if applied:
            network = rules.check_applied(body, network)
        description = _read_description(body)
        nads = self._read_nads(body)
        attribute_values = {"custom_fields": {}} | self._read_attributes(body)
        report.raise_any()
        return {
            "cluster": cluster,
            "network": network,
            "applied": applied,
            "description": description,
            "nads": nads,
            **attribute_values,
        }

    def _read_attributes(self, body: object_reader.Fields) -> dict[str, Any]:
        values = {}
        for name in ATTRIBUTES:
            if body.has(name):
                with body.report.collect(name):
                    values[name] = self.fields[name].run_validation(body.data[name])
        return values

    def _read_nads(self, body: object_reader.Fields) -> list[tuple[str, str]]:
        nads: list[dict[str, str]] = []
        if body.has("nads"):
            with body.report.collect("nads"):
                nads = self.fields["nads"].run_validation(body.data["nads"])
        return [(nad["namespace"], nad["name"]) for nad in nads]


class NetworkChangeSerializer(NetworkSerializer):
    """A change of a network; the fields that never change may be repeated, in any notation."""

    example = {"description": "VMs of the shop"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The changed values; `nads` if they were sent. A null keeps what is there."""
        network: Network = self.context["row"]
        report = object_reader.ProblemReport()
        self.report_names(data, report)
        for name in ("namespaces", "nads", *ATTRIBUTES):  # the others are cleared or kept by a null
            if data.get(name, "") is None:
                report.add(
                    name,
                    "wrong_type",
                    NULL_MESSAGE,
                )
        body = object_reader.Fields(data, "", report)
        current = _immutable_values(network)
        changes: dict[str, Any] = {
            name: value
            for name, value in data.items()
            if name in current and value not in current[name]
        }
        changes |= self._read_attributes(body)
        if body.has("nads"):
            changes["nads"] = self._read_nads(body)
        if body.has("description"):
            changes["description"] = _read_description(body)
        if "applied" in data:
            changes["applied"] = body.flag("applied")
        if body.has("namespace_selector") or body.has("namespaces"):
            changes["namespace_selector"] = rules.selector(body, network.kind)
        report.raise_any()
        return changes


def _read_description(body: object_reader.Fields) -> str:
    if not body.has("description"):
        return ""
    return body.parse("description", holders.parse_description) or ""


def _immutable_values(network: Network) -> dict[str, list[Any]]:
    """Return the accepted notations of each value that cannot be changed."""
    current: dict[str, list[Any]] = {
        name: [getattr(network, name)]
        for name in rules.FIELDS
        if name not in {"namespace_selector", "namespaces"}
    }
    current["default_gateways"].append(udn.gateways(network))
    return current | {"cluster": [network.cluster.name, network.cluster_id]}


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


class Networks(scoped.ScopedView, generics.ModelViewSet):
    """Logical networks."""

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

    @schema.example(
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
    @pool_cidrs.OVERLAPS
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

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @scoped.MANIFEST_FORMAT
    @action(detail=True, url_name="network-manifest")
    def manifest(self, request: Request, network_id: int) -> generics.Answer:
        """The manifest of a network."""
        output_format = self.query_values()["format"]
        network = self.get_object()
        if network.kind == NetworkKind.CUDN:  # its selector names other namespaces
            generics.require(request, namespaces.EVERY_NAMESPACE)
        return scoped.manifest_answer(services.applicable_manifest(network), output_format)
