"""Endpoints of workloads: registered and running addresses compared; adoption of running ones."""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims.api import scoped
from claims.models import Network
from claims.models.workload_comparisons import ComparisonResult
from claims.workloads import adoption, results
from pools.core import errors, object_reader
from pools.platform import idempotency
from pools.platform.rest import openapi, pagination, parsing, query, views
from pools.platform.rest.openapi import FLAG, TEXT, TIME, WHOLE, listed, nullable, shape

_RESULTS = tuple(str(answer) for answer in ComparisonResult)
_WORKLOAD = shape(
    "id kind namespace name interface node phase pods since",
    id=WHOLE,
    kind={"type": "string", "enum": ["vmi", "pod"]},
    namespace=TEXT,
    name=TEXT,
    interface=TEXT,
    node=TEXT,
    phase=TEXT,
    pods=listed(TEXT),
    since=TIME,
)
_REGISTERED = shape(
    "source id name mac ips vm namespace",
    source={"type": "string", "enum": ["ippool", "ipamclaim"]},
    id=WHOLE,
    name=TEXT,
    mac=nullable(TEXT),
    ips=listed(TEXT),
    vm=TEXT,
    namespace=TEXT,
)
_VERDICT = shape(
    "verdict workload registered running reasons",
    verdict={"type": "string", "enum": list(_RESULTS)},
    workload=nullable(_WORKLOAD),
    registered=nullable(_REGISTERED),
    running=nullable(shape("mac ips", mac=nullable(TEXT), ips=listed(TEXT))),
    reasons=listed(shape("code message", code=TEXT, message=TEXT)),
)
_SIDE = nullable(shape("mac ips", mac=TEXT, ips=listed(TEXT)))
_PLAN = shape(
    "ippool makes_ippool create change unchanged refuse steps",
    ippool=TEXT,
    makes_ippool=FLAG,
    create=WHOLE,
    change=WHOLE,
    unchanged=WHOLE,
    refuse=WHOLE,
    steps=listed(
        shape(
            "workload name action",
            workload=WHOLE,
            name=TEXT,
            action={"type": "string", "enum": ["create", "change", "unchanged", "refuse"]},
            entry=nullable(WHOLE),
            before=_SIDE,
            after=_SIDE,
            code=TEXT,
            message=TEXT,
        )
    ),
)
FIELDS = tuple(_VERDICT["properties"])
_LIST = openapi.says(
    "List the registered and running workloads of a network",
    {200: openapi.page(_VERDICT)},
    fails="404",
    parameters=openapi.query(verdict=", ".join(_RESULTS), **openapi.PAGED),
)
_COUNTS = openapi.says(
    "Get the number of workloads by result",
    {200: shape(" ".join(_RESULTS), **dict.fromkeys(_RESULTS, WHOLE))},
    fails="404",
)
_ADOPT = openapi.writes(
    "Adopt running workloads as entries of the network's IPPool",
    {200: _PLAN},
    shape(
        "reason",
        workloads=listed(WHOLE),
        verdict={"type": "string", "enum": list(adoption.ADOPTABLE)},
        reason=TEXT,
    ),
    fails="404",
    parameters=openapi.query(dry_run="true: return the plan and change nothing"),
)


class Workloads(views.View):
    needs = {"GET": ("claims.view_workload",)}

    @extend_schema(**_LIST)
    def get(self, request: Request, network_id: int) -> views.Answer:
        network = scoped.get_row(request, Network, network_id)
        parameters = query.Query(request)
        rows = results.visible_rows(scoped.request_scope(request)).filter(network_id=network.pk)
        if verdict := parameters.parse("verdict", query.choice(*_RESULTS)):
            rows = rows.filter(verdict=verdict)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": results.ORDER},
                fields=FIELDS,
                shape=results.render_rows,
            )
        )


class WorkloadCounts(views.View):
    needs = {"GET": ("claims.view_workload",)}

    @extend_schema(**_COUNTS)
    def get(self, request: Request, network_id: int) -> views.Answer:
        network = scoped.get_row(request, Network, network_id)
        query.Query(request).done()
        return views.answer(results.result_counts(network.pk, scoped.request_scope(request)))


class Adopt(views.View):
    needs = {"POST": ("claims.view_workload", "claims.add_entry", "claims.change_entry")}

    @extend_schema(**_ADOPT)
    def post(self, request: Request, network_id: int) -> views.Answer:
        """Adopt the workloads named by id in `workloads`, or all with a `verdict`."""
        network = scoped.get_row(request, Network.objects.select_related("cluster"), network_id)
        parameters = query.Query(request)
        dry_run = parameters.parse("dry_run", query.flag)
        parameters.done()
        criteria, reason = _adoption_criteria(request)
        scope = scoped.request_scope(request)
        if dry_run:
            return views.answer(adoption.plan(network, scope=scope, **criteria).as_json())
        if not hasattr(network, "ippool"):
            views.require(request, "claims.add_ippool")

        def adopt() -> idempotency.Stored:
            author = views.author(request, reason)
            return idempotency.Stored(
                200, adoption.adopt(network, scope=scope, author=author, **criteria).as_json()
            )

        stored = views.run_once(request, adopt)
        return views.answer(stored.answer, status=stored.status)


def _adoption_criteria(request: Request) -> tuple[dict[str, Any], str]:
    body = parsing.fields(request, "workloads", "verdict", "reason")
    reason = body.parse("reason", parsing.reason) or ""
    if body.has("workloads") == body.has("verdict"):
        body.report.add("workloads", "one_of", "give either workloads or verdict")
    ids = body.parse("workloads", _parse_ids) if body.has("workloads") else None
    verdict = body.parse("verdict", _parse_verdict) if body.has("verdict") else ""
    body.report.raise_any()
    return {"ids": ids, "verdict": verdict or ""}, reason


def _parse_ids(value: object, field_path: str) -> list[int]:
    if not isinstance(value, list) or not 1 <= len(value) <= adoption.MOST:
        message = f"a list of 1 to {adoption.MOST} ids is expected"
        raise errors.InvalidInput.for_field(field_path, "wrong_type", message, value)
    report = object_reader.ProblemReport()
    ids = []
    for index, raw_id in enumerate(value):
        with report.collecting():
            ids.append(
                parsing.integer(raw_id, f"{field_path}.{index}", least=1, most=(1 << 63) - 1)
            )
    report.raise_any()
    return ids


def _parse_verdict(value: object, field_path: str) -> str:
    return parsing.choice(value, field_path, adoption.ADOPTABLE)


urlpatterns = [
    path("networks/<int:network_id>/workloads/", Workloads.as_view(), name="network-workloads"),
    path(
        "networks/<int:network_id>/workloads/counts/",
        WorkloadCounts.as_view(),
        name="network-workload-counts",
    ),
    path(
        "networks/<int:network_id>/workloads/adopt/",
        Adopt.as_view(),
        name="network-workloads-adopt",
    ),
]
