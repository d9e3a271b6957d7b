"""imports/: drafts of all kinds, their rows and corrections, commit, undo and the other actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema, extend_schema_view
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from pools import tasks
from pools.api import lookups
from pools.api.imports import kinds
from pools.core import errors, object_reader
from pools.models import Cluster, Import, ImportRow, ImportStatus, RowStatus
from pools.platform import idempotency
from pools.platform.files import archives
from pools.platform.rest import filters, generics, parsing, views

FORM = "multipart/form-data"
DEFAULT_KIND = "vm"
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files


def _any_kind(component: str, part: str, field: str | None = "kind", **options: Any) -> Any:
    """Return the description of a serializer of each kind; `field` of an answer names its kind."""
    # The page of the API shows an example of the first one.
    names = (DEFAULT_KIND, *(kinds.KINDS.keys() - {DEFAULT_KIND}))
    serializers = {name: getattr(kinds.KINDS[name], part) for name in names}
    return PolymorphicProxySerializer(
        component_name=component,
        serializers=serializers,
        resource_type_field_name=field,
        **options,
    )


IMPORT = _any_kind("Import", "serializer")
_DETAIL = _any_kind("ImportDetail", "detail_serializer")
_SMALL_OR_LARGE = {200: IMPORT, 202: IMPORT}
_NEW = {
    FORM: _any_kind("NewImport", "new_serializer", None),
    parsing.JSON: _any_kind("NewImportBody", "json_serializer", None),
}


class ImportsView(generics.GenericView):
    """An endpoint of the imports that the user may see: of all kinds, or of `only_kinds`.

    `needs` has what a method does with an import: `view`, `add` or `change` it.
    """

    lookup_url_kwarg = "import_id"
    absent = "There is no such import."
    permission_classes = (kinds.HasKindPermission,)
    only_kinds: tuple[str, ...] = ()

    @cached_property
    def import_of_path(self) -> Any:
        """The import. Raises NotFound for one that the user may not see, else NotAllowed."""
        for name, kind in kinds.permitted(self.request, "view", self.only_kinds).items():
            rows = kind.imports.visible(self.request.user)
            row = rows.filter(pk=self.kwargs["import_id"]).first()
            if row is not None:
                for verb in kinds.verbs(self.request, self):
                    kinds.require(self.request, name, verb)
                return row
        raise errors.NotFound(self.absent)

    @property
    def kind(self) -> kinds.ImportKind:
        return kinds.KINDS[self.import_of_path.kind]

    def get_serializer_class(self) -> Any:
        return self.kind.serializer

    def actor(self) -> dict[str, Any]:
        return {"author": self.author(), "user": self.request.user}

    def answer(self, stored: idempotency.StoredAnswer) -> Response:
        """Answer, and wake a worker after the transaction: an unreachable broker only delays the work."""
        waiting = {ImportStatus.QUEUED, ImportStatus.COMMITTING}
        if stored.status == 202 or stored.answer["status"] in waiting:
            tasks.notify_import_worker(stored.answer["id"])
        return Response(stored.answer, status=stored.status)


# --- imports --------------------------------------------------------------------------------------


class _ImportFilter(filters.FilterSet):
    kind = filters.choice(*kinds.KINDS)
    status = filters.choice(*ImportStatus.values)
    cluster = filters.Filter("parse_cluster", help_text="Name or id.")

    def parse_cluster(self, value: str, parameter: str) -> Cluster:
        shown = kinds.permitted(self.request, "view").values()
        cluster = lookups.cluster(value, parameter)
        if not any(kind.knows_cluster(self.request, cluster) for kind in shown):
            raise lookups.unknown_cluster(value, parameter)
        return cluster


def _with_filters(base: type[filters.FilterSet], *parts: Mapping[str, filters.Filter]) -> Any:
    """Return a FilterSet with the filters of one or of all kinds."""
    declared = {name: filter_ for part in parts for name, filter_ in part.items()}
    return type(base.__name__.lstrip("_"), (base,), declared)


class Imports(ImportsView):
    """Imports: those of VMs are all for those who see all namespaces, for others their own."""

    needs = {"GET": ("view",), "POST": ("add",)}
    idempotent = ("POST",)
    ordering = "-id"
    largest_body = archives.LARGEST
    filterset_class = _with_filters(
        _ImportFilter, *(kind.list_filters for kind in kinds.KINDS.values())
    )
    limited_by = ("cluster",)
    limited_by_body = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the files to find the CSRF token."""
        length = int(request._request.META.get("CONTENT_LENGTH") or 0)
        if length > self.largest_body + _FORM_OVERHEAD:
            message = f"an import has at most {self.largest_body} bytes"
            raise errors.InvalidInput.for_field("file", "too_large", message)
        super().initial(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):  # the OpenAPI document has no user
            return Import.objects.all()
        visible = [
            Q(pk__in=kind.imports.visible(self.request.user).values("pk"))
            for kind in kinds.permitted(self.request, "view").values()
        ]
        return Import.objects.filter(reduce(or_, visible))

    def field_names(self) -> list[str]:
        shown = kinds.permitted(self.request, "view").values()
        names = (generics.answered_names(kind.serializer) for kind in shown)
        return list(dict.fromkeys(name for part in names for name in part))

    @extend_schema(responses=_any_kind("Import", "serializer", many=True))
    def get(self, _request: Request) -> Response:
        """Imports of all kinds that the user may see."""
        ids = [row.pk for row in self.paginate_queryset(self.filter_queryset(self.get_queryset()))]
        rows: dict[int, dict[str, Any]] = {}
        for kind in kinds.permitted(self.request, "view").values():
            visible = kind.imports.visible(self.request.user).filter(pk__in=ids)
            rows |= {row.pk: self.represent(row, kind.serializer) for row in visible}
        return self.get_paginated_response([rows[pk] for pk in ids if pk in rows])

    @extend_schema(request=_NEW, responses={201: IMPORT})
    def post(self, request: Request) -> Response:
        """Import VMs (`kind` is `vm`, or absent) or another register (`register`): a draft, unless `commit`."""
        self.parameters.raise_problems()
        kind, values = self._read_import(request)

        def create() -> idempotency.StoredAnswer:
            uploads = values.pop("uploads")
            new = kind.new(request, uploads, values)
            row = kind.imports.create(uploads, new, author=self.author())
            return idempotency.StoredAnswer(201, self.represent(row, kind.serializer))

        return self.answer(views.run_once(request, create, body=_form_identity(request)))

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
        serializer = kind.new_serializer(data=data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        values.pop("kind", None)
        return kind, values

    def _kind_to_add(self, value: object) -> kinds.ImportKind:
        name = DEFAULT_KIND if value is None else parsing.choice(value, "kind", tuple(kinds.KINDS))
        kinds.require(self.request, name, "add")
        return kinds.KINDS[name]


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


@extend_schema_view(get=extend_schema(responses=_DETAIL))
class ImportView(ImportsView, generics.DetailView):
    """An import, with what its kind shows beside its progress."""

    needs = {"GET": ("view",), "PATCH": ("change",)}

    def get_object(self) -> Any:
        self.kind.load(self.import_of_path)
        return self.import_of_path

    def get_serializer_class(self) -> Any:
        return self.kind.detail_serializer

    @extend_schema(request=_any_kind("ImportChange", "change_serializer", None), responses=_DETAIL)
    def patch(self, request: Request, import_id: int) -> Response:
        """Change the mapping of a draft; all its rows are resolved again."""
        row = self.import_of_path
        values = self.read(request, self.kind.change_serializer, partial=True)
        changed = self.kind.change(row, values, **self.actor())
        self.kind.load(changed)
        return self.respond(changed)


# --- rows -----------------------------------------------------------------------------------------


class _RowFilter(filters.FilterSet):
    status = filters.choice(*RowStatus.values)


_ROW = _any_kind("ImportRow", "row_serializer", None)
_ROW_FILTERS = {
    name: _with_filters(_RowFilter, kind.row_filters) for name, kind in kinds.KINDS.items()
}


class _RowView(ImportsView):
    lookup_field = lookup_url_kwarg = "number"
    orderings = {"number": ("number",)}
    ordering = "number"
    absent = "There is no such import, or it has no such row."
    get_object = generics.GenericView.get_object

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return ImportRow.objects.all()
        rows: QuerySet[Any] = self.import_of_path.rows.all()
        return rows

    def get_serializer_class(self) -> Any:
        return self.kind.row_serializer

    def load(self, rows: list[Any]) -> None:
        self.kind.load_rows(self.import_of_path, rows)


@extend_schema_view(
    get=extend_schema(responses=_any_kind("ImportRow", "row_serializer", None, many=True))
)
class ImportRows(_RowView, generics.ListView):
    """The rows of an import."""

    needs = {"GET": ("view",)}
    # For the OpenAPI document: those of all kinds.
    filterset_class = _with_filters(
        _RowFilter, *(kind.row_filters for kind in kinds.KINDS.values())
    )

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        self.filterset_class = _ROW_FILTERS[self.import_of_path.kind]
        return super().filter_queryset(queryset)


@extend_schema_view(get=extend_schema(responses=_ROW))
class ImportRowView(_RowView, generics.DetailView):
    """A row of an import."""

    needs = {"GET": ("view",), "PATCH": ("change",)}

    @extend_schema(
        request=_any_kind("ImportRowChange", "row_change_serializer", None), responses=_ROW
    )
    def patch(self, request: Request, import_id: int, number: int) -> Response:
        """Correct a row of a draft, leave it out, or give a VM the next free address."""
        pk = self.import_of_path.pk
        values = self.read(request, self.kind.row_change_serializer, partial=True)
        self.kind.change_row(pk, number, values, **self.actor())
        return self.respond(self.get_object())


# --- actions --------------------------------------------------------------------------------------


class ImportCommit(ImportsView):
    """Commit of a draft."""

    needs = {"POST": ("change",)}
    idempotent = ("POST",)

    @extend_schema(request=kinds.ImportCommitSerializer, responses=_SMALL_OR_LARGE)
    def post(self, request: Request, import_id: int) -> Response:
        """Commit a draft; a large one is committed by a worker."""
        pk = self.import_of_path.pk
        values = {} if _is_empty_form(request) else self.read(request, kinds.ImportCommitSerializer)

        def commit() -> idempotency.StoredAnswer:
            committed = self.kind.imports.commit(pk, **self.actor(), **values)
            status = 200 if committed.status == ImportStatus.COMMITTED else 202
            return idempotency.StoredAnswer(status, self.represent(committed))

        return self.answer(views.run_once(request, commit))


def _is_empty_form(request: Request) -> bool:
    """Return True for an empty multipart form, which some clients send instead of no body."""
    form = request._request
    return parsing.media_type(request) == FORM and not (form.POST or form.FILES)


class ActionView(ImportsView):
    """An endpoint that does something with an import; a body is not read."""

    needs = {"POST": ("change",)}

    def perform(self, action: Callable[..., Import]) -> Response:
        self.parameters.raise_problems()
        changed = action(self.import_of_path.pk, **self.actor())
        status = 202 if changed.undo_wanted else 200
        return self.answer(idempotency.StoredAnswer(status, self.represent(changed)))


class ImportCheck(ActionView):
    @extend_schema(request=None, responses=IMPORT)
    def post(self, _request: Request, import_id: int) -> Response:
        """Validate a draft again by the present state of the register."""
        return self.perform(self.kind.imports.revalidate)


class ImportUndo(ActionView):
    @extend_schema(request=None, responses=_SMALL_OR_LARGE)
    def post(self, _request: Request, import_id: int) -> Response:
        """Undo an import, as long as nobody else uses what it created; a worker undoes a large one."""
        return self.perform(self.kind.imports.undo)


class ImportCancel(ActionView):
    @extend_schema(request=None, responses=IMPORT)
    def post(self, _request: Request, import_id: int) -> Response:
        """Discard a draft, or stop an import before it is committed."""
        return self.perform(self.kind.imports.cancel)
