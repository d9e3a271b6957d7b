"""What register-imports/ reads and answers: options, files, rows and their corrections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import UploadedFile

from pools.api import lookups
from pools.core import errors, holders, object_reader
from pools.models import Cluster
from pools.models.imports import ImportStatus as Status
from pools.models.imports import RegisterTarget, RowStatus
from pools.platform import documents
from pools.platform.rest import attributes, fields, imports, parsing
from pools.platform.rest.serializers import Representation, Serializer
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


class RegisterCountsSerializer(Representation):
    """The number of rows by status, and of objects that the source of a mirror lacks."""

    new = fields.IntegerField()
    changed = fields.IntegerField()
    unchanged = fields.IntegerField()
    conflict = fields.IntegerField()
    refused = fields.IntegerField()
    skipped = fields.IntegerField()
    vanished = fields.IntegerField()
    released = fields.IntegerField()

    def to_representation(self, instance: Mapping[str, int]) -> dict[str, Any]:
        return super().to_representation(dict.fromkeys(self.fields, 0) | dict(instance))


class RegisterProgressSerializer(imports.ImportProgressSerializer):
    """Rows done and in total, per cent, and the estimated seconds for the rest."""


class RegisterReasonSerializer(imports.ImportReasonSerializer):
    """The reason for the status of a row, or a note about an import."""


class RegisterFailureSerializer(imports.ImportFailureSerializer):
    """Why an import failed, or why its draft was not committed."""


class RegisterImportSerializer(Representation):
    """An import of another register."""

    id = fields.IntegerField()
    format = fields.TextField()
    status = fields.ChoiceField(Status.values)
    counts = RegisterCountsSerializer()
    netbox_source = fields.IntegerField(source="netbox_source_id", allow_null=True)
    mirror = fields.FlagField()
    cluster = fields.TextField(source="cluster.name")
    mapping = MappingField()
    holder_kind = fields.TextField()
    cooldown_seconds = fields.IntegerField()
    file = fields.TextField(source="file_name")
    rows = fields.IntegerField(source="rows_total", allow_null=True)
    progress = RegisterProgressSerializer(source="*")
    notes = fields.ListField(child=RegisterReasonSerializer())
    error = RegisterFailureSerializer(source="*", allow_null=True)
    skip_bad = fields.FlagField()
    created_by = fields.TextField(source="actor")
    created_at = fields.TimeField()
    drafted_at = fields.TimeField(allow_null=True)
    committed_at = fields.TimeField(allow_null=True)
    undone_at = fields.TimeField(allow_null=True)


class RegisterRowSerializer(Representation):
    """A row of an import: the texts of its source by field, and what becomes of it."""

    number = fields.IntegerField()
    file = fields.TextField()
    line = fields.IntegerField()
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
    status = fields.ChoiceField(RowStatus.values)
    reasons = fields.ListField(child=RegisterReasonSerializer())
    candidates = fields.ListField(child=fields.TextField())
    before = fields.ParsedField(schema={"type": "object"}, allow_null=True)
    corrected = fields.FlagField()


# --- requests -------------------------------------------------------------------------------------


def parse_cooldown(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
        value = int(value)  # of a form
    return holders.parse_cooldown(value, field=path)


def _parse_upload(value: object, path: str) -> tuple[str, bytes]:
    if not isinstance(value, UploadedFile):
        message = "send the file as the part `file`"
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    return value.name or "", value.read()


class RegisterOptionsSerializer(Serializer):
    """Where an import goes, and what is done with it."""

    cluster = fields.TextField(lookups.cluster_by_name)
    mapping = MappingField(required=False)
    holder_kind = fields.TextField(holders.parse_label, required=False)
    cooldown_seconds = fields.ParsedField(
        parse_cooldown, required=False, schema={"type": "integer"}
    )
    commit = imports.flag_field()
    skip_bad = imports.flag_field()


class RegisterImportFormSerializer(RegisterOptionsSerializer):
    """A new import of one or several files: the part `file` may be repeated."""

    file = fields.ListField(
        child=fields.ParsedField(_parse_upload, schema={"type": "string", "format": "binary"}),
        source="uploads",
    )


class RegisterImportBodySerializer(RegisterOptionsSerializer):
    """A new import of a pasted table."""

    example = {"cluster": "prod", "text": "prefix\n10.70.0.0/24\n"}

    text = fields.TextField(
        lambda value, path: ("", parsing.text(value, path).encode()), source="upload"
    )


class RegisterImportChangeSerializer(Serializer):
    """Other clusters for the VRFs and sites of a draft."""

    mapping = MappingField()


class RegisterCommitSerializer(Serializer):
    """The commit of a draft, with `skip_bad` of all but its bad rows."""

    empty_allowed = True

    skip_bad = imports.flag_field()


class RegisterRowChangeSerializer(Serializer):
    """Corrected texts of a row, with `alike` of all rows with the same `candidates`, or `skip`."""

    example = {"status": "active"}

    skip = imports.flag_field()
    alike = imports.flag_field()
    custom_fields = attributes.CustomFieldsField(required=False)

    def get_fields(self) -> dict[str, Any]:
        corrected = {
            name: fields.TextField(imports.parse_correction, required=False)
            for name in drafts.CORRECTED
        }
        return {**corrected, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("skip" in attrs) is bool(attrs.keys() - {"skip"}):
            message = "send exactly one of: corrected values, skip"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        custom = attrs.pop("custom_fields", {})
        return attrs | {
            f"{attributes.PREFIX}{name}": imports.parse_correction(
                value or "", f"custom_fields.{name}"
            )
            for name, value in custom.items()
        }
