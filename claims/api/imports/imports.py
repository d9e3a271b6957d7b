"""Endpoints of imports: drafts of files, their rows and corrections, commit and undo."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims import tasks
from claims.api import scoped
from claims.api.imports import bodies, representation
from claims.api.schemas import imports as import_schema
from claims.imports import corrections, drafts, manifests, search
from claims.imports.files import formats
from claims.models import ImportRow, VMImport
from claims.models.imports import ImportTarget, RowStatus, Status
from pools.core import errors
from pools.platform import idempotency
from pools.platform.rest import pagination, parsing, query, views

_VIEW = ("claims.view_vmimport",)
_CHANGE = ("claims.change_vmimport",)


class Imports(views.View):
    needs = {"GET": _VIEW, "POST": ("claims.add_vmimport",)}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the size first: session authentication would read the file to find the CSRF token."""
        bodies.refuse_large(request._request)
        super().initial(request, *args, **kwargs)

    @extend_schema(**import_schema.LIST)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = drafts.visible_imports(request.user)
        if status := parameters.parse("status", query.choice(*Status.values)):
            rows = rows.filter(status=status)
        if target := parameters.parse("target", query.choice(*ImportTarget.values)):
            rows = rows.filter(target=target)
        if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
            rows = rows.filter(cluster=cluster)
        if network := parameters.parse("network", query.integer(1, 1 << 62)):
            rows = rows.filter(network=network)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=import_schema.IMPORT_FIELDS,
                shape=lambda page_rows: _brief_shapes([row["id"] for row in page_rows]),
                default="-id",
                columns=("id",),
            )
        )

    @extend_schema(**import_schema.CREATE)
    def post(self, request: Request) -> views.Answer:
        query.Query(request).raise_problems()
        upload, options, fingerprint = bodies.read(request)

        def create() -> idempotency.StoredAnswer:
            vm_import = drafts.create(upload, options, author=views.author(request))
            return idempotency.StoredAnswer(201, representation.brief(vm_import))

        stored = views.run_once(request, create, body=fingerprint)
        _notify_worker(stored)
        return views.answer(stored.answer, status=stored.status)


class ImportView(views.View):
    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(**import_schema.ONE)
    def get(self, request: Request, import_id: int) -> views.Answer:
        return views.answer(representation.detail(_get(request, import_id)))

    @extend_schema(**import_schema.CHANGE)
    def patch(self, request: Request, import_id: int) -> views.Answer:
        vm_import = _get(request, import_id)
        body = parsing.changes(request, "network", "namespace", "mapping", nullable=("network",))
        values: dict[str, Any] = {}
        if body.has("network"):
            values["network"] = body.parse("network", bodies.network_parser(request))
        elif "network" in body.data:
            values["network"] = None
        if body.has("namespace"):
            values["namespace"] = body.parse("namespace", bodies.parse_namespace)
        if body.has("mapping"):
            values["mapping"] = body.parse("mapping", bodies.parse_mapping)
        body.report.raise_any()
        network = values.get("network")
        if network is not None and network.cluster_id != vm_import.cluster_id:
            message = f"the import belongs to the cluster {vm_import.cluster}"
            raise errors.InvalidInput.for_field("network", "unknown_network", message)
        changed = drafts.change_mapping(
            vm_import.pk, values, author=views.author(request), user=request.user
        )
        return views.answer(representation.detail(changed))


class ImportRows(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(**import_schema.ROWS)
    def get(self, request: Request, import_id: int) -> views.Answer:
        vm_import = _get(request, import_id)
        parameters = query.Query(request)
        rows = filter_rows(ImportRow.objects.filter(vm_import=vm_import), parameters)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"number": ("number",)},
                fields=import_schema.ROW_FIELDS,
                shape=lambda page_rows: _rows(vm_import, [row["number"] for row in page_rows]),
                default="number",
                columns=("number",),
            )
        )


class ImportRowView(views.View):
    needs = {"GET": _VIEW, "PATCH": _CHANGE}

    @extend_schema(**import_schema.ROW_ONE)
    def get(self, request: Request, import_id: int, number: int) -> views.Answer:
        return views.answer(_row(_get(request, import_id), number))

    @extend_schema(**import_schema.ROW_CHANGE)
    def patch(self, request: Request, import_id: int, number: int) -> views.Answer:
        vm_import = _get(request, import_id)
        author, user = views.author(request), request.user
        field_names = (*corrections.COLUMNS, "skip", "free_address")
        body = parsing.changes(request, *field_names)
        values = {
            name: body.parse(name, _CORRECTION_PARSERS.get(name, _parse_text))
            for name in corrections.COLUMNS
            if name in body.data
        }
        skip = body.parse("skip", bodies.parse_flag) if body.has("skip") else None
        free = body.parse("free_address", bodies.parse_flag) if body.has("free_address") else None
        body.report.raise_any()
        if sum((bool(values), skip is not None, free is not None)) != 1 or free is False:
            message = "send exactly one of: corrected values, skip, free_address"
            raise errors.InvalidInput.for_field("", "conflicting_fields", message)
        if skip is not None:
            corrections.skip_rows(vm_import.pk, [number], skipped=skip, author=author, user=user)
        elif free:
            corrections.assign_free_addresses(vm_import.pk, number, author=author, user=user)
        else:
            corrections.correct_row(vm_import.pk, number, values, author=author, user=user)
        return views.answer(_row(drafts.get(vm_import.pk), number))


class ImportCommit(views.View):
    needs = {"POST": _CHANGE}

    @extend_schema(**import_schema.COMMIT)
    def post(self, request: Request, import_id: int) -> views.Answer:
        vm_import = _get(request, import_id)
        skip_bad = _parse_skip_bad(request)

        def commit() -> idempotency.StoredAnswer:
            author = views.author(request)
            committed = drafts.commit(
                vm_import.pk, skip_bad=skip_bad, author=author, user=request.user
            )
            status = 200 if committed.status == Status.COMMITTED else 202
            return idempotency.StoredAnswer(status, representation.brief(committed))

        stored = views.run_once(request, commit)
        _notify_worker(stored)
        return views.answer(stored.answer, status=stored.status)


class ImportCheck(views.View):
    needs = {"POST": _CHANGE}

    @extend_schema(**import_schema.CHECK)
    def post(self, request: Request, import_id: int) -> views.Answer:
        return _perform(request, import_id, drafts.revalidate)


class ImportMissingAddresses(views.View):
    needs = {"POST": _CHANGE}

    @extend_schema(**import_schema.MISSING_ADDRESSES)
    def post(self, request: Request, import_id: int) -> views.Answer:
        return _perform(request, import_id, corrections.assign_missing_families)


class ImportUndo(views.View):
    needs = {"POST": _CHANGE}

    @extend_schema(**import_schema.UNDO)
    def post(self, request: Request, import_id: int) -> views.Answer:
        query.Query(request).raise_problems()
        vm_import = _get(request, import_id)
        undone_import = drafts.undo(vm_import.pk, author=views.author(request), user=request.user)
        if undone_import.undo_wanted:
            tasks.notify_worker(undone_import.pk)
        return views.answer(
            representation.brief(undone_import), status=202 if undone_import.undo_wanted else 200
        )


class ImportCancel(views.View):
    needs = {"POST": _CHANGE}

    @extend_schema(**import_schema.CANCEL)
    def post(self, request: Request, import_id: int) -> views.Answer:
        return _perform(request, import_id, drafts.cancel)


class ImportManifest(views.View):
    needs = {"GET": (*_VIEW, "claims.view_entry", "claims.view_ipamclaim")}

    @extend_schema(**import_schema.MANIFEST)
    def get(self, request: Request, import_id: int) -> views.Answer:
        query.Query(request).raise_problems()
        vm_import = _get(request, import_id)
        text = manifests.render_yaml(vm_import, scoped.request_scope(request))
        return _file(text.encode(), "application/yaml", f"import-{vm_import.pk}.yaml")


class TemplateCSV(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(**import_schema.TEMPLATE_CSV)
    def get(self, request: Request) -> views.Answer:
        query.Query(request).raise_problems()
        return _file(formats.template_csv(), "text/csv; charset=utf-8", "vm-import.csv")


class TemplateXLSX(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(**import_schema.TEMPLATE_XLSX)
    def get(self, request: Request) -> views.Answer:
        query.Query(request).raise_problems()
        return _file(formats.template_xlsx(), import_schema.XLSX, "vm-import.xlsx")


def filter_rows(rows: QuerySet[ImportRow], parameters: query.Query) -> QuerySet[ImportRow]:
    """Filter rows by verdict, namespace, port group, or a part of a VM, a MAC or an address."""
    if verdict := parameters.parse("verdict", query.choice(*RowStatus.values)):
        rows = rows.filter(verdict=verdict)
    for name in ("namespace", "port_group"):
        if text := parameters.text(name):
            rows = rows.filter(**{name: text})
    if text := parameters.text("q"):
        rows = search.matching_rows(rows, text)
    return rows


def _get(request: Request, import_id: int) -> VMImport:
    vm_import = drafts.visible_imports(request.user).filter(pk=import_id).first()
    if vm_import is None:
        raise errors.NotFound("There is no such object.")
    return vm_import


def _brief_shapes(ids: list[int]) -> list[representation.Shape]:
    rows = VMImport.objects.select_related("cluster").in_bulk(ids)
    return [representation.brief(rows[pk]) for pk in ids]


def _rows(vm_import: VMImport, numbers: list[int]) -> list[representation.Shape]:
    rows = ImportRow.objects.filter(vm_import=vm_import, number__in=numbers)
    rows_by_number = {row.number: row for row in rows}
    return representation.rows(
        vm_import, [rows_by_number[number] for number in numbers if number in rows_by_number]
    )


def _row(vm_import: VMImport, number: int) -> representation.Shape:
    shapes = _rows(vm_import, [number] if number < 1 << 31 else [])
    if not shapes:
        raise errors.NotFound("There is no such object.")
    return shapes[0]


def _perform(request: Request, import_id: int, action: Any) -> views.Answer:
    query.Query(request).raise_problems()
    vm_import = _get(request, import_id)
    changed_import = action(vm_import.pk, author=views.author(request), user=request.user)
    return views.answer(representation.brief(changed_import))


def _notify_worker(stored: idempotency.StoredAnswer) -> None:
    """Wake a worker, after the transaction: an unreachable broker only delays the work."""
    if stored.answer["status"] in {Status.QUEUED, Status.COMMITTING}:
        tasks.notify_worker(stored.answer["id"])


def _parse_skip_bad(request: Request) -> bool:
    if _is_empty_form(request):
        return False
    body = parsing.fields(request, "skip_bad", optional=True)
    skip_bad = body.has("skip_bad") and body.parse("skip_bad", bodies.parse_flag)
    body.report.raise_any()
    return bool(skip_bad)


def _is_empty_form(request: Request) -> bool:
    """Return True for an empty multipart form, which some clients send instead of no body."""
    django_request = request._request
    return parsing.media_type(request) == bodies.FORM and not (
        django_request.POST or django_request.FILES
    )


def _parse_text(value: object, field_path: str) -> str:
    text = parsing.text(value, field_path)
    if len(text) > 500:
        raise errors.InvalidInput.for_field(
            field_path, "too_long", "has at most 500 characters", value
        )
    return text


def _parse_mac(value: object, field_path: str) -> str:
    """Parse a corrected MAC. The draft validates it; only control characters are rejected here."""
    text = _parse_text(value, field_path)
    if not text.isprintable():
        raise errors.InvalidInput.for_field(
            field_path, "mac_syntax", "has control characters", value
        )
    return text


def _parse_ips(value: object, field_path: str) -> list[str]:
    if not isinstance(value, list) or len(value) > corrections.MOST_IPS:
        message = f"a list of at most {corrections.MOST_IPS} addresses is expected"
        raise errors.InvalidInput.for_field(field_path, "wrong_type", message, value)
    return [_parse_text(ip_text, f"{field_path}.{index}") for index, ip_text in enumerate(value)]


_CORRECTION_PARSERS = {"ips": _parse_ips, "mac": _parse_mac}


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
