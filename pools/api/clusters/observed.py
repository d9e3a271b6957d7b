"""clusters/{}/runs/, objects/, findings/, drift/: what passes saw, found and would change."""

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
_LIGHT = [one.attname for one in ObservedObject._meta.concrete_fields if one.name not in _HEAVY]


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
        rows = _named(rows, parameters, "kind", "namespace", "name")
        rows = _with(rows, parameters, "problem", ~Q(problem_code=""))
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
        found = rows.values().first()
        if found is None:
            raise errors.NotFound("There is no such object.")
        return views.answer(shapes([dict(found)])[0])


class Findings(views.View):
    needs = {"GET": ("pools.view_finding",)}

    @extend_schema(**cluster_schema.FINDINGS)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = Finding.objects.filter(cluster=clusters.get(cluster))
        rows = _named(rows, parameters, "kind", "code")
        if severity := parameters.parse("severity", query.choice(*map(str, Severity))):
            rows = rows.filter(severity=severity)
        return views.answer(_page(request, parameters, rows, cluster_schema.FINDING_FIELDS))


class Drifts(views.View):
    needs = {"GET": ("pools.view_drift",)}

    @extend_schema(**cluster_schema.DRIFT)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        rows = Drift.objects.filter(cluster=clusters.get(cluster))
        rows = _named(rows, parameters, "kind", "namespace", "name")
        rows = _with(rows, parameters, "ignored", Q(ignored_at__isnull=False))
        rows = _with(rows, parameters, "conflict", ~Q(conflict=""))
        return views.answer(_page(request, parameters, rows, cluster_schema.DRIFT_FIELDS))


def _named(rows: QuerySet[Any], parameters: query.Query, *names: str) -> QuerySet[Any]:
    wanted = {name: value for name in names if (value := parameters.text(name))}
    return rows.filter(**wanted)


def _with(rows: QuerySet[Any], parameters: query.Query, name: str, which: Q) -> QuerySet[Any]:
    wanted = parameters.parse(name, query.flag)
    if wanted is None:
        return rows
    return rows.filter(which if wanted else ~which)


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
    """The columns as they are, times as text, a problem as its code and message."""
    people = {row["ignored_by_id"] for row in rows if row.get("ignored_by_id")}
    names = get_user_model().objects.in_bulk(people)
    told = []
    for row in rows:
        one = {name: value for name, value in row.items() if name not in _HIDDEN}
        one |= {name: time(row[name]) for name in _TIMES if name in row}
        if "problem_code" in row:
            code = row["problem_code"]
            one["problem"] = {"code": code, "message": row["problem"]} if code else None
        if "ignored_by_id" in row:
            person = names.get(row["ignored_by_id"])
            one["ignored_by"] = person.get_username() if person else None
        told.append(one)
    return told
