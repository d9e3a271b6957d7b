"""imports/: drafts of all kinds, their rows and corrections, commit, undo and the other actions."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import decorators, exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from claims.api import scoped
from claims.api.imports import kinds, vm
from claims.imports import drafts, manifests
from claims.models import VMImport
from claims.models.imports import ImportTarget
from pools import models, tasks
from pools.api import imports, lookups
from pools.core import errors, object_reader
from pools.platform import idempotency
from pools.platform.files import archives
from pools.platform.imports import states
from pools.platform.rest import filters, generics, parsing
from pools.platform.rest.filters import Endpoint
from pools.register.imports import drafts as register_drafts

FORM = "multipart/form-data"
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files

_IMPORT = kinds.any_kind("Import", "answer")
_DETAIL = kinds.any_kind("ImportDetail", "detail")
_NEW = {
    FORM: kinds.any_kind("NewImport", "new", None),
    parsing.JSON: kinds.any_kind("NewImportBody", "new_in_json", None),
}
_ROW = kinds.any_kind("ImportRow", "row", None)


# --- imports --------------------------------------------------------------------------------------


class ImportFilter(filters.FilterSet):
    kind = filters.choice(*kinds.KINDS)
    status = filters.choice(*models.ImportStatus.values)
    cluster = filters.Filter("parse_cluster", help_text="Name or id.")
    target = filters.choice(*ImportTarget.values, field_name="options__target")
    network = filters.integer(1, 1 << 62, field_name="options__network", help_text="Id.")

    def parse_cluster(self, value: str, parameter: str) -> models.Cluster:
        cluster = lookups.cluster(value, parameter)
        knows_all = kinds.REGISTER in kinds.permitted(self.request, "view")
        if not (knows_all or scoped.knows_cluster(self.request, cluster)):
            raise lookups.unknown_cluster(value, parameter)
        return cluster


def _action(*only_kinds: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Something that is done with an import, of these kinds or of any."""
    names = only_kinds or tuple(kinds.KINDS)
    return generics.post_action("change", only_kinds=names, **options)


@extend_schema_view(
    list=extend_schema(responses=kinds.any_kind("Import", "answer", many=True)),
    retrieve=extend_schema(responses=_DETAIL),
)
class ImportViewSet(kinds.ImportViews, generics.ModelViewSet):
    """Imports of all kinds that the user may see: those of VMs are all for those who see all namespaces, for others their own."""

    queryset = models.Import.objects.select_related("cluster")
    idempotent = ("POST",)
    ordering = "-id"
    largest_body = archives.LARGEST
    filterset_class = ImportFilter
    limited_by = ("cluster",)
    limited_by_body = True
    row_text = "An import, with what its kind shows beside its progress."

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the files to find the CSRF token."""
        length = int(request._request.META.get("CONTENT_LENGTH") or 0)
        if length > self.largest_body + _FORM_OVERHEAD:
            message = f"an import has at most {self.largest_body} bytes"
            raise errors.InvalidInput.for_field("file", "too_large", message)
        super().initial(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Any]:
        visible = [
            Q(pk__in=kind.engine.visible(self.request.user).values("pk"))
            for kind in kinds.permitted(self.request, "view").values()
        ]
        rows: QuerySet[Any] = super().get_queryset().filter(reduce(or_, visible))
        return rows

    def get_object(self) -> Any:
        return self.import_of_path

    def get_serializer_class(self) -> Any:
        return self.kind.answer

    def field_names(self) -> list[str]:
        answers: list[Any] = [
            kind.answer for kind in kinds.permitted(self.request, "view").values()
        ]
        names = (generics.answered_names(answer) for answer in answers)
        return list(dict.fromkeys(name for part in names for name in part))

    def list(self, *_arguments: Any, **_options: Any) -> Response:
        answers = []
        for row in self.paginate_queryset(self.filter_queryset(self.get_queryset())):
            kind = kinds.KINDS[row.kind]
            row.__class__ = kind.engine.model  # a proxy of the table, with the options of the kind
            answers.append(self.represent(row, kind.answer))
        return self.get_paginated_response(answers)

    @extend_schema(request=_NEW, responses={201: _IMPORT})
    def create(self, request: Request, *_arguments: Any, **_options: Any) -> Response:
        """Import VMs (`kind` is `vm`, or absent) or another register (`register`): a draft, unless `commit`."""
        self.parameters.raise_problems()
        kind, values = self._read_import(request)

        def create() -> idempotency.StoredAnswer:
            uploads = values.pop("uploads")
            new = kind.build(request, uploads, values)
            row = kind.engine.create(uploads, new, author=self.author())
            return idempotency.StoredAnswer(201, self.represent(row, kind.answer))

        return self._answer(generics.run_once(request, create, body=_form_identity(request)))

    def _read_import(self, request: Request) -> tuple[kinds.ImportKind, dict[str, Any]]:
        """Return the kind and the values of a new import. Raises InvalidInput, NotAllowed."""
        media_type = parsing.media_type(request)
        if media_type == FORM:
            kind = self._kind_to_add(request._request.POST.get("kind") or None)
            data = _form_parts(request)
        elif media_type == parsing.JSON:
            data = parsing.document(request, limit=self.largest_body)
            kind = self._kind_to_add(data.get("kind") if isinstance(data, dict) else None)
        else:
            message = f"Send {FORM} with a part `file`, or {parsing.JSON}."
            raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)
        serializer = kind.new(data=data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        values.pop("kind", None)
        return kind, values

    def _kind_to_add(self, value: object) -> kinds.ImportKind:
        name = kinds.VM if value is None else parsing.choice(value, "kind", tuple(kinds.KINDS))
        kinds.require(self.request, name, "add")
        return kinds.KINDS[name]

    def retrieve(self, _request: Request, *_arguments: Any, **_options: Any) -> Response:
        return self._respond_in_detail(self.get_object())

    @extend_schema(request=kinds.any_kind("ImportChange", "change", None), responses=_DETAIL)
    def partial_update(self, request: Request, *_arguments: Any, **_options: Any) -> Response:
        """Change the mapping of a draft; all its rows are resolved again."""
        row = self.import_of_path
        values = self.read(request, self.kind.change, partial=True)
        return self._respond_in_detail(self.kind.change_mapping(row, values, **self.actor()))

    def _respond_in_detail(self, row: Any) -> Response:
        if isinstance(row, VMImport):
            vm.load_vm_import(row)
        return self.respond(row, self.kind.detail)

    # --- actions ----------------------------------------------------------------------------------

    @extend_schema(request=imports.ImportCommitSerializer, responses={200: _IMPORT, 202: _IMPORT})
    @_action(idempotent=True, url_name="import-commit")
    def commit(self, request: Request, import_id: int) -> Response:
        """Commit a draft; a large one is committed by a worker."""
        values = {}
        if not _is_empty_form(request):
            values = self.read(request, imports.ImportCommitSerializer)

        def commit() -> idempotency.StoredAnswer:
            committed = self.kind.engine.commit(self.import_of_path.pk, **self.actor(), **values)
            status = 200 if committed.status == models.ImportStatus.COMMITTED else 202
            return idempotency.StoredAnswer(status, self.represent(committed))

        try:
            return self._answer(generics.run_once(request, commit))
        except errors.ImportHasBadRows:
            # The transaction of an Idempotency-Key took back that the draft shows which.
            draft = self.kind.engine.get(self.import_of_path.pk)
            if "HTTP_IDEMPOTENCY_KEY" in request.META and not states.is_large(draft):
                self.kind.engine.revalidate(draft.pk, **self.actor())
            raise

    @extend_schema(request=None, responses=_IMPORT)
    @_action(url_name="import-check")
    def check(self, _request: Request, import_id: int) -> Response:
        """Validate a draft again by the present state of the register."""
        return self._perform(self.kind.engine.revalidate)

    @extend_schema(request=None, responses={200: _IMPORT, 202: _IMPORT})
    @_action(url_name="import-undo")
    def undo(self, _request: Request, import_id: int) -> Response:
        """Undo an import, as long as nobody else uses what it created; a worker undoes a large one."""
        return self._perform(self.kind.engine.undo)

    @extend_schema(request=None, responses=_IMPORT)
    @_action(url_name="import-cancel")
    def cancel(self, _request: Request, import_id: int) -> Response:
        """Discard a draft, or stop an import before it is committed."""
        return self._perform(self.kind.engine.cancel)

    @extend_schema(request=None, responses=vm.VMImportSerializer)
    @_action(kinds.VM, url_path="missing-addresses", url_name="import-missing-addresses")
    def assign_missing_addresses(self, _request: Request, import_id: int) -> Response:
        """Give each row that lacks a family of its network the next free address of it."""
        return self._perform(drafts.assign_missing_families)

    @extend_schema(
        request=imports.VanishedRowsSerializer, responses=imports.RegisterImportSerializer
    )
    @_action(kinds.REGISTER, url_name="import-release")
    def release(self, request: Request, import_id: int) -> Response:
        """Release what a mirror brought and its source has no more, addresses into the cooldown of their pool."""
        return self._confirm(request, keep=False)

    @extend_schema(
        request=imports.VanishedRowsSerializer, responses=imports.RegisterImportSerializer
    )
    @_action(kinds.REGISTER, url_name="import-keep")
    def keep(self, request: Request, import_id: int) -> Response:
        """Keep what a mirror brought and its source has no more; it belongs to the mirror no longer."""
        return self._confirm(request, keep=True)

    def _confirm(self, request: Request, *, keep: bool) -> Response:
        self.parameters.raise_problems()
        numbers = self.read(request, imports.VanishedRowsSerializer).get("rows")
        pk, author = self.import_of_path.pk, self.author()
        return self.respond(register_drafts.confirm_vanished(pk, numbers, keep=keep, author=author))

    def _perform(self, action: Callable[..., models.Import]) -> Response:
        """Do something with the import; a body is not read."""
        self.parameters.raise_problems()
        changed = action(self.import_of_path.pk, **self.actor())
        status = 202 if changed.undo_wanted else 200
        return self._answer(idempotency.StoredAnswer(status, self.represent(changed)))

    def _answer(self, stored: idempotency.StoredAnswer) -> Response:
        """Answer, and wake a worker after the transaction: an unreachable broker only delays the work."""
        waiting = {models.ImportStatus.QUEUED, models.ImportStatus.COMMITTING}
        if stored.status == 202 or stored.answer["status"] in waiting:
            tasks.notify_import_worker(stored.answer["id"])
        return Response(stored.answer, status=stored.status)

    @extend_schema(responses={(200, "application/yaml"): OpenApiTypes.BINARY})
    @decorators.action(
        ["get"],
        detail=True,
        url_name="import-manifest",
        only_kinds=(kinds.VM,),
        needs={"GET": ("view",)},
    )
    def manifest(self, request: Request, import_id: int) -> generics.Answer:
        """The IPPools or IPAMClaims that an import created, as YAML."""
        self.parameters.raise_problems()
        for permission in ("claims.view_entry", "claims.view_ipamclaim"):
            generics.require(request, permission)
        vm_import = self.import_of_path
        text = manifests.render_yaml(vm_import, scoped.request_scope(request))
        headers = {"Content-Disposition": f'attachment; filename="import-{vm_import.pk}.yaml"'}
        return HttpResponse(text, content_type="application/yaml", headers=headers)


def _form_parts(request: Request) -> dict[str, Any]:
    """Return the parts of a form but the empty ones; `file` is a list.

    Raises InvalidInput for another repeated part.
    """
    form = request._request
    report = object_reader.ProblemReport()
    parts: dict[str, Any] = {}
    for name in {*form.POST, *form.FILES}:
        files = form.FILES.getlist(name)
        values = [*form.POST.getlist(name), *files]
        if files and name == "file":
            parts[name] = files
        elif len(values) > 1:
            report.add(name, "repeated", "is given more than once")
        elif values[0] != "":
            parts[name] = values[0]
    report.raise_any()
    return parts


def _form_identity(request: Request) -> bytes | None:
    """Return what an Idempotency-Key of a form is bound to: its boundary differs in each request."""
    form = request._request
    if parsing.media_type(request) != FORM or "HTTP_IDEMPOTENCY_KEY" not in request.META:
        return None
    identity = repr(sorted(form.POST.items())).encode()
    for file in form.FILES.getlist("file"):
        file.seek(0)
        identity += repr(file.name).encode() + file.read()
    return identity


def _is_empty_form(request: Request) -> bool:
    """Return True for an empty multipart form, which some clients send instead of no body."""
    form = request._request
    return parsing.media_type(request) == FORM and not (form.POST or form.FILES)


# --- rows -----------------------------------------------------------------------------------------


class ImportRowFilter(vm.VMRowFilter, imports.RegisterRowFilter):
    """For the OpenAPI document: the filters of rows of all kinds."""


@extend_schema_view(
    list=extend_schema(responses=kinds.any_kind("ImportRow", "row", None, many=True)),
    retrieve=extend_schema(responses=_ROW),
)
class ImportRowViewSet(kinds.ImportViews, generics.ModelViewSet):
    """The rows of an import."""

    queryset = models.ImportRow.objects.all()
    lookup_field = lookup_url_kwarg = "number"
    orderings = {"number": ("number",)}
    ordering = "number"
    absent = "There is no such import, or it has no such row."
    row_text = "A row of an import."
    filterset_class: type[filters.FilterSet] | None = ImportRowFilter

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.import_of_path.rows.all()
        return rows

    def get_serializer_class(self) -> Any:
        return self.kind.row

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        self.filterset_class = self.kind.row_filter
        return super().filter_queryset(queryset)

    def load(self, rows: list[Any]) -> None:
        self.kind.load_rows(self.import_of_path, rows)

    @extend_schema(request=kinds.any_kind("ImportRowChange", "row_change", None), responses=_ROW)
    def partial_update(self, request: Request, *_arguments: Any, **_options: Any) -> Response:
        """Correct a row of a draft, leave it out, or give a kinds.VM the next free address."""
        pk, number, actor = self.import_of_path.pk, self.kwargs["number"], self.actor()
        values = self.read(request, self.kind.row_change, partial=True)
        if "free_address" in values:
            drafts.assign_free_addresses(pk, number, **actor)
        elif "skip" in values:
            self.kind.engine.skip_rows(pk, [number], skipped=values["skip"], **actor)
        else:
            self.kind.engine.correct_row(pk, number, values, **actor)
        return self.respond(self.get_object())


urlpatterns = generics.routes(
    ("imports", ImportViewSet, "imports", "import"),
    ("imports/<int:import_id>/rows", ImportRowViewSet, "import-rows", "import-row"),
)
