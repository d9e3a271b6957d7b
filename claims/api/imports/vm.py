"""Imports of VMs in REST: options, files, rows and their corrections."""

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.request import Request

from claims.api import scoped
from claims.core import entries
from claims.imports import (
    drafts,
    formats,
    manifests,
    mapping as import_mapping,
    rows as import_rows,
)
from claims.models import Network, VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.api import imports
from pools.core import errors, object_reader
from pools.models import Cluster, ImportStatus
from pools.platform import documents, search
from pools.platform.imports.lifecycle import Upload
from pools.platform.rest import fields, filters
from pools.platform.rest.serializers import Representation, Serializer

_DESTINATION = {
    "type": "object",
    "properties": {
        "network": {"type": "integer", "nullable": True},
        "namespace": {"type": "string"},
    },
}
_MAPPING: dict[str, Any] = {
    "type": "object",
    "additionalProperties": _DESTINATION,
    "example": {"vlan100-prod": {"network": 7, "namespace": "shop"}},
}


# --- answers --------------------------------------------------------------------------------------


class VMImportSerializer(imports.ImportSerializer):
    """An import of VMs."""

    kind = fields.ChoiceField([VMImport.KIND])
    target = fields.ChoiceField(ImportTarget.values)
    network = fields.IntegerField(source="network_id", allow_null=True)
    namespace = fields.TextField()
    mapping = fields.ParsedField(schema=_MAPPING)
    left_out = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "integer"}}
    )


class ImportPortGroupSerializer(Representation):
    """A port group of an import, the number of its rows, and their destination."""

    name = fields.TextField()
    rows = fields.IntegerField()
    network = fields.IntegerField(allow_null=True)
    namespace = fields.TextField()


class VMImportDetailSerializer(VMImportSerializer):
    """An import of VMs with its port groups and, once it is committed, the status of its VMs."""

    port_groups = fields.ListField(child=ImportPortGroupSerializer())
    without_namespace = fields.IntegerField()
    vm_status_counts = imports.RowCountsField(*manifests.STATUSES, allow_null=True)


class ResolvedField(fields.TextField):
    """The value that a row resolves to, else the one of the file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(source="*", **options)

    def to_representation(self, value: VMRow) -> Any:
        return getattr(value, self.field_name or "") or getattr(value, f"source_{self.field_name}")


class VMImportRowSerializer(imports.ImportRowSerializer):
    """A row of an import, with the status of its VM once the import is committed."""

    vm = ResolvedField()
    source_vm = fields.TextField()
    mac = ResolvedField()
    ips = ResolvedField(schema={"type": "array", "items": {"type": "string"}})
    namespace = ResolvedField()
    port_group = fields.TextField()
    network = fields.IntegerField(source="network_id", allow_null=True)
    note = fields.TextField()
    entry = fields.IntegerField(source="entry_id", allow_null=True)
    claim = fields.IntegerField(source="claim_id", allow_null=True)
    vm_status = fields.ChoiceField(manifests.STATUSES, allow_null=True)


class VMRowFilter(imports.ImportRowFilter):
    namespace = filters.Filter(field_name="values__namespace")
    port_group = filters.Filter(field_name="texts__port_group")
    q = filters.Filter(select=search.matching, help_text="A part of a VM, MAC or address.")


# --- fields of requests ---------------------------------------------------------------------------


def find_network(request: Request, value: Any) -> Network:
    """Return a network that the user may see, by its id; wrong_type, unknown_network."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        message = "the id of a network is expected"
        raise errors.InvalidInput.for_field("", "wrong_type", message, value)
    network = None
    if 0 < value < 1 << 62:
        rows = scoped.rows(request, Network).select_related("cluster")
        network = rows.filter(pk=value).first()
    if network is None:
        raise unknown_network("", value)
    return network


def unknown_network(field: str, value: object) -> errors.InvalidInput:
    """Return the same error for an id that no network has, and for a network of another cluster."""
    message = "there is no such network, or it belongs to another cluster"
    return errors.InvalidInput.for_field(field, "unknown_network", message, value)


class NetworkField(fields.ParsedField):
    """A network that the user may see, by its id, in a form as text; wrong_type, unknown_network."""

    def to_internal_value(self, data: Any) -> Network:
        return find_network(self.context["request"], data)


class MappingField(fields.ParsedField):
    """The mapping of port groups, an object or its JSON text; wrong_type.

    Each value is the id of a network, or an object with `network` and `namespace`. Only its form is
    checked here; `import_mapping` resolves the networks.
    """

    def __init__(self, **options: Any) -> None:
        values = {"oneOf": [{"type": "integer"}, _DESTINATION]}
        super().__init__(schema=_MAPPING | {"additionalProperties": values}, **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, str):
            data = documents.load_json_value(data.encode())
        if not isinstance(data, dict):
            message = (
                'an object {"port group": id of a network} or {"port group": {"network": id,'
                ' "namespace": ""}} is expected'
            )
            raise errors.InvalidInput.for_field("", "wrong_type", message, data)
        report = object_reader.ProblemReport()
        mapping = {}
        for name, destination in data.items():
            with report.collect():
                path = errors.display_value(name)
                mapping[name] = import_mapping.parse_destination(destination, path)
        report.raise_any()
        return mapping


def _parse_rows(value: object, path: str) -> list[Upload]:
    """Check only that it is a list: bad rows become refused rows of the draft."""
    if not isinstance(value, list):
        raise errors.InvalidInput.for_field(path, "wrong_type", "a list is expected", value)
    return [formats.rows_upload(value)]


def _parse_mac(value: object, path: str) -> str:
    """Parse a corrected MAC. The draft validates it; only control characters are rejected here."""
    text = imports.parse_correction(value, path)
    if not text.isprintable():
        raise errors.InvalidInput.for_field(path, "mac_syntax", "has control characters", value)
    return text


# --- requests -------------------------------------------------------------------------------------


class VMInterfaceSerializer(Serializer):
    """An interface of a VM to import. Only described: the draft reads it."""

    vm = fields.TextField()
    mac = fields.TextField()
    ips = fields.ListField(child=fields.TextField())
    network = fields.TextField(required=False)
    namespace = fields.TextField(required=False)
    note = fields.TextField(required=False)


class NewVMImportSerializer(imports.NewImportSerializer):
    """A new import of a file, of `rows` or of a pasted `text`, and its target."""

    sources = ("rows", *imports.NewImportSerializer.sources)
    example = {
        "cluster": "prod",
        "namespace": "shop",
        "rows": [{"vm": "web-9", "mac": "00:1a:4b:12:34:56", "ips": ["10.60.0.99"]}],
    }

    kind = fields.ChoiceField([VMImport.KIND], required=False)
    rows = fields.ListField(_parse_rows, child=VMInterfaceSerializer(), required=False)
    network = NetworkField(required=False, schema={"type": "integer"})
    mapping = MappingField(required=False)
    cluster = scoped.ClusterField(required=False)
    namespace = fields.NamespaceField(required=False)
    target = fields.ChoiceField(
        ImportTarget.values, required=False, default=ImportTarget.IPPOOL.value
    )


class VMImportChangeSerializer(Serializer):
    """Another network, namespace or mapping of port groups for a draft."""

    example = {"namespace": "shop"}

    network = NetworkField(required=False, allow_null=True, schema={"type": "integer"})
    namespace = fields.TextField(entries.parse_namespace, required=False)
    mapping = MappingField(required=False)


class VMImportRowChangeSerializer(Serializer):
    """One of: corrected values, `skip`, `free_address`."""

    example = {"vm": "web-9"}

    vm = fields.TextField(imports.parse_correction, required=False)
    mac = fields.TextField(_parse_mac, required=False)
    ips = fields.ListField(
        child=fields.TextField(imports.parse_correction),
        min_length=0,
        max_length=drafts.MOST_IPS,
        required=False,
    )
    namespace = fields.TextField(imports.parse_correction, required=False)
    port_group = fields.TextField(imports.parse_correction, required=False)
    note = fields.TextField(imports.parse_correction, required=False)
    skip = fields.FlagField(required=False)
    free_address = fields.FlagField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_correction = not attrs.keys().isdisjoint(import_rows.TEXTS)
        parts = (is_correction, "skip" in attrs, "free_address" in attrs)
        if sum(parts) != 1 or attrs.get("free_address") is False:
            message = "send exactly one of: corrected values, skip, free_address"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        return attrs


# --- what a view does with an import of VMs -------------------------------------------------------


def new_vm_import(
    request: Request, uploads: Sequence[Upload], values: Mapping[str, Any]
) -> VMImport:
    """Return a new import; the values name the cluster, the network or both. Raises InvalidInput unknown_network, required."""
    cluster = _target_cluster(request, values)
    if cluster is None:
        raise _missing_target_error(request, uploads[0])
    return VMImport.new(**{**values, "cluster": cluster, "user": request.user})


def change_vm_mapping(row: VMImport, values: Mapping[str, Any], **actor: Any) -> VMImport:
    network = values.get("network")
    if network is not None and network.cluster_id != row.cluster_id:
        raise unknown_network("network", network.pk)
    return drafts.change_mapping(row.pk, values, **actor)


def load_vm_import(row: VMImport) -> None:
    """Read what the detail of an import shows beside its columns."""
    shown: Any = row
    shown.port_groups = import_mapping.port_groups(row)
    shown.without_namespace = import_mapping.without_namespace(row)
    shown.vm_status_counts = None
    if row.status == ImportStatus.COMMITTED:
        shown.vm_status_counts = manifests.status_counts(row)


def load_vm_rows(row: VMImport, rows: list[Any]) -> None:
    """Read what the rows of an import show beside their columns."""
    statuses: dict[int, str] = {}
    if row.status == ImportStatus.COMMITTED:
        statuses = manifests.row_statuses(row, [line.number for line in rows])
    for line in rows:
        line.vm_status = statuses.get(line.number)
        claims = row.target == ImportTarget.IPAMCLAIMS
        line.entry_id = None if claims else line.object_id
        line.claim_id = line.object_id if claims else None


def _target_cluster(request: Request, values: Mapping[str, Any]) -> Cluster | None:
    network = values.get("network")
    cluster: Cluster | None = values.get("cluster") or (network.cluster if network else None)
    if network is not None and cluster is not None and network.cluster_id != cluster.pk:
        raise unknown_network("network", network.pk)
    for name, destination in values.get("mapping", {}).items():
        if cluster is None and destination.get("network") is not None:
            try:
                cluster = find_network(request, destination["network"]).cluster
            except errors.InvalidInput as error:
                raise error.under(f"mapping.{errors.display_value(name)}.network") from error
    return cluster


def _missing_target_error(request: Request, upload: Upload) -> errors.InvalidInput:
    """Return the error for a missing target; it proposes the only network that matches the addresses."""
    message = "name the target: the id of a network, a mapping of port groups, or a cluster"
    network = import_mapping.find_by_addresses(upload, request.user)
    if network is not None:
        message += (
            f"; the only network with static VM support whose subnets contain all addresses is"
            f" {network.name} ({network.pk})"
        )
    return errors.InvalidInput.for_field("network", "required", message)
