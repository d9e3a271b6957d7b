"""Imports in REST: what those of all kinds have, and those of other registers; claims/api/imports has their endpoints."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.core.files.uploadedfile import UploadedFile
from rest_framework.request import Request

from pools import models
from pools.api import lookups
from pools.core import errors, holders, object_reader
from pools.platform import documents, events, search
from pools.platform.files import archives
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Upload
from pools.platform.rest import attributes, fields, filters, parsing, query
from pools.platform.rest.serializers import ReasonSerializer, Representation, Serializer
from pools.register.imports import drafts

_LONGEST = 500


class RowCountsField(fields.ParsedField):
    """The numbers of rows by these names; 0 where none is counted."""

    def __init__(self, *names: str, **options: Any) -> None:
        properties = {name: {"type": "integer"} for name in names}
        schema = {"type": "object", "properties": properties, "required": [*names]}
        super().__init__(schema=schema, **options)
        self.names = names

    def to_representation(self, value: Mapping[str, int]) -> dict[str, int]:
        return dict.fromkeys(self.names, 0) | dict(value)


class ImportProgressSerializer(Representation):
    """Rows done and in total, per cent, and the estimated seconds for the rest."""

    done = fields.IntegerField()
    total = fields.IntegerField(allow_null=True)
    percent = fields.IntegerField(allow_null=True)
    remaining_seconds = fields.IntegerField(source="remaining", allow_null=True)

    def to_representation(self, instance: models.Import) -> dict[str, Any]:
        return super().to_representation(states.import_progress(instance, datetime.now(UTC)))


class ImportRowSerializer(Representation):
    """What rows of all kinds have; a kind adds what its rows say and mean."""

    number = fields.IntegerField()
    file = fields.TextField()
    line = fields.IntegerField()
    status = fields.ChoiceField(models.RowStatus.values)
    reasons = fields.ListField(child=ReasonSerializer())
    before = fields.ParsedField(schema={"type": "object"}, allow_null=True)
    corrected = fields.FlagField()


class ImportRowFilter(filters.FilterSet):
    status = filters.choice(*models.RowStatus.values)


class ImportFailureSerializer(Representation):
    """Why an import failed, or why its draft was not committed."""

    code = fields.TextField(source="error_code")
    message = fields.TextField(source="error")

    def to_representation(self, instance: models.Import) -> Any:
        return super().to_representation(instance) if instance.error_code else None


class ImportSerializer(Representation):
    """What imports of all kinds have; a kind adds its `kind`, its `mapping` and its options."""

    id = fields.IntegerField()
    format = fields.TextField()
    status = fields.ChoiceField(models.ImportStatus.values)
    counts = RowCountsField(*models.RowStatus.values)
    cluster = fields.TextField(source="cluster.name")
    file = fields.TextField(source="file_name")
    rows = fields.IntegerField(source="rows_total", allow_null=True)
    progress = ImportProgressSerializer(source="*")
    notes = fields.ListField(child=ReasonSerializer())
    error = ImportFailureSerializer(source="*", allow_null=True)
    skip_bad = fields.FlagField()
    created_by = fields.TextField(source="actor")
    created_at = fields.TimeField()
    drafted_at = fields.TimeField(allow_null=True)
    committed_at = fields.TimeField(allow_null=True)
    undone_at = fields.TimeField(allow_null=True)


# --- requests -------------------------------------------------------------------------------------


class FormFlagField(fields.FlagField):
    """true or false, also as a text, as a form sends it."""

    def to_internal_value(self, data: Any) -> bool:
        return query.flag(data, "") if isinstance(data, str) else super().to_internal_value(data)


def parse_file(value: object, path: str) -> Upload:
    """Return an uploaded file. Raises InvalidInput wrong_type, too_large."""
    if not isinstance(value, UploadedFile):
        message = "send the file as the part `file`"
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    if (value.size or 0) > archives.LARGEST:
        message = f"a file has at most {archives.LARGEST} bytes"
        raise errors.InvalidInput.for_field(path, "too_large", message)
    value.seek(0)
    return value.name or "", value.read()


def _parse_pasted(value: object, path: str) -> list[Upload]:
    return [("", parsing.text(value, path).encode())]


class NewImportSerializer(Serializer):
    """What is imported, one of the `sources` of its kind, and what is done with it; a kind adds its `kind` and its options."""

    sources: ClassVar[tuple[str, ...]] = ("file", "text")
    empty_allowed = True  # it is refused like any other body without a source

    file = fields.ListField(
        child=fields.ParsedField(parse_file, schema={"type": "string", "format": "binary"}),
        required=False,
    )
    text = fields.TextField(_parse_pasted, required=False)
    commit = FormFlagField(required=False, source="commit_wanted")
    skip_bad = FormFlagField(required=False)

    def report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        if sum(data.get(name) is not None for name in self.sources) != 1:
            message = f"send one of: {', '.join(self.sources)}; the file as the part `file`"
            report.add(self.sources[0], "required", message)
        super().report_names(data, report)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        values = super().to_internal_value(data)
        uploads = [values.pop(name) for name in self.sources if name in values]
        return {**values, "uploads": uploads[0]}


class ImportCommitSerializer(Serializer):
    """The commit of a draft, with `skip_bad` of all but its bad rows."""

    empty_allowed = True

    skip_bad = fields.FlagField(required=False)


def parse_correction(value: object, path: str) -> str:
    """Parse a corrected text of a row; the draft says what is wrong with it."""
    text = parsing.text(value, path)
    if len(text) > _LONGEST:
        message = f"has at most {_LONGEST} characters"
        raise errors.InvalidInput.for_field(path, "too_long", message, value)
    return text


# --- other registers ------------------------------------------------------------------------------

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
        names = dict(models.Cluster.objects.filter(pk__in=ids).values_list("pk", "name"))
        return {
            kind: {name: names[pk] for name, pk in clusters.items() if pk in names}
            for kind, clusters in value.items()
        }


class RegisterImportSerializer(ImportSerializer):
    """An import of another register."""

    kind = fields.ChoiceField([models.RegisterImport.KIND])
    netbox_source = fields.IntegerField(source="netbox_source_id", allow_null=True)
    mirror = fields.FlagField()
    mapping = MappingField()
    holder_kind = fields.TextField()
    cooldown_seconds = fields.IntegerField()


class RegisterImportRowSerializer(ImportRowSerializer):
    """A row of an import: the texts of its source by field, and what becomes of it."""

    kind = fields.TextField()
    texts = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "string"}}
    )
    target = fields.ChoiceField(models.RegisterTarget.values, allow_null=True)
    cluster = fields.TextField(source="cluster_name", allow_null=True)
    cidr = fields.TextField(allow_null=True)
    first = fields.TextField(allow_null=True)
    last = fields.TextField(allow_null=True)
    pool = fields.TextField(source="pool_name")
    holder = fields.TextField(source="holder_id")
    org = fields.TextField()
    description = fields.TextField()
    candidates = fields.ListField(child=fields.TextField())


class RegisterRowFilter(ImportRowFilter):
    target = filters.choice(*models.RegisterTarget.values, field_name="values__target")
    q = filters.Filter(
        select=search.matching, help_text="A part of an address, holder or description."
    )


def parse_cooldown(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
        value = int(value)  # of a form
    return holders.parse_cooldown(value, field=path)


class NewRegisterImportSerializer(NewImportSerializer):
    """A new import of one or several files (the part `file` may be repeated), or of a pasted table, and where it goes."""

    example = {"kind": "register", "cluster": "prod", "text": "prefix\n10.70.0.0/24\n"}

    kind = fields.ChoiceField([models.RegisterImport.KIND])
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
            name: fields.TextField(parse_correction, required=False) for name in drafts.CORRECTED
        }
        return {**corrected, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("skip" in attrs) is bool(attrs.keys() - {"skip"}):
            message = "send exactly one of: corrected values, skip"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        custom = attrs.pop("custom_fields", {})
        return attrs | {
            f"{attributes.PREFIX}{name}": parse_correction(value or "", f"custom_fields.{name}")
            for name, value in custom.items()
        }


class VanishedRowsSerializer(Serializer):
    """The numbers of rows that the source of a mirror has no more; all of them without `rows`."""

    example = {"rows": [12, 13]}

    empty_allowed = True

    rows = fields.ListField(child=fields.IntegerField(min_value=1), required=False)


# --- what a view does with an import of a register ------------------------------------------------


def new_register_import(
    request: Request, _uploads: Sequence[Upload], values: Mapping[str, Any]
) -> models.RegisterImport:
    return models.RegisterImport.new(**values, user=request.user)


def change_register_mapping(
    row: models.RegisterImport, values: Mapping[str, Any], *, author: events.Author, **_user: Any
) -> models.RegisterImport:
    return drafts.change_mapping(row.pk, values["mapping"], author=author)


def load_register_rows(_row: models.RegisterImport, rows: list[Any]) -> None:
    """Read what the rows of an import show beside their columns."""
    clusters = models.Cluster.objects.filter(pk__in={line.cluster_id for line in rows})
    names = dict(clusters.values_list("pk", "name"))
    for line in rows:
        line.cluster_name, line.candidates = names.get(line.cluster_id), drafts.candidates(line)
