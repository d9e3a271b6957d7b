"""Endpoints of imports: drafts of files, their rows and corrections, commit and undo."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from claims import tasks
from claims.api import scoped
from claims.api.imports import bodies
from claims.api.imports.serializers import (
    ImportBodySerializer,
    ImportChangeSerializer,
    ImportCommitSerializer,
    ImportFormSerializer,
    ImportRowChangeSerializer,
    ImportRowSerializer,
    VMImportDetailSerializer,
    VMImportSerializer,
)
from claims.imports import corrections, drafts, manifests, mapping, search, vm_status
from claims.imports.files import formats
from claims.models import ImportRow, VMImport
from claims.models.imports import ImportTarget, RowStatus, Status
from pools.core import errors
from pools.platform import idempotency
from pools.platform.rest import filters, generics, parsing, query, views

_VIEW = ("claims.view_vmimport",)
_CHANGE = ("claims.change_vmimport",)
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_SMALL_OR_LARGE = {200: VMImportSerializer, 202: VMImportSerializer}


class ImportFilter(scoped.ScopedFilterSet):
    status = filters.choice(*Status.values)
    target = filters.choice(*ImportTarget.values)
    network = filters.integer(1, 1 << 62, help_text="Id.")


class _ImportView(generics.GenericView):
    """An endpoint of the imports that the user may see."""

    queryset = VMImport.objects.all()
    serializer_class: Any = VMImportSerializer
    lookup_url_kwarg = "import_id"

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):  # the OpenAPI document has no user
            return super().get_queryset()
        return drafts.visible_imports(self.request.user)

    def answer(self, stored: idempotency.StoredAnswer) -> Response:
        """Answer, and wake a worker after the transaction: an unreachable broker only delays the work."""
        if stored.answer["status"] in {Status.QUEUED, Status.COMMITTING}:
            tasks.notify_worker(stored.answer["id"])
        return Response(stored.answer, status=stored.status)


class Imports(_ImportView, generics.ListView):
    """Imports of VMs: all for those who see all namespaces, for others their own."""

    needs = {"GET": _VIEW, "POST": ("claims.add_vmimport",)}
    idempotent = ("POST",)
    largest_body = formats.LARGEST
    filterset_class = ImportFilter
    limited_by = ("cluster",)
    limited_by_body = True
    ordering = "-id"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the file to find the CSRF token."""
        bodies.refuse_large(request._request)
        super().initial(request, *args, **kwargs)

    @extend_schema(
        request={bodies.FORM: ImportFormSerializer, parsing.JSON: ImportBodySerializer},
        responses={201: VMImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import VMs from a file, a pasted list or rows: a draft, unless `commit`."""
        self.parameters.raise_problems()
        values = self._read_import(request)
        upload = values.pop("upload")
        options = bodies.import_options(request, upload, values)
        identity = None
        if upload.kind == "file" and "HTTP_IDEMPOTENCY_KEY" in request.META:
            identity = bodies.form_identity(request, upload)

        def create() -> idempotency.StoredAnswer:
            vm_import = drafts.create(upload, options, author=views.author(request))
            return idempotency.StoredAnswer(201, self.represent(vm_import))

        return self.answer(views.run_once(request, create, body=identity))

    def _read_import(self, request: Request) -> dict[str, Any]:
        kind = parsing.media_type(request)
        if kind == bodies.FORM:
            parts, context = bodies.form_parts(request), self.get_serializer_context()
            serializer = ImportFormSerializer(data=parts, context=context)
            serializer.is_valid(raise_exception=True)
            return dict(serializer.validated_data)
        if kind == parsing.JSON:
            return dict(self.read(request, ImportBodySerializer))
        message = f"Send {bodies.FORM} with a part `file`, or {parsing.JSON}."
        raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)


class ImportView(_ImportView, generics.DetailView):
    """An import of VMs, with its port groups and the status of its VMs."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}
    serializer_class = VMImportDetailSerializer

    def load(self, rows: list[Any]) -> None:
        for vm_import in rows:
            is_committed = vm_import.status == Status.COMMITTED
            vm_import.port_groups = mapping.port_groups(vm_import)
            vm_import.vm_status_counts = (
                vm_status.status_counts(vm_import) if is_committed else None
            )

    @extend_schema(request=ImportChangeSerializer)
    def patch(self, request: Request, import_id: int) -> Response:
        """Change the network, the namespace or the mapping of a draft; all its rows are resolved again."""
        vm_import = self.get_object()
        values = self.read(request, ImportChangeSerializer, partial=True)
        network = values.get("network")
        if network is not None and network.cluster_id != vm_import.cluster_id:
            message = f"the import belongs to the cluster {vm_import.cluster}"
            raise errors.InvalidInput.for_field("network", "unknown_network", message)
        author = views.author(request)
        changed = drafts.change_mapping(vm_import.pk, values, author=author, user=request.user)
        return Response(self.represent(changed))


class ImportRowFilter(filters.FilterSet):
    status = filters.choice(*RowStatus.values)
    namespace = filters.Filter()
    port_group = filters.Filter()
    q = filters.Filter(method="filter_text", help_text="A part of a VM, MAC or address.")

    def filter_text(self, rows: QuerySet[ImportRow], _name: str, text: str) -> QuerySet[ImportRow]:
        return search.matching_rows(rows, text)


class _ImportRowView(generics.GenericView):
    queryset = ImportRow.objects.all()
    serializer_class = ImportRowSerializer
    lookup_field = lookup_url_kwarg = "number"

    @cached_property
    def vm_import(self) -> VMImport:
        """The import of the path. NotFound, also for a hidden one."""
        imports = drafts.visible_imports(self.request.user)
        vm_import = imports.filter(pk=self.kwargs["import_id"]).first()
        if vm_import is None:
            raise errors.NotFound(self.absent)
        return vm_import

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(vm_import=self.vm_import)

    def load(self, rows: list[Any]) -> None:
        statuses: dict[int, str] = {}
        if self.vm_import.status == Status.COMMITTED:
            statuses = vm_status.row_statuses(self.vm_import, [row.number for row in rows])
        for row in rows:
            row.vm_status = statuses.get(row.number)


class ImportRows(_ImportRowView, generics.ListView):
    """The rows of an import."""

    needs = {"GET": _VIEW}
    filterset_class = ImportRowFilter
    orderings = {"number": ("number",)}
    ordering = "number"


class ImportRowView(_ImportRowView, generics.DetailView):
    """A row of an import."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(request=ImportRowChangeSerializer)
    def patch(self, request: Request, import_id: int, number: int) -> Response:
        """Correct a row of a draft, leave it out, or give it the next free address."""
        pk = self.vm_import.pk
        values = self.read(request, ImportRowChangeSerializer, partial=True)
        actor: dict[str, Any] = {"author": views.author(request), "user": request.user}
        if "skip" in values:
            corrections.skip_rows(pk, [number], skipped=values["skip"], **actor)
        elif "free_address" in values:
            corrections.assign_free_addresses(pk, number, **actor)
        else:
            corrections.correct_row(pk, number, values, **actor)
        return self.retrieve(request)


class ImportCommit(_ImportView):
    needs = {"POST": _CHANGE}
    idempotent = ("POST",)

    @extend_schema(request=ImportCommitSerializer, responses=_SMALL_OR_LARGE)
    def post(self, request: Request, import_id: int) -> Response:
        """Commit a draft; a large one is committed by a worker."""
        vm_import = self.get_object()
        is_empty = bodies.is_empty_form(request)
        values = {} if is_empty else self.read(request, ImportCommitSerializer)

        def commit() -> idempotency.StoredAnswer:
            author = views.author(request)
            committed = drafts.commit(vm_import.pk, author=author, user=request.user, **values)
            status = 200 if committed.status == Status.COMMITTED else 202
            return idempotency.StoredAnswer(status, self.represent(committed))

        return self.answer(views.run_once(request, commit))


class _ImportAction(_ImportView):
    """An endpoint that does something with an import; a body is not read."""

    needs = {"POST": _CHANGE}

    def perform(self, request: Request, action: Callable[..., VMImport]) -> VMImport:
        self.parameters.raise_problems()
        return action(self.get_object().pk, author=views.author(request), user=request.user)


class ImportCheck(_ImportAction):
    @extend_schema(request=None)
    def post(self, request: Request, import_id: int) -> Response:
        """Validate a draft again by the present state of the register."""
        return Response(self.represent(self.perform(request, drafts.revalidate)))


class ImportMissingAddresses(_ImportAction):
    @extend_schema(request=None)
    def post(self, request: Request, import_id: int) -> Response:
        """Give each row that lacks a family of its network the next free address of it."""
        return Response(self.represent(self.perform(request, corrections.assign_missing_families)))


class ImportUndo(_ImportAction):
    @extend_schema(request=None, responses=_SMALL_OR_LARGE)
    def post(self, request: Request, import_id: int) -> Response:
        """Undo an import, as long as nothing uses what it created; a worker undoes a large one."""
        vm_import = self.perform(request, drafts.undo)
        if vm_import.undo_wanted:
            tasks.notify_worker(vm_import.pk)
        return Response(self.represent(vm_import), status=202 if vm_import.undo_wanted else 200)


class ImportCancel(_ImportAction):
    @extend_schema(request=None)
    def post(self, request: Request, import_id: int) -> Response:
        """Discard a draft, or stop an import before it is committed."""
        return Response(self.represent(self.perform(request, drafts.cancel)))


class ImportManifest(_ImportView):
    needs = {"GET": (*_VIEW, "claims.view_entry", "claims.view_ipamclaim")}

    @extend_schema(responses={(200, "application/yaml"): OpenApiTypes.BINARY})
    def get(self, request: Request, import_id: int) -> views.Answer:
        """The IPPools or IPAMClaims that an import created, as YAML."""
        self.parameters.raise_problems()
        vm_import = self.get_object()
        text = manifests.render_yaml(vm_import, scoped.request_scope(request))
        return _file(text.encode(), "application/yaml", f"import-{vm_import.pk}.yaml")


class TemplateCSV(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(
        operation_id="imports_template_csv_retrieve",
        responses={(200, "text/csv"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> views.Answer:
        """A CSV template of VMs to fill in."""
        query.Query(request).raise_problems()
        return _file(formats.template_csv(), "text/csv; charset=utf-8", "vm-import.csv")


class TemplateXLSX(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(
        operation_id="imports_template_xlsx_retrieve",
        responses={(200, XLSX): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> views.Answer:
        """An XLSX template of VMs to fill in."""
        query.Query(request).raise_problems()
        return _file(formats.template_xlsx(), XLSX, "vm-import.xlsx")


def _file(content: bytes, media_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=media_type, headers=headers)


_IMPORT_PATH = "imports/<int:import_id>/"
urlpatterns = [
    path("imports/", Imports.as_view(), name="imports"),
    path("imports/template.csv", TemplateCSV.as_view(), name="import-template-csv"),
    path("imports/template.xlsx", TemplateXLSX.as_view(), name="import-template-xlsx"),
    path(_IMPORT_PATH, ImportView.as_view(), name="import"),
    path(f"{_IMPORT_PATH}rows/", ImportRows.as_view(), name="import-rows"),
    path(f"{_IMPORT_PATH}rows/<int:number>/", ImportRowView.as_view(), name="import-row"),
    path(f"{_IMPORT_PATH}commit/", ImportCommit.as_view(), name="import-commit"),
    path(f"{_IMPORT_PATH}check/", ImportCheck.as_view(), name="import-check"),
    path(
        f"{_IMPORT_PATH}missing-addresses/",
        ImportMissingAddresses.as_view(),
        name="import-missing-addresses",
    ),
    path(f"{_IMPORT_PATH}undo/", ImportUndo.as_view(), name="import-undo"),
    path(f"{_IMPORT_PATH}cancel/", ImportCancel.as_view(), name="import-cancel"),
    path(f"{_IMPORT_PATH}manifest/", ImportManifest.as_view(), name="import-manifest"),
]
