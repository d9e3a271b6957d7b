"""Endpoints of imports (pools/platform/imports): new ones, their rows, commit, undo and the other actions.

An app derives a view for each endpoint, which names its kind of imports and its serializers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors, object_reader
from pools.models.imports import Import, RowStatus
from pools.models.imports import ImportStatus as Status
from pools.platform import idempotency
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Imports
from pools.platform.rest import fields, filters, generics, parsing, query, views
from pools.platform.rest.serializers import Representation

FORM = "multipart/form-data"
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files
_LONGEST = 500


# --- answers --------------------------------------------------------------------------------------


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


class ImportFailureSerializer(Representation):
    """Why an import failed, or why its draft was not committed."""

    code = fields.TextField(source="error_code")
    message = fields.TextField(source="error")

    def to_representation(self, instance: Import) -> Any:
        return super().to_representation(instance) if instance.error_code else None


# --- requests -------------------------------------------------------------------------------------


def parse_flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be true or false", value)
    return value


def parse_form_flag(value: object, path: str) -> bool:
    """Parse a flag that may be a text, as a form sends it."""
    return query.flag(value, path) if isinstance(value, str) else parse_flag(value, path)


def flag_field(parser: fields.Parser = parse_form_flag) -> fields.ParsedField:
    return fields.ParsedField(parser, required=False, schema={"type": "boolean"})


def parse_correction(value: object, path: str) -> str:
    """Parse a corrected text of a row; the draft says what is wrong with it."""
    text = parsing.text(value, path)
    if len(text) > _LONGEST:
        message = f"has at most {_LONGEST} characters"
        raise errors.InvalidInput.for_field(path, "too_long", message, value)
    return text


def form_parts(request: Request, *lists: str) -> dict[str, Any]:
    """Return the parts of a form; an empty one is left out, and the files under names in `lists` are a list.

    Raises InvalidInput for another repeated part.
    """
    form = request._request
    report = object_reader.ProblemReport()
    parts: dict[str, Any] = {}
    for name in {*form.POST, *form.FILES}:
        files = form.FILES.getlist(name)
        values = [*form.POST.getlist(name), *files]
        if files and name in lists:
            parts[name] = files
        elif len(values) > 1:
            report.add(name, "repeated", "is given more than once")
        elif values[0] != "":
            parts[name] = values[0]
    report.raise_any()
    return parts


class RowFilter(filters.FilterSet):
    """The filters of the rows of a kind of imports; `q` is a part of what they show."""

    kind: Imports[Any]
    status = filters.choice(*RowStatus.values)

    def filter_text(self, rows: QuerySet[Any], _name: str, text: str) -> QuerySet[Any]:
        return self.kind.search(rows, text)


# --- views ----------------------------------------------------------------------------------------


class ImportResourceView(generics.GenericView):
    """An endpoint of the imports that the user may see; `notify` wakes a worker for one."""

    kind: Imports[Any]
    notify: Callable[[int], None]

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):  # the OpenAPI document has no user
            return super().get_queryset()
        return self.kind.visible(self.request.user)

    def answer(self, stored: idempotency.StoredAnswer) -> Response:
        """Answer, and wake a worker after the transaction: an unreachable broker only delays the work."""
        if stored.status == 202 or stored.answer["status"] in {Status.QUEUED, Status.COMMITTING}:
            self.notify(stored.answer["id"])
        return Response(stored.answer, status=stored.status)

    def actor(self) -> dict[str, Any]:
        return {"author": views.author(self.request), "user": self.request.user}


class NewImportView(ImportResourceView, generics.ListView):
    """A list of imports, and new ones: of a form with files, or of JSON."""

    idempotent = ("POST",)
    ordering = "-id"
    form_serializer: type[Any]
    body_serializer: type[Any]
    form_lists: tuple[str, ...] = ()  # parts of the form that may be repeated
    uploaded = "a file"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the files to find the CSRF token."""
        length = int(request._request.META.get("CONTENT_LENGTH") or 0)
        if length > self.largest_body + _FORM_OVERHEAD:
            message = f"{self.uploaded} has at most {self.largest_body} bytes"
            raise errors.InvalidInput.for_field("file", "too_large", message)
        super().initial(request, *args, **kwargs)

    def read_import(self, request: Request) -> dict[str, Any]:
        kind = parsing.media_type(request)
        if kind == FORM:
            parts, context = form_parts(request, *self.form_lists), self.get_serializer_context()
            serializer = self.form_serializer(data=parts, context=context)
            serializer.is_valid(raise_exception=True)
            return dict(serializer.validated_data)
        if kind == parsing.JSON:
            return dict(self.read(request, self.body_serializer))
        message = f"Send {FORM} with a part `file`, or {parsing.JSON}."
        raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)

    def create_import(
        self, request: Request, work: Callable[[], Import], *, body: bytes | None
    ) -> Response:
        """Answer with a new import; `body` is what an Idempotency-Key is bound to instead of the body."""

        def create() -> idempotency.StoredAnswer:
            return idempotency.StoredAnswer(201, self.represent(work()))

        return self.answer(views.run_once(request, create, body=body))


class ImportRowView(generics.GenericView):
    """An endpoint of the rows of one import."""

    lookup_field = lookup_url_kwarg = "number"
    orderings = {"number": ("number",)}
    ordering = "number"
    kind: Imports[Any]
    import_kwarg = "import_id"  # the parameter of the path that is the import's id
    import_absent = ImportResourceView.absent

    @cached_property
    def parent(self) -> Any:
        """The import of the path. NotFound, also for a hidden one."""
        imports = self.kind.visible(self.request.user)
        row = imports.filter(pk=self.kwargs[self.import_kwarg]).first()
        if row is None:
            raise errors.NotFound(self.import_absent)
        return row

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        rows: QuerySet[Any] = self.parent.rows.all()
        return rows


class CommitView(ImportResourceView):
    idempotent = ("POST",)
    commit_serializer: type[Any]

    def read_commit(self, request: Request) -> dict[str, Any]:
        return dict(self.read(request, self.commit_serializer))

    def post(self, request: Request, **_path: int) -> Response:
        """Commit a draft; a large one is committed by a worker."""
        pk, values = self.get_object().pk, self.read_commit(request)

        def commit() -> idempotency.StoredAnswer:
            committed = self.kind.commit(pk, **self.actor(), **values)
            status = 200 if committed.status == Status.COMMITTED else 202
            return idempotency.StoredAnswer(status, self.represent(committed))

        return self.answer(views.run_once(request, commit))


class ActionView(ImportResourceView):
    """An endpoint that does something with an import; a body is not read."""

    def perform(self, action: Callable[..., Any]) -> Response:
        self.parameters.raise_problems()
        changed = action(self.get_object().pk, **self.actor())
        status = 202 if changed.undo_wanted else 200
        return self.answer(idempotency.StoredAnswer(status, self.represent(changed)))


class CheckView(ActionView):
    @extend_schema(request=None)
    def post(self, _request: Request, **_path: int) -> Response:
        """Validate a draft again by the present state of the register."""
        return self.perform(self.kind.revalidate)


class UndoView(ActionView):
    def post(self, _request: Request, **_path: int) -> Response:
        """Undo an import, as long as nothing uses what it created; a worker undoes a large one."""
        return self.perform(self.kind.undo)


class CancelView(ActionView):
    @extend_schema(request=None)
    def post(self, _request: Request, **_path: int) -> Response:
        """Discard a draft, or stop an import before it is committed."""
        return self.perform(self.kind.cancel)
