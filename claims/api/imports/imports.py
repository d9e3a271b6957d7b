"""Endpoints of imports: drafts of files, their rows and corrections, commit and undo.

Beside it: requests of imports: forms, and the target of a new import.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from claims.api import scoped
from claims.api.imports.serializers import (
    ImportBodySerializer,
    ImportChangeSerializer,
    ImportCommitSerializer,
    ImportFormSerializer,
    ImportRowChangeSerializer,
    ImportRowSerializer,
    VMImportDetailSerializer,
    VMImportSerializer,
    find_network,
    unknown_network,
)
from claims.imports import drafts, manifests, mapping
from claims.imports.drafts import Upload
from claims.imports.files import formats
from claims.imports.mapping import ImportOptions
from claims.models import ImportRow, VMImport
from claims.models.imports import ImportTarget
from pools import tasks
from pools.core import errors
from pools.models import Cluster
from pools.models.imports import ImportStatus
from pools.platform.rest import filters, generics, imports, parsing, query, views


def is_empty_form(request: Request) -> bool:
    """Return True for an empty multipart form, which some clients send instead of no body."""
    form = request._request
    return parsing.media_type(request) == imports.FORM and not (form.POST or form.FILES)


def form_identity(request: Request, upload: Upload) -> bytes:
    """Return what an Idempotency-Key is bound to: the boundary of a form differs in each request."""
    return repr(sorted(request._request.POST.items())).encode() + b"\0" + upload.to_bytes()


def import_options(request: Request, upload: Upload, values: dict[str, Any]) -> ImportOptions:
    """Return the options of an import; they name its cluster, its network or both.

    Raises InvalidInput unknown_network, required; NotAllowed.
    """
    cluster = _target_cluster(request, values)
    if cluster is None:
        raise _missing_target_error(request, upload)
    limited = drafts.is_limited(request.user, values["target"])
    options = {**values, "cluster": cluster, "user": request.user, "limited": limited}
    return ImportOptions(**options)


def _target_cluster(request: Request, values: dict[str, Any]) -> Cluster | None:
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
    network = mapping.find_by_addresses(upload, request.user)
    if network is not None:
        message += (
            f"; the only network with static VM support whose subnets contain all addresses is"
            f" {network.name} ({network.pk})"
        )
    return errors.InvalidInput.for_field("network", "required", message)


_VIEW = ("claims.view_vmimport",)
_CHANGE = ("claims.change_vmimport",)
_SMALL_OR_LARGE = {200: VMImportSerializer, 202: VMImportSerializer}


class ImportFilter(scoped.ScopedFilterSet):
    status = filters.choice(*ImportStatus.values)
    target = filters.choice(*ImportTarget.values, field_name="options__target")
    network = filters.integer(1, 1 << 62, field_name="options__network", help_text="Id.")


class _ImportView(imports.ImportResourceView):
    queryset = VMImport.objects.all()
    serializer_class: Any = VMImportSerializer
    lookup_url_kwarg = "import_id"
    kind = drafts.IMPORTS
    notify = staticmethod(tasks.notify_import_worker)


class Imports(_ImportView, imports.NewImportView):
    """Imports of VMs: all for those who see all namespaces, for others their own."""

    needs = {"GET": _VIEW, "POST": ("claims.add_vmimport",)}
    largest_body = formats.LARGEST
    filterset_class = ImportFilter
    limited_by = ("cluster",)
    limited_by_body = True
    form_serializer = ImportFormSerializer
    body_serializer = ImportBodySerializer

    @extend_schema(
        request={imports.FORM: ImportFormSerializer, parsing.JSON: ImportBodySerializer},
        responses={201: VMImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import VMs from a file, a pasted list or rows: a draft, unless `commit`."""
        self.parameters.raise_problems()
        values = self.read_import(request)
        upload = values.pop("upload")
        options = import_options(request, upload, values)
        identity = None
        if upload.kind == "file" and "HTTP_IDEMPOTENCY_KEY" in request.META:
            identity = form_identity(request, upload)
        author = views.author(request)
        return self.create_import(
            request, lambda: drafts.create(upload, options, author=author), body=identity
        )


class ImportView(_ImportView, generics.DetailView):
    """An import of VMs, with its port groups and the status of its VMs."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}
    serializer_class = VMImportDetailSerializer

    def load(self, rows: list[Any]) -> None:
        for vm_import in rows:
            is_committed = vm_import.status == ImportStatus.COMMITTED
            vm_import.port_groups = mapping.port_groups(vm_import)
            vm_import.without_namespace = mapping.without_namespace(vm_import)
            vm_import.vm_status_counts = (
                manifests.status_counts(vm_import) if is_committed else None
            )

    @extend_schema(request=ImportChangeSerializer)
    def patch(self, request: Request, import_id: int) -> Response:
        """Change the network, the namespace or the mapping of a draft; all its rows are resolved again."""
        vm_import = self.get_object()
        values = self.read(request, ImportChangeSerializer, partial=True)
        network = values.get("network")
        if network is not None and network.cluster_id != vm_import.cluster_id:
            raise unknown_network("network", network.pk)
        author = views.author(request)
        changed = drafts.change_mapping(vm_import.pk, values, author=author, user=request.user)
        return Response(self.represent(changed))


class ImportRowFilter(imports.RowFilter):
    kind = drafts.IMPORTS
    namespace = filters.Filter()
    port_group = filters.Filter()
    q = filters.Filter(method="filter_text", help_text="A part of a VM, MAC or address.")


class _ImportRowView(imports.ImportRowView):
    queryset = ImportRow.objects.all()
    serializer_class = ImportRowSerializer
    kind = drafts.IMPORTS

    def load(self, rows: list[Any]) -> None:
        statuses: dict[int, str] = {}
        if self.parent.status == ImportStatus.COMMITTED:
            statuses = manifests.row_statuses(self.parent, [row.number for row in rows])
        for row in rows:
            row.vm_status = statuses.get(row.number)


class ImportRows(_ImportRowView, generics.ListView):
    """The rows of an import."""

    needs = {"GET": _VIEW}
    filterset_class = ImportRowFilter


class ImportRowView(_ImportRowView, generics.DetailView):
    """A row of an import."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(request=ImportRowChangeSerializer)
    def patch(self, request: Request, import_id: int, number: int) -> Response:
        """Correct a row of a draft, leave it out, or give it the next free address."""
        pk = self.parent.pk
        values = self.read(request, ImportRowChangeSerializer, partial=True)
        actor: dict[str, Any] = {"author": views.author(request), "user": request.user}
        if "skip" in values:
            drafts.IMPORTS.skip_rows(pk, [number], skipped=values["skip"], **actor)
        elif "free_address" in values:
            drafts.assign_free_addresses(pk, number, **actor)
        else:
            drafts.IMPORTS.correct_row(pk, number, values, **actor)
        return self.retrieve(request)


@extend_schema_view(post=extend_schema(request=ImportCommitSerializer, responses=_SMALL_OR_LARGE))
class ImportCommit(_ImportView, imports.CommitView):
    needs = {"POST": _CHANGE}
    commit_serializer = ImportCommitSerializer

    def read_commit(self, request: Request) -> dict[str, Any]:
        return {} if is_empty_form(request) else super().read_commit(request)


class ImportCheck(_ImportView, imports.CheckView):
    needs = {"POST": _CHANGE}


class ImportMissingAddresses(_ImportView, imports.ActionView):
    needs = {"POST": _CHANGE}

    @extend_schema(request=None)
    def post(self, request: Request, import_id: int) -> Response:
        """Give each row that lacks a family of its network the next free address of it."""
        return self.perform(drafts.assign_missing_families)


@extend_schema_view(post=extend_schema(request=None, responses=_SMALL_OR_LARGE))
class ImportUndo(_ImportView, imports.UndoView):
    needs = {"POST": _CHANGE}


class ImportCancel(_ImportView, imports.CancelView):
    needs = {"POST": _CHANGE}


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


def _file(content: bytes, media_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=media_type, headers=headers)


_IMPORT_PATH = "imports/<int:import_id>/"
urlpatterns = [
    path("imports/", Imports.as_view(), name="imports"),
    path("imports/template.csv", TemplateCSV.as_view(), name="import-template-csv"),
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
