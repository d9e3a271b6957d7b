"""Imports of VMs and their rows as REST shows and reads them."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from rest_framework.request import Request

from claims.api import scoped
from claims.core import entries
from claims.imports import corrections, manifests
from claims.imports import mapping as import_mapping
from claims.imports.drafts import Upload
from claims.imports.files import formats
from claims.models import ImportRow, Network
from claims.models.imports import ImportTarget
from pools.core import errors, object_reader
from pools.models.imports import ImportStatus, RowStatus
from pools.platform import documents
from pools.platform.rest import fields, imports, parsing
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


class ImportCountsSerializer(Representation):
    """The number of rows by status."""

    new = fields.IntegerField()
    changed = fields.IntegerField()
    unchanged = fields.IntegerField()
    conflict = fields.IntegerField()
    refused = fields.IntegerField()
    skipped = fields.IntegerField(required=False)

    def to_representation(self, instance: dict[str, int]) -> dict[str, int]:
        counted = ("new", "changed", "unchanged", "conflict", "refused")
        return dict.fromkeys(counted, 0) | instance


class VMImportSerializer(Representation):
    """An import of VMs."""

    id = fields.IntegerField()
    format = fields.TextField()
    status = fields.ChoiceField(ImportStatus.values)
    counts = ImportCountsSerializer()
    target = fields.ChoiceField(ImportTarget.values)
    cluster = fields.TextField(source="cluster.name")
    network = fields.IntegerField(source="network_id", allow_null=True)
    namespace = fields.TextField()
    mapping = fields.ParsedField(schema=_MAPPING)
    file = fields.TextField(source="file_name")
    rows = fields.IntegerField(source="rows_total", allow_null=True)
    progress = imports.ImportProgressSerializer(source="*")
    left_out = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "integer"}}
    )
    notes = fields.ListField(child=imports.ImportReasonSerializer())
    error = imports.ImportFailureSerializer(source="*", allow_null=True)
    skip_bad = fields.FlagField()
    created_by = fields.TextField(source="actor")
    created_at = fields.TimeField()
    drafted_at = fields.TimeField(allow_null=True)
    committed_at = fields.TimeField(allow_null=True)
    undone_at = fields.TimeField(allow_null=True)


class ImportPortGroupSerializer(Representation):
    """A port group of an import, the number of its rows, and their destination."""

    name = fields.TextField()
    rows = fields.IntegerField()
    network = fields.IntegerField(allow_null=True)
    namespace = fields.TextField()


class VMStatusCountsSerializer(Representation):
    """The number of rows by the status of their VM."""

    provisioned = fields.IntegerField()
    seen = fields.IntegerField()
    running = fields.IntegerField()
    differing = fields.IntegerField()
    gone = fields.IntegerField()


class VMImportDetailSerializer(VMImportSerializer):
    """An import of VMs with its port groups and, once it is committed, the status of its VMs."""

    port_groups = fields.ListField(child=ImportPortGroupSerializer())
    without_namespace = fields.IntegerField()
    vm_status_counts = VMStatusCountsSerializer(allow_null=True)


class ResolvedField(fields.TextField):
    """The value that a row resolves to, else the one of the file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(source="*", **options)

    def to_representation(self, value: ImportRow) -> Any:
        return getattr(value, self.field_name or "") or getattr(value, f"source_{self.field_name}")


class ImportRowSerializer(Representation):
    """A row of an import, with the status of its VM once the import is committed."""

    number = fields.IntegerField()
    row = fields.IntegerField()
    sheet = fields.TextField()
    vm = ResolvedField()
    source_vm = fields.TextField()
    mac = ResolvedField()
    ips = ResolvedField(schema={"type": "array", "items": {"type": "string"}})
    namespace = ResolvedField()
    port_group = fields.TextField()
    network = fields.IntegerField(source="network_id", allow_null=True)
    note = fields.TextField()
    status = fields.ChoiceField(RowStatus.values)
    reasons = fields.ListField(child=imports.ImportReasonSerializer())
    before = fields.ParsedField(schema={"type": "object"}, allow_null=True)
    corrected = fields.FlagField()
    entry = fields.IntegerField(source="entry_id", allow_null=True)
    claim = fields.IntegerField(source="claim_id", allow_null=True)
    vm_status = fields.ChoiceField(manifests.STATUSES, allow_null=True)


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


def _mapping_field() -> MappingField:
    values = {"oneOf": [{"type": "integer"}, _DESTINATION]}
    return MappingField(required=False, schema=_MAPPING | {"additionalProperties": values})


def _parse_rows(value: object, path: str) -> Upload:
    """Check only that it is a list: bad rows become refused rows of the draft."""
    if not isinstance(value, list):
        raise errors.InvalidInput.for_field(path, "wrong_type", "a list is expected", value)
    return Upload("rows", value)


def _parse_file(value: object, path: str) -> Upload:
    if not isinstance(value, UploadedFile):
        message = "send the file as the part `file`"
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    if (value.size or 0) > formats.LARGEST:
        message = f"a file has at most {formats.LARGEST} bytes"
        raise errors.InvalidInput.for_field(path, "too_large", message)
    return Upload("file", value.file, value.name or "")


def _parse_mac(value: object, path: str) -> str:
    """Parse a corrected MAC. The draft validates it; only control characters are rejected here."""
    text = imports.parse_correction(value, path)
    if not text.isprintable():
        raise errors.InvalidInput.for_field(path, "mac_syntax", "has control characters", value)
    return text


def _parse_ips(value: object, path: str) -> list[str]:
    if not isinstance(value, list) or len(value) > corrections.MOST_IPS:
        message = f"a list of at most {corrections.MOST_IPS} addresses is expected"
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    return [
        imports.parse_correction(ip_text, f"{path}.{index}") for index, ip_text in enumerate(value)
    ]


# --- requests -------------------------------------------------------------------------------------


class ImportOptionsSerializer(Serializer):
    """The target of an import, and what is done with it."""

    network = NetworkField(required=False, schema={"type": "integer"})
    mapping = _mapping_field()
    cluster = scoped.ClusterField(required=False)
    namespace = fields.NamespaceField(required=False)
    target = fields.ChoiceField(
        ImportTarget.values, required=False, default=ImportTarget.IPPOOL.value
    )
    commit = imports.flag_field()
    skip_bad = imports.flag_field()


class ImportFormSerializer(ImportOptionsSerializer):
    """A new import from a file."""

    file = fields.ParsedField(
        _parse_file,
        source="upload",
        error_messages={"required": "send the file as the part `file`"},
        schema={"type": "string", "format": "binary"},
    )


class VMInterfaceSerializer(Serializer):
    """An interface of a VM to import. Only described: the draft reads it."""

    vm = fields.TextField()
    mac = fields.TextField()
    ips = fields.ListField(child=fields.TextField())
    network = fields.TextField(required=False)
    namespace = fields.TextField(required=False)
    note = fields.TextField(required=False)


class ImportBodySerializer(ImportOptionsSerializer):
    """A new import: either `rows`, or a pasted `text`."""

    example = {
        "cluster": "prod",
        "namespace": "shop",
        "rows": [{"vm": "web-9", "mac": "00:1a:4b:12:34:56", "ips": ["10.60.0.99"]}],
    }

    empty_allowed = True  # it is refused like any other body without rows

    rows = fields.ListField(
        _parse_rows, child=VMInterfaceSerializer(), source="upload", required=False
    )
    text = fields.TextField(
        lambda value, path: Upload("text", parsing.text(value, path)),
        source="upload",
        required=False,
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        report = object_reader.ProblemReport()
        if (data.get("rows") is None) is (data.get("text") is None):
            report.add("rows", "required", "send either rows or text")
        values: dict[str, Any] = {}
        with report.collect():
            values = super().to_internal_value(data)
        report.raise_any()
        return values


class ImportChangeSerializer(Serializer):
    """Another network, namespace or mapping of port groups for a draft."""

    example = {"namespace": "shop"}

    network = NetworkField(required=False, allow_null=True, schema={"type": "integer"})
    namespace = fields.TextField(entries.parse_namespace, required=False)
    mapping = _mapping_field()


class ImportCommitSerializer(Serializer):
    """The commit of a draft, with `skip_bad` of all but its bad rows."""

    empty_allowed = True

    skip_bad = imports.flag_field(imports.parse_flag)


class ImportRowChangeSerializer(Serializer):
    """One of: corrected values, `skip`, `free_address`."""

    example = {"vm": "web-9"}

    vm = fields.TextField(imports.parse_correction, required=False)
    mac = fields.TextField(_parse_mac, required=False)
    ips = fields.ListField(_parse_ips, child=fields.TextField(), required=False)
    namespace = fields.TextField(imports.parse_correction, required=False)
    port_group = fields.TextField(imports.parse_correction, required=False)
    note = fields.TextField(imports.parse_correction, required=False)
    skip = imports.flag_field(imports.parse_flag)
    free_address = imports.flag_field(imports.parse_flag)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_correction = not attrs.keys().isdisjoint(corrections.COLUMNS)
        parts = (is_correction, "skip" in attrs, "free_address" in attrs)
        if sum(parts) != 1 or attrs.get("free_address") is False:
            message = "send exactly one of: corrected values, skip, free_address"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        return attrs
