"""Imports of other registers in REST: options, files, rows and their corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.request import Request

from pools.api import lookups
from pools.api.imports import kinds
from pools.core import errors, holders, object_reader
from pools.models import Cluster, RegisterImport, RegisterTarget
from pools.platform import documents, events, search
from pools.platform.imports.lifecycle import Upload
from pools.platform.rest import attributes, fields, filters, parsing
from pools.platform.rest.serializers import Serializer
from pools.register.imports import drafts

MAPPING = {
    "type": "object",
    "properties": {
        kind: {"type": "object", "additionalProperties": {"type": "string"}}
        for kind in ("vrf", "site")
    },
    "example": {"vrf": {"blue": "prod"}},
}


def parse_mapping(value: object, path: str) -> dict[str, dict[str, int]]:
    """Return `{"vrf": {name: cluster id}, "site": {…}}` of names of clusters, an object or its JSON text."""
    if isinstance(value, str):
        value = documents.load_json_value(value.encode())
    message = 'an object {"vrf": {"name": "cluster"}, "site": {"name": "cluster"}} is expected'
    if not isinstance(value, dict) or not value.keys() <= {"vrf", "site"}:
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    report = object_reader.ProblemReport()
    mapping: dict[str, dict[str, int]] = {}
    for kind, names in value.items():
        if not isinstance(names, dict):
            raise errors.InvalidInput.for_field(path, "wrong_type", message, names)
        mapping[kind] = {}
        for name, cluster in names.items():
            with report.collect():
                place = ".".join(filter(None, (path, kind, errors.display_value(name))))
                found = lookups.cluster(parsing.text(cluster, place), place)
                mapping[kind][name] = found.pk
    report.raise_any()
    return mapping


class MappingField(fields.ParsedField):
    """The clusters of VRFs and sites by name, read and answered alike."""

    def __init__(self, **options: Any) -> None:
        super().__init__(parse_mapping, schema=MAPPING, **options)

    def to_representation(self, value: Mapping[str, Mapping[str, int]]) -> Any:
        ids = {pk for clusters in value.values() for pk in clusters.values()}
        names = dict(Cluster.objects.filter(pk__in=ids).values_list("pk", "name"))
        return {
            kind: {name: names[pk] for name, pk in clusters.items() if pk in names}
            for kind, clusters in value.items()
        }


class RegisterImportSerializer(kinds.ImportSerializer):
    """An import of another register."""

    kind = fields.ChoiceField([RegisterImport.KIND])
    netbox_source = fields.IntegerField(source="netbox_source_id", allow_null=True)
    mirror = fields.FlagField()
    mapping = MappingField()
    holder_kind = fields.TextField()
    cooldown_seconds = fields.IntegerField()


class RegisterImportRowSerializer(kinds.ImportRowSerializer):
    """A row of an import: the texts of its source by field, and what becomes of it."""

    kind = fields.TextField()
    texts = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "string"}}
    )
    target = fields.ChoiceField(["", *RegisterTarget.values])
    cluster = fields.TextField(source="cluster_name", allow_null=True)
    cidr = fields.TextField(allow_null=True)
    first = fields.TextField(allow_null=True)
    last = fields.TextField(allow_null=True)
    pool = fields.TextField(source="pool_name")
    holder = fields.TextField(source="holder_id")
    org = fields.TextField()
    description = fields.TextField()
    candidates = fields.ListField(child=fields.TextField())


# --- requests -------------------------------------------------------------------------------------


def parse_cooldown(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
        value = int(value)  # of a form
    return holders.parse_cooldown(value, field=path)


class NewRegisterImportSerializer(kinds.NewImportSerializer):
    """A new import of one or several files (the part `file` may be repeated), or of a pasted table, and where it goes."""

    example = {"kind": "register", "cluster": "prod", "text": "prefix\n10.70.0.0/24\n"}

    kind = fields.ChoiceField([RegisterImport.KIND])
    cluster = fields.TextField(lookups.cluster_by_name)
    mapping = MappingField(required=False)
    holder_kind = fields.TextField(holders.parse_label, required=False)
    cooldown_seconds = fields.ParsedField(
        parse_cooldown, required=False, schema={"type": "integer"}
    )


class RegisterImportChangeSerializer(Serializer):
    """Other clusters for the VRFs and sites of a draft."""

    mapping = MappingField()


class RegisterImportRowChangeSerializer(Serializer):
    """Corrected texts of a row, with `alike` of all rows with the same `candidates`, or `skip`."""

    example = {"status": "active"}

    skip = fields.FlagField(required=False)
    alike = fields.FlagField(required=False)
    custom_fields = attributes.CustomFieldsField(required=False)

    def get_fields(self) -> dict[str, Any]:
        corrected = {
            name: fields.TextField(kinds.parse_correction, required=False)
            for name in drafts.CORRECTED
        }
        return {**corrected, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("skip" in attrs) is bool(attrs.keys() - {"skip"}):
            message = "send exactly one of: corrected values, skip"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        custom = attrs.pop("custom_fields", {})
        return attrs | {
            f"{attributes.PREFIX}{name}": kinds.parse_correction(
                value or "", f"custom_fields.{name}"
            )
            for name, value in custom.items()
        }


# --- the kind -------------------------------------------------------------------------------------


class RegisterImportKind(kinds.ImportKind):
    """Imports of prefixes and addresses of other registers; a mapping sends rows to other clusters."""

    imports = drafts.IMPORTS
    serializer = detail_serializer = RegisterImportSerializer
    row_serializer = RegisterImportRowSerializer
    new_serializer = NewRegisterImportSerializer
    change_serializer = RegisterImportChangeSerializer
    row_change_serializer = RegisterImportRowChangeSerializer
    row_filters = {
        "target": filters.choice(*RegisterTarget.values, field_name="values__target"),
        "q": filters.Filter(
            select=search.matching, help_text="A part of an address, holder or description."
        ),
    }

    def new(
        self, request: Request, uploads: Sequence[Upload], values: Mapping[str, Any]
    ) -> RegisterImport:
        return RegisterImport.new(**values, user=request.user)

    def change(
        self,
        row: RegisterImport,
        values: Mapping[str, Any],
        *,
        author: events.Author,
        user: Any,  # nobody is limited to a part of the register
    ) -> RegisterImport:
        return drafts.change_mapping(row.pk, values["mapping"], author=author)

    def load_rows(self, row: RegisterImport, rows: list[Any]) -> None:
        clusters = Cluster.objects.filter(pk__in={line.cluster_id for line in rows})
        names = dict(clusters.values_list("pk", "name"))
        for line in rows:
            line.cluster_name, line.candidates = names.get(line.cluster_id), drafts.candidates(line)


KIND = RegisterImportKind()
