"""register-imports/: drafts of other registers' files, their rows and corrections, commit and undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from pools import tasks
from pools.api import lookups
from pools.api.register_imports.serializers import (
    RegisterCommitSerializer,
    RegisterImportBodySerializer,
    RegisterImportChangeSerializer,
    RegisterImportFormSerializer,
    RegisterImportSerializer,
    RegisterRowChangeSerializer,
    RegisterRowSerializer,
)
from pools.core import errors, object_reader
from pools.models import RegisterImport, RegisterRow
from pools.models.register_imports import ImportStatus as Status
from pools.models.register_imports import RegisterRowStatus, RegisterTarget
from pools.platform import idempotency
from pools.platform.rest import filters, generics, parsing, views
from pools.register.imports import drafts, files, search

FORM = "multipart/form-data"
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files
_VIEW = ("pools.view_registerimport",)
_ADD = ("pools.add_registerimport",)
_CHANGE = ("pools.change_registerimport",)


def _refuse_large(request: HttpRequest) -> None:
    if int(request.META.get("CONTENT_LENGTH") or 0) > files.LARGEST + _FORM_OVERHEAD:
        message = f"an import has at most {files.LARGEST} bytes"
        raise errors.InvalidInput.for_field("file", "too_large", message)


def _form_parts(request: Request) -> dict[str, Any]:
    """Return the parts of a form; the files are a list. Raises InvalidInput for another repeated part."""
    form = request._request
    report = object_reader.ProblemReport()
    parts: dict[str, Any] = {}
    for name in form.POST:
        values = form.POST.getlist(name)
        if len(values) > 1:
            report.add(name, "repeated", "is given more than once")
        elif values[0]:
            parts[name] = values[0]
    for name in form.FILES:
        parts[name] = form.FILES.getlist(name)
    report.raise_any()
    return parts


# --- endpoints ------------------------------------------------------------------------------------


class RegisterImportFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    status = filters.choice(*Status.values)


class _ImportView(generics.GenericView):
    queryset = RegisterImport.objects.select_related("cluster")
    serializer_class: Any = RegisterImportSerializer
    lookup_field = "pk"
    lookup_url_kwarg = "register_import_id"
    absent = "There is no such import."

    def answer(self, stored: idempotency.StoredAnswer) -> Response:
        """Answer, and wake a worker after the transaction: an unreachable broker only delays the work."""
        if stored.status == 202 or stored.answer["status"] in {Status.QUEUED, Status.COMMITTING}:
            tasks.notify_register_worker(stored.answer["id"])
        return Response(stored.answer, status=stored.status)


class RegisterImports(_ImportView, generics.ListView):
    """Imports of other registers."""

    needs = {"GET": _VIEW, "POST": _ADD}
    idempotent = ("POST",)
    largest_body = files.LARGEST
    filterset_class = RegisterImportFilter
    ordering = "-id"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the files to find the CSRF token."""
        _refuse_large(request._request)
        super().initial(request, *args, **kwargs)

    @extend_schema(
        request={FORM: RegisterImportFormSerializer, parsing.JSON: RegisterImportBodySerializer},
        responses={201: RegisterImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import files of NetBox, phpIPAM or Infoblox, or spreadsheets: a draft, unless `commit`."""
        self.parameters.raise_problems()
        values = self._read_import(request)
        uploads = values.pop("uploads", None) or [values.pop("upload")]
        options = drafts.ImportOptions(**values, user=request.user)

        def create() -> idempotency.StoredAnswer:
            made = drafts.create(uploads, options, author=views.author(request))
            return idempotency.StoredAnswer(201, self.represent(made))

        identity = None
        if parsing.media_type(request) == FORM:  # the boundary of a form differs in each request
            identity = repr((sorted(request._request.POST.items()), uploads)).encode()
        return self.answer(views.run_once(request, create, body=identity))

    def _read_import(self, request: Request) -> dict[str, Any]:
        kind = parsing.media_type(request)
        if kind == FORM:
            serializer = RegisterImportFormSerializer(
                data=_form_parts(request), context=self.get_serializer_context()
            )
            serializer.is_valid(raise_exception=True)
            return dict(serializer.validated_data)
        if kind == parsing.JSON:
            return dict(self.read(request, RegisterImportBodySerializer))
        message = f"Send {FORM} with a part `file`, or {parsing.JSON}."
        raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)


class RegisterImportView(_ImportView, generics.DetailView):
    """An import of another register."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(request=RegisterImportChangeSerializer)
    def patch(self, request: Request, register_import_id: int) -> Response:
        """Send VRFs and sites of a draft to other clusters; all its rows are resolved again."""
        pk = self.get_object().pk
        values = self.read(request, RegisterImportChangeSerializer)
        changed = drafts.change_mapping(pk, values["mapping"], author=views.author(request))
        return Response(self.represent(changed))


class RegisterRowFilter(filters.FilterSet):
    status = filters.choice(*RegisterRowStatus.values)
    target = filters.choice(*RegisterTarget.values)
    q = filters.Filter(
        method="filter_text", help_text="A part of an address, holder or description."
    )

    def filter_text(self, rows: QuerySet[RegisterRow], _name: str, text: str) -> Any:
        return search.matching_rows(rows, text)


class _RowView(generics.GenericView):
    queryset = RegisterRow.objects.all()
    serializer_class = RegisterRowSerializer
    lookup_field = lookup_url_kwarg = "number"
    absent = "The import has no such row."

    @cached_property
    def register_import(self) -> RegisterImport:
        """The import of the path. Raises NotFound."""
        found = RegisterImport.objects.filter(pk=self.kwargs["register_import_id"]).first()
        if found is None:
            raise errors.NotFound("There is no such import.")
        return found

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(register_import=self.register_import)


class RegisterRows(_RowView, generics.ListView):
    """The rows of an import."""

    needs = {"GET": _VIEW}
    filterset_class = RegisterRowFilter
    orderings = {"number": ("number",)}
    ordering = "number"


class RegisterRowView(_RowView, generics.DetailView):
    """A row of an import."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(request=RegisterRowChangeSerializer)
    def patch(self, request: Request, register_import_id: int, number: int) -> Response:
        """Correct a row of a draft, or leave it out."""
        pk, author = self.register_import.pk, views.author(request)
        values: Mapping[str, Any] = self.read(request, RegisterRowChangeSerializer, partial=True)
        if "skip" in values:
            drafts.skip_rows(pk, [number], skipped=values["skip"], author=author)
        else:
            drafts.correct_row(pk, number, values, author=author)
        return self.retrieve(request)


_SMALL_OR_LARGE = {200: RegisterImportSerializer, 202: RegisterImportSerializer}


class RegisterImportCommit(_ImportView):
    """Commit of a draft."""

    needs = {"POST": _CHANGE}
    idempotent = ("POST",)

    @extend_schema(request=RegisterCommitSerializer, responses=_SMALL_OR_LARGE)
    def post(self, request: Request, register_import_id: int) -> Response:
        """Commit a draft; a large one is committed by a worker."""
        pk, values = self.get_object().pk, self.read(request, RegisterCommitSerializer)

        def commit() -> idempotency.StoredAnswer:
            committed = drafts.commit(pk, author=views.author(request), **values)
            status = 200 if committed.status == Status.COMMITTED else 202
            return idempotency.StoredAnswer(status, self.represent(committed))

        return self.answer(views.run_once(request, commit))


class _ImportAction(_ImportView):
    """An endpoint that does something with an import; a body is not read."""

    needs = {"POST": _CHANGE}

    def perform(
        self, request: Request, action: Callable[..., RegisterImport]
    ) -> idempotency.StoredAnswer:
        self.parameters.raise_problems()
        changed = action(self.get_object().pk, author=views.author(request))
        return idempotency.StoredAnswer(
            202 if changed.undo_wanted else 200, self.represent(changed)
        )


class RegisterImportCheck(_ImportAction):
    @extend_schema(request=None)
    def post(self, request: Request, register_import_id: int) -> Response:
        """Validate a draft again by the present state of the register."""
        return self.answer(self.perform(request, drafts.revalidate))


class RegisterImportUndo(_ImportAction):
    @extend_schema(request=None, responses=_SMALL_OR_LARGE)
    def post(self, request: Request, register_import_id: int) -> Response:
        """Undo an import, as long as nobody else uses what it created; a worker undoes a large one."""
        return self.answer(self.perform(request, drafts.undo))


class RegisterImportCancel(_ImportAction):
    @extend_schema(request=None)
    def post(self, request: Request, register_import_id: int) -> Response:
        """Discard a draft, or stop an import before it is committed."""
        return self.answer(self.perform(request, drafts.cancel))
