"""Endpoints of migration waves: VMs that are migrated together, and their readiness."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims.access import namespaces
from claims.api import scoped
from claims.imports import drafts
from claims.models import Wave, WaveVM
from claims.models.imports import RowStatus
from claims.waves import readiness, waves
from pools.core import block_fields, errors, object_reader
from pools.platform import idempotency
from pools.platform.rest import openapi, pagination, parsing, query, views
from pools.platform.rest.openapi import FLAG, TEXT, TIME, WHOLE, listed, nullable, shape

_ALL = namespaces.EVERY_NAMESPACE
_VIEW = ("claims.view_wave", _ALL)
_CHANGE = ("claims.change_wave", _ALL)
_WAVE = shape(
    "id cluster name vms",
    id=WHOLE,
    cluster=TEXT,
    name=TEXT,
    planned_at=TIME,
    note=TEXT,
    vms=WHOLE,
    created_at=TIME,
)
_VM = shape("id namespace vm", id=WHOLE, namespace=TEXT, vm=TEXT, source_vm=TEXT)
_REASONS = listed(shape("code message", code=TEXT, message=TEXT))
_VERDICT = {"type": "string", "enum": ["ready", "warning", "not-ready"]}
_INTERFACE = shape(
    network=WHOLE,
    network_name=TEXT,
    source=TEXT,
    mac=nullable(TEXT),
    ips=listed(TEXT),
    standing=TEXT,
)
_READINESS = shape(
    "wave ready counts networks settings vms",
    wave=_WAVE,
    ready=FLAG,
    counts={"type": "object", "additionalProperties": WHOLE},
    networks=listed(
        shape(
            id=WHOLE,
            name=TEXT,
            fit=FLAG,
            reasons=_REASONS,
            notes=_REASONS,
            vms=WHOLE,
            free={"type": "object", "additionalProperties": TEXT},
        )
    ),
    settings=listed(shape(code=TEXT, where=TEXT, setting=TEXT, why=TEXT)),
    vms=listed(
        shape(
            id=WHOLE,
            namespace=TEXT,
            vm=TEXT,
            source_vm=TEXT,
            verdict=_VERDICT,
            reasons=_REASONS,
            interfaces=listed(_INTERFACE),
        )
    ),
)
_IN = shape("cluster name", cluster=TEXT, name=TEXT, planned_at=TIME, note=TEXT)
_VMS_IN = shape(vms=listed(shape("vm", namespace=TEXT, vm=TEXT)), **{"import": WHOLE}, verdict=TEXT)
_ADDED = shape("added vms", added=WHOLE, vms=WHOLE)
_LIST = openapi.says(
    "List migration waves",
    {200: openapi.page(_WAVE)},
    parameters=openapi.query(cluster="name or id", **openapi.PAGED),
)
_CREATE = openapi.writes("Create a wave", {201: _WAVE}, _IN)
_ONE = openapi.says("Get a wave", {200: _WAVE}, fails="404")
_PATCH = openapi.says(
    "Change the name, planned time or note of a wave",
    {200: _WAVE},
    fails="404 409 411 413 415",
    **openapi.body(shape(name=TEXT, planned_at=TIME, note=TEXT) | openapi.SOMETHING),
)
_DELETE = openapi.says("Delete a wave; its VMs are kept", {204: None}, fails="404")
_VMS = openapi.says(
    "List the VMs of a wave",
    {200: openapi.page(_VM)},
    fails="404",
    parameters=openapi.query(**openapi.PAGED),
)
_ADD = openapi.writes(
    "Add VMs to a wave, by name or all of an import", {200: _ADDED}, _VMS_IN, fails="404"
)
_REMOVE = openapi.says("Remove a VM from a wave", {204: None}, fails="404")
_REPORT = openapi.says(
    "Get the readiness of a wave",
    {200: _READINESS},
    fails="404",
    parameters=openapi.query(format="json (default), or csv with one line per interface"),
)


class Waves(views.View):
    needs = {"GET": _VIEW, "POST": ("claims.add_wave", _ALL)}

    @extend_schema(**_LIST)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = Wave.objects.all()
        if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
            rows = rows.filter(cluster=cluster)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=_WAVE["properties"],
                shape=lambda page_rows: _shapes([row["id"] for row in page_rows]),
            )
        )

    @extend_schema(**_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, "cluster", "name", "planned_at", "note")
        cluster = body.parse("cluster", scoped.cluster_parser(request))
        name = body.parse("name", parsing.text)
        values = _parse_optional(body)
        body.report.raise_any()

        def create() -> idempotency.Stored:
            wave = waves.create(cluster, name or "", author=views.author(request), **values)  # type: ignore[arg-type]
            return idempotency.Stored(201, _shapes([wave.pk])[0])

        stored = views.run_once(request, create)
        return views.answer(stored.answer, status=stored.status)


class WaveView(views.View):
    needs = {"GET": _VIEW, "PATCH": _CHANGE, "DELETE": ("claims.delete_wave", _ALL)}

    @extend_schema(**_ONE)
    def get(self, request: Request, wave_id: int) -> views.Answer:
        return views.answer(_shapes([waves.get(wave_id).pk])[0])

    @extend_schema(**_PATCH)
    def patch(self, request: Request, wave_id: int) -> views.Answer:
        body = parsing.fields(request, "name", "planned_at", "note")
        values = _parse_optional(body)
        if "name" in body.data:
            values["name"] = body.parse("name", parsing.text)
        body.report.raise_any()
        waves.change(wave_id, values, author=views.author(request))
        return views.answer(_shapes([wave_id])[0])

    @extend_schema(**_DELETE)
    def delete(self, request: Request, wave_id: int) -> views.Answer:
        waves.delete(wave_id, author=views.author(request))
        return views.no_content()


class WaveVMs(views.View):
    needs = {"GET": _VIEW, "POST": _CHANGE}

    @extend_schema(**_VMS)
    def get(self, request: Request, wave_id: int) -> views.Answer:
        parameters = query.Query(request)
        rows = WaveVM.objects.filter(wave=waves.get(wave_id))
        names = tuple(_VM["properties"])
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=names,
                shape=lambda page_rows: [{name: row[name] for name in names} for row in page_rows],
            )
        )

    @extend_schema(**_ADD)
    def post(self, request: Request, wave_id: int) -> views.Answer:
        body = parsing.fields(request, "vms", "import", "verdict")
        wave = waves.get(wave_id)
        if body.has("vms") == body.has("import") or (body.has("vms") and body.has("verdict")):
            message = "name either vms, or an import with an optional verdict"
            raise errors.InvalidInput.for_field("vms", "required", message)
        vms = body.parse("vms", _parse_vms) if body.has("vms") else None
        number = body.parse("import", _parse_id) if body.has("import") else None
        verdict = body.parse("verdict", _parse_verdict) if body.has("verdict") else None
        body.report.raise_any()

        def add() -> idempotency.Stored:
            author = views.author(request)
            if vms is not None:
                added = waves.add(wave.pk, vms, author=author)
            else:
                vm_import = drafts.visible_imports(request.user).filter(pk=number or 0).first()
                if vm_import is None or vm_import.cluster_id != wave.cluster_id:
                    message = f"the cluster {wave.cluster} has no such import"
                    raise errors.InvalidInput.for_field("import", "unknown_import", message, number)
                criteria = {"verdicts": [verdict]} if verdict else {}
                added = waves.add_import(wave.pk, vm_import, author=author, **criteria)
            return idempotency.Stored(200, {"added": added, "vms": wave.vms.count()})

        stored = views.run_once(request, add)
        return views.answer(stored.answer, status=stored.status)


class WaveVMView(views.View):
    needs = {"DELETE": _CHANGE}

    @extend_schema(**_REMOVE)
    def delete(self, request: Request, wave_id: int, vm_id: int) -> views.Answer:
        if not waves.remove(wave_id, [vm_id], author=views.author(request)):
            raise errors.NotFound("There is no such object.")
        return views.no_content()


class WaveReadiness(views.View):
    needs = {"GET": _VIEW}

    @extend_schema(**_REPORT)
    def get(self, request: Request, wave_id: int) -> views.Answer:
        parameters = query.Query(request)
        output_format = parameters.parse("format", query.choice("json", "csv"))
        parameters.done()
        report = readiness.wave_readiness(waves.get(wave_id))
        if output_format == "csv":
            headers = {"Content-Disposition": f'attachment; filename="wave-{wave_id}.csv"'}
            text = readiness.as_csv(report)
            return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)
        return views.answer(_report(report))


def _shapes(ids: list[int]) -> list[dict[str, Any]]:
    rows = Wave.objects.select_related("cluster").in_bulk(ids)
    return [
        {
            "id": pk,
            "cluster": rows[pk].cluster.name,
            "name": rows[pk].name,
            "planned_at": block_fields.time(rows[pk].planned_at),
            "note": rows[pk].note,
            "vms": rows[pk].vms.count(),
            "created_at": block_fields.time(rows[pk].created_at),
        }
        for pk in ids
        if pk in rows
    ]


def _report(report: readiness.WaveReadiness) -> dict[str, Any]:
    return {
        "wave": _shapes([report.wave.pk])[0],
        "ready": report.ready,
        "counts": report.counts,
        "networks": [
            {
                "id": fit.network.pk,
                "name": fit.network.name,
                "fit": not fit.reasons,
                "reasons": _reasons(fit.reasons),
                "notes": _reasons(fit.notes),
                "free": {f"ipv{family}": str(free) for family, free in fit.free.items()},
                "vms": fit.vms,
            }
            for fit in report.networks
        ],
        "settings": [dict(vars(setting)) for setting in report.settings],
        "vms": [
            {
                "id": machine.id,
                "namespace": machine.namespace,
                "vm": machine.vm,
                "source_vm": machine.source_vm,
                "verdict": machine.status,
                "reasons": _reasons(machine.reasons),
                "interfaces": [
                    {
                        "network": interface.network_id,
                        "network_name": interface.network,
                        "source": interface.source,
                        "mac": interface.mac,
                        "ips": list(interface.ips),
                        "standing": interface.status,
                    }
                    for interface in machine.interfaces
                ],
            }
            for machine in report.machines
        ],
    }


def _reasons(reasons: Any) -> list[dict[str, str]]:
    return [{"code": code, "message": message} for code, message in reasons]


def _parse_optional(body: object_reader.Fields) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if body.has("planned_at"):
        values["planned_at"] = body.parse(
            "planned_at",
            lambda value, field_path: query.moment(parsing.text(value, field_path), field_path),
        )
    elif "planned_at" in body.data:
        values["planned_at"] = None
    if body.has("note"):
        values["note"] = body.parse("note", parsing.text)
    return values


def _parse_id(value: object, field_path: str) -> int:
    return parsing.integer(value, field_path, least=1, most=1 << 62)


def _parse_verdict(value: object, field_path: str) -> str:
    return parsing.choice(value, field_path, tuple(RowStatus.values))


def _parse_vms(value: object, field_path: str) -> list[waves.VM]:
    if not isinstance(value, list) or not 0 < len(value) <= waves.MOST_VMS:
        message = f"a list of 1 to {waves.MOST_VMS} VMs is expected"
        raise errors.InvalidInput.for_field(field_path, "wrong_type", message, value)
    vms = []
    report = object_reader.ProblemReport()
    for index, element in enumerate(value):
        element_path = f"{field_path}.{index}"
        if not isinstance(element, dict):
            report.add(element_path, "wrong_type", "an object is expected", element)
            continue
        fields = object_reader.Fields(element, element_path, report)
        fields.only("namespace", "vm")
        vm = fields.parse("vm", parsing.text)
        namespace = fields.parse("namespace", parsing.text) if fields.has("namespace") else ""
        vms.append((namespace or "", vm or ""))
    report.raise_any()
    return vms


_WAVE_PATH = "waves/<int:wave_id>/"
urlpatterns = [
    path("waves/", Waves.as_view(), name="waves"),
    path(_WAVE_PATH, WaveView.as_view(), name="wave"),
    path(f"{_WAVE_PATH}vms/", WaveVMs.as_view(), name="wave-vms"),
    path(f"{_WAVE_PATH}vms/<int:vm_id>/", WaveVMView.as_view(), name="wave-vm"),
    path(f"{_WAVE_PATH}readiness/", WaveReadiness.as_view(), name="wave-readiness"),
]
