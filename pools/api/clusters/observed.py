"""clusters/{}/runs/, objects/, findings/, drift/: sync runs, and what they observed and planned."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api.clusters import clusters
from pools.api.schemas import clusters as cluster_schema
from pools.clusters import fleet
from pools.core import errors
from pools.core.block_fields import time
from pools.models import Drift, Finding, ObservedObject, Run
from pools.models.observed import Severity, Trigger
from pools.platform.rest import pagination, query, views

_TIMES = ("first_seen_at", "changed_at", "missed_at", "since", "ignored_at")
_HIDDEN = {"cluster_id", "problem_code", "ignored_by_id", "cidrs"}
_HEAVY = {"manifest", "cidrs"}
_LIGHT = [
    field.attname for field in ObservedObject._meta.concrete_fields if field.name not in _HEAVY
]


class Runs(views.View):
    needs = {"GET": ("pools.view_run",)}

    @extend_schema(**cluster_schema.RUNS)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = Run.objects.filter(cluster=clusters.get(cluster))
        if trigger := parameters.parse("trigger", query.choice(*map(str, Trigger))):
            rows = rows.filter(trigger=trigger)
        succeeded = parameters.parse("succeeded", query.flag)
        if succeeded is not None:
            rows = rows.filter(succeeded=succeeded)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=cluster_schema.RUN_FIELDS,
                shape=_runs,
                default="-id",
            )
        )


class Objects(views.View):
    needs = {"GET": ("pools.view_observedobject",)}

    @extend_schema(**cluster_schema.OBJECTS)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = ObservedObject.objects.filter(cluster=clusters.get(cluster))
        rows = _filter_by_text(rows, parameters, "kind", "namespace", "name")
        rows = _filter_by_flag(rows, parameters, "problem", ~Q(problem_code=""))
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("kind", "namespace", "name", "id")},
                fields=cluster_schema.OBJECT_FIELDS,
                shape=shapes,
                columns=_LIGHT,  # manifests may be large
            )
        )


class ObjectView(views.View):
    needs = {"GET": ("pools.view_observedobject",)}

    @extend_schema(**cluster_schema.OBJECT)
    def get(self, request: Request, cluster: str, object_id: int) -> views.Answer:
        rows = ObservedObject.objects.filter(cluster=clusters.get(cluster), pk=object_id)
        row = rows.values().first()
        if row is None:
            raise errors.NotFound("There is no such object.")
        return views.answer(shapes([dict(row)])[0])


class Findings(views.View):
    needs = {"GET": ("pools.view_finding",)}

    @extend_schema(**cluster_schema.FINDINGS)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = Finding.objects.filter(cluster=clusters.get(cluster))
        rows = _filter_by_text(rows, parameters, "kind", "code")
        if severity := parameters.parse("severity", query.choice(*map(str, Severity))):
            rows = rows.filter(severity=severity)
        return views.answer(_page(request, parameters, rows, cluster_schema.FINDING_FIELDS))


class Drifts(views.View):
    needs = {"GET": ("pools.view_drift",)}

    @extend_schema(**cluster_schema.DRIFT)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = Drift.objects.filter(cluster=clusters.get(cluster))
        rows = _filter_by_text(rows, parameters, "kind", "namespace", "name")
        rows = _filter_by_flag(rows, parameters, "ignored", Q(ignored_at__isnull=False))
        rows = _filter_by_flag(rows, parameters, "conflict", ~Q(conflict=""))
        return views.answer(_page(request, parameters, rows, cluster_schema.DRIFT_FIELDS))


def _filter_by_text(rows: QuerySet[Any], parameters: query.Query, *names: str) -> QuerySet[Any]:
    filters = {name: value for name in names if (value := parameters.text(name))}
    return rows.filter(**filters)


def _filter_by_flag(
    rows: QuerySet[Any], parameters: query.Query, name: str, condition: Q
) -> QuerySet[Any]:
    flag = parameters.parse(name, query.flag)
    if flag is None:
        return rows
    return rows.filter(condition if flag else ~condition)


def _page(
    request: Request, parameters: query.Query, rows: QuerySet[Any], fields: Collection[str]
) -> dict[str, Any]:
    return pagination.page(
        request,
        parameters,
        rows,
        orderings={"id": ("id",)},
        fields=fields,
        shape=shapes,
    )


def _runs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [fleet.run_as_json(Run(**row)) for row in rows]


def shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with times as strings and a problem as an object of code and message."""
    people = {row["ignored_by_id"] for row in rows if row.get("ignored_by_id")}
    names = get_user_model().objects.in_bulk(people)
    documents = []
    for row in rows:
        document = {name: value for name, value in row.items() if name not in _HIDDEN}
        document |= {name: time(row[name]) for name in _TIMES if name in row}
        if "problem_code" in row:
            code = row["problem_code"]
            document["problem"] = {"code": code, "message": row["problem"]} if code else None
        if "ignored_by_id" in row:
            person = names.get(row["ignored_by_id"])
            document["ignored_by"] = person.get_username() if person else None
        documents.append(document)
    return documents
