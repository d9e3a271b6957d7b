"""What REST knows of each kind of imports: how it reads, creates, changes and shows them.

`views` has the endpoints of all kinds. An app names its kinds in its Extension (pools/extension.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.core.files.uploadedfile import UploadedFile
from rest_framework.request import Request

from pools.core import errors, object_reader
from pools.models import Cluster, Import, ImportStatus, RowStatus
from pools.platform import events
from pools.platform.files import archives
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Imports, Upload
from pools.platform.rest import fields, filters, parsing, query, token_scopes, views
from pools.platform.rest.serializers import Representation, Serializer

_LONGEST = 500


# --- answers --------------------------------------------------------------------------------------


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

    def to_representation(self, instance: Import) -> dict[str, Any]:
        return super().to_representation(states.import_progress(instance, datetime.now(UTC)))


class ImportReasonSerializer(Representation):
    """The reason for the status of a row, or a note about an import."""

    code = fields.TextField()
    message = fields.TextField()


class ImportRowSerializer(Representation):
    """What rows of all kinds have; a kind adds what its rows say and mean."""

    number = fields.IntegerField()
    file = fields.TextField()
    line = fields.IntegerField()
    status = fields.ChoiceField(RowStatus.values)
    reasons = fields.ListField(child=ImportReasonSerializer())
    before = fields.ParsedField(schema={"type": "object"}, allow_null=True)
    corrected = fields.FlagField()


class ImportFailureSerializer(Representation):
    """Why an import failed, or why its draft was not committed."""

    code = fields.TextField(source="error_code")
    message = fields.TextField(source="error")

    def to_representation(self, instance: Import) -> Any:
        return super().to_representation(instance) if instance.error_code else None


class ImportSerializer(Representation):
    """What imports of all kinds have; a kind adds its `kind`, its `mapping` and its options."""

    id = fields.IntegerField()
    format = fields.TextField()
    status = fields.ChoiceField(ImportStatus.values)
    counts = RowCountsField(*RowStatus.values)
    cluster = fields.TextField(source="cluster.name")
    file = fields.TextField(source="file_name")
    rows = fields.IntegerField(source="rows_total", allow_null=True)
    progress = ImportProgressSerializer(source="*")
    notes = fields.ListField(child=ImportReasonSerializer())
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

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        report = object_reader.ProblemReport()
        if sum(data.get(name) is not None for name in self.sources) != 1:
            message = f"send one of: {', '.join(self.sources)}; the file as the part `file`"
            report.add(self.sources[0], "required", message)
        values: dict[str, Any] = {}
        with report.collect():
            values = super().to_internal_value(data)
        report.raise_any()
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


# --- kinds ----------------------------------------------------------------------------------------


class ImportKind(ABC):
    """One kind of imports in REST. The serializers of a change read a part of its fields (PATCH)."""

    imports: Imports[Any]
    serializer: type[ImportSerializer]
    detail_serializer: type[ImportSerializer]
    row_serializer: type[ImportRowSerializer]
    new_serializer: type[NewImportSerializer]
    change_serializer: type[Serializer]
    row_change_serializer: type[Serializer]
    # Beside those of all kinds.
    list_filters: Mapping[str, filters.Filter] = {}
    row_filters: Mapping[str, filters.Filter] = {}
    # The rows stay in the import's cluster, so that a token of this cluster may be used.
    stays_in_cluster = False

    @property
    def json_serializer(self) -> type[NewImportSerializer]:
        """Return the description of a new import in JSON, which has no file."""
        described = self.new_serializer
        name = described.__name__.replace("Serializer", "BodySerializer")
        return type(name, (described,), {"file": None, "__doc__": described.__doc__})

    def knows_cluster(self, _request: Request, _cluster: Cluster) -> bool:
        """Return True if the user may know that the cluster exists."""
        return True

    @abstractmethod
    def new(self, request: Request, uploads: Sequence[Upload], values: Mapping[str, Any]) -> Any:
        """Return a new import with its options, which is not saved yet. Raises InvalidInput."""

    @abstractmethod
    def change(
        self, row: Any, values: Mapping[str, Any], *, author: events.Author, user: Any
    ) -> Import:
        """Change the mapping of a draft. Raises InvalidInput, ImportState, NotAllowed."""

    def change_row(
        self, import_id: int, number: int, values: Mapping[str, Any], **actor: Any
    ) -> None:
        """Skip or correct a row of a draft. Raises NotFound, ImportState, NotAllowed."""
        if "skip" in values:
            self.imports.skip_rows(import_id, [number], skipped=values["skip"], **actor)
        else:
            self.imports.correct_row(import_id, number, values, **actor)

    def load(self, row: Any) -> None:  # noqa: B027  # most kinds show no more
        """Read what the detail of an import shows beside its columns."""

    @abstractmethod
    def load_rows(self, row: Any, rows: list[Any]) -> None:
        """Read what the rows of an import show beside their columns."""


KINDS: dict[str, ImportKind] = {}  # by the kind of an import; the apps' extensions fill it


def permitted(request: Request, verb: str, names: Collection[str] = ()) -> dict[str, ImportKind]:
    """Return the kinds of these names, all without one, of which the user may view, add or change imports.

    A token of one cluster or pool is limited to the kinds that stay in their cluster.
    """
    limits = token_scopes.limits_of(request.auth)
    is_confined = limits is not None and limits.is_confined
    return {
        name: kind
        for name, kind in KINDS.items()
        if (not names or name in names)
        and (kind.stays_in_cluster or not is_confined)
        and kind.imports.permits(request.user, verb)
    }


def require(request: Request, name: str, verb: str) -> None:
    """Raise NotAllowed or TokenScope unless `permitted` has the kind."""
    if name not in permitted(request, verb):
        views.require(request, KINDS[name].imports.permission(verb))
        raise errors.TokenScope(
            "This token is limited to one cluster, imports of this kind are not."
        )


def verbs(request: Request, view: Any) -> tuple[str, ...]:
    """Return what the method does with an import; nothing for methods that need a login only."""
    method = "GET" if request.method == "HEAD" else request.method
    names: tuple[str, ...] = view.needs.get(method, ())
    return names


class HasKindPermission(views.HasPermission):
    """The user may do what the view's `needs` say with imports of some kind of its `only_kinds`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user or not request.user.is_authenticated:
            return False
        for verb in verbs(request, view):
            if not permitted(request, verb, view.only_kinds):
                for name in view.only_kinds or KINDS:
                    permission = KINDS[name].imports.permission(verb)
                    token_scopes.explain_missing(request.auth, [permission])
                return False
        return True
