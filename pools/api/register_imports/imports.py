"""register-imports/: drafts of other registers' files, their rows and corrections, commit and undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
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
from pools.models import Cluster, RegisterImport, RegisterRow
from pools.models.imports import ImportStatus, RegisterTarget
from pools.platform.rest import filters, generics, imports, parsing, views
from pools.register.imports import drafts, files

_VIEW = ("pools.view_registerimport",)
_ADD = ("pools.add_registerimport",)
_CHANGE = ("pools.change_registerimport",)
_SMALL_OR_LARGE = {200: RegisterImportSerializer, 202: RegisterImportSerializer}


class RegisterImportFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    status = filters.choice(*ImportStatus.values)


class _ImportView(imports.ImportResourceView):
    queryset = RegisterImport.objects.all()
    serializer_class: Any = RegisterImportSerializer
    lookup_field = "pk"
    lookup_url_kwarg = "register_import_id"
    absent = "There is no such import."
    kind = drafts.IMPORTS
    notify = staticmethod(tasks.notify_import_worker)


class RegisterImports(_ImportView, imports.NewImportView):
    """Imports of other registers."""

    needs = {"GET": _VIEW, "POST": _ADD}
    largest_body = files.LARGEST
    filterset_class = RegisterImportFilter
    form_serializer = RegisterImportFormSerializer
    body_serializer = RegisterImportBodySerializer
    form_lists = ("file",)
    uploaded = "an import"

    @extend_schema(
        request={
            imports.FORM: RegisterImportFormSerializer,
            parsing.JSON: RegisterImportBodySerializer,
        },
        responses={201: RegisterImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import files of NetBox, phpIPAM or Infoblox, or spreadsheets: a draft, unless `commit`."""
        self.parameters.raise_problems()
        values = self.read_import(request)
        uploads = values.pop("uploads", None) or [values.pop("upload")]
        options = drafts.ImportOptions(**values, user=request.user)
        identity = None
        if parsing.media_type(request) == imports.FORM:  # its boundary differs in each request
            identity = repr((sorted(request._request.POST.items()), uploads)).encode()
        author = views.author(request)
        return self.create_import(
            request, lambda: drafts.create(uploads, options, author=author), body=identity
        )


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


class RegisterRowFilter(imports.RowFilter):
    kind = drafts.IMPORTS
    target = filters.choice(*RegisterTarget.values)
    q = filters.Filter(
        method="filter_text", help_text="A part of an address, holder or description."
    )


class _RowView(imports.ImportRowView):
    queryset = RegisterRow.objects.all()
    serializer_class = RegisterRowSerializer
    absent = "The import has no such row."
    kind = drafts.IMPORTS
    import_kwarg = "register_import_id"
    import_absent = "There is no such import."

    def load(self, rows: list[Any]) -> None:
        clusters = Cluster.objects.filter(pk__in={row.cluster_id for row in rows})
        names = dict(clusters.values_list("pk", "name"))
        for row in rows:
            row.cluster_name, row.candidates = names.get(row.cluster_id), drafts.candidates(row)


class RegisterRows(_RowView, generics.ListView):
    """The rows of an import."""

    needs = {"GET": _VIEW}
    filterset_class = RegisterRowFilter


class RegisterRowView(_RowView, generics.DetailView):
    """A row of an import."""

    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(request=RegisterRowChangeSerializer)
    def patch(self, request: Request, register_import_id: int, number: int) -> Response:
        """Correct a row of a draft, or leave it out."""
        pk, author = self.parent.pk, views.author(request)
        values: Mapping[str, Any] = self.read(request, RegisterRowChangeSerializer, partial=True)
        if "skip" in values:
            drafts.IMPORTS.skip_rows(pk, [number], skipped=values["skip"], author=author)
        else:
            drafts.IMPORTS.correct_row(pk, number, values, author=author)
        return self.retrieve(request)


@extend_schema_view(post=extend_schema(request=RegisterCommitSerializer, responses=_SMALL_OR_LARGE))
class RegisterImportCommit(_ImportView, imports.CommitView):
    """Commit of a draft."""

    needs = {"POST": _CHANGE}
    commit_serializer = RegisterCommitSerializer


class RegisterImportCheck(_ImportView, imports.CheckView):
    needs = {"POST": _CHANGE}


@extend_schema_view(
    post=extend_schema(
        summary="Undo an import, as long as nobody else uses what it created; a worker undoes a large one",
        request=None,
        responses=_SMALL_OR_LARGE,
    )
)
class RegisterImportUndo(_ImportView, imports.UndoView):
    needs = {"POST": _CHANGE}


class RegisterImportCancel(_ImportView, imports.CancelView):
    needs = {"POST": _CHANGE}
